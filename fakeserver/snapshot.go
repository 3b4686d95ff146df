package fakeserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Snapshot is the state of the service at one moment: keys and plans, agents
// and conversations, BYOK configurations, limits, SetBYOKAvailable, and the
// next numbers of agents and keys. It never changes. Provider keys are
// encrypted in it as in the fake.
type Snapshot struct {
	server *Server
	file   *stateFile
}

// Format prints only a name, with every verb: a snapshot holds texts that must
// not get into a log.
func (Snapshot) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Snapshot")) }

// stateFile is the state as WriteState writes it, and as a Snapshot keeps it. It
// shares no memory with a state that changes.
type stateFile struct {
	Format        string        `json:"format"`
	Version       int           `json:"version"`
	Advanced      time.Duration `json:"advanced_ns"`
	Traces        int           `json:"traces"` // identifiers given so far
	Numbers       int           `json:"agents"` // the number of the last agent
	BYOKAvailable bool          `json:"byok_available"`
	Keys          []keyFile     `json:"keys"` // in the order of issue
	Addresses     []addressFile `json:"addresses"`
	Agents        []agentFile   `json:"agent_list"`
}

// Snapshot copies the state of the service, for Restore. Scripts, injected
// faults, recorded calls and the clock belong to the test and are not copied.
// Neither is the count of trace identifiers, since each names one recorded
// call.
func (s *Server) Snapshot() *Snapshot {
	return look(s, func(w *world) *Snapshot { return &Snapshot{s, w.file()} })
}

// Restore brings the service back to the state of a snapshot, any number of
// times. The clock goes on, so a limit that was open then may have closed. A
// call that is under way ends on the state that it began on, which is then
// gone. A snapshot of another fake panics: its provider keys are encrypted
// under another key.
func (s *Server) Restore(snapshot *Snapshot) {
	if snapshot == nil || snapshot.server != s {
		misuse("Restore", "the snapshot is not one that this fake made")
	}
	fresh := snapshot.file.state(&s.config)
	s.locked(func(w *world) { w.state = fresh })
}

// WriteState writes the state of the service to w as JSON, with the clock's
// advance and the count of trace identifiers, so that another fake can go on
// from it with ReadState. Scripts, injected faults and recorded calls are left
// out.
//
// The file holds texts of messages and prompts, and no key. An API key is there
// by its label, from which a fake makes its text. Of a provider key there is
// the metadata of interface 2.4. WriteState returns the error of w.
func (s *Server) WriteState(w io.Writer) error {
	f := look(s, (*world).file)
	f.Format, f.Version, f.Advanced = stateFormat, stateVersion, time.Duration(s.offset.Load())
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		return fmt.Errorf("fakeserver: WriteState: %w", err)
	}
	return nil
}

// keyFile has the label and never the text.
type keyFile struct {
	KeyInfo
	Warm bool        `json:"warm"`
	BYOK *byokConfig `json:"byok,omitempty"` // replaced and never changed, so it may be shared
	countsFile
}

type addressFile struct {
	Address netip.Addr `json:"address"`
	countsFile
}

type countsFile struct {
	Windows []windowFile `json:"windows,omitempty"`
	Last    time.Time    `json:"last"`
}

// windowFile is one window that counts calls or is closed. Fixed and sliding
// windows have the same form.
type windowFile struct {
	Limit Limit     `json:"limit_key"`
	Calls []tally   `json:"calls,omitempty"`
	Shut  time.Time `json:"shut_until,omitzero"` // by Exhaust
}

type agentFile struct {
	Agent
	Number    int        `json:"number"`
	Exchanges []Exchange `json:"exchanges"`
	Dropped   int        `json:"exchanges_dropped"`
	OwnKey    bool       `json:"own_key,omitempty"` // of its creation, not stored for others
}

func (w *world) file() *stateFile {
	f := &stateFile{Traces: w.traces, Numbers: w.numbers, BYOKAvailable: !w.byokUnavailable}
	for _, k := range w.keysInOrder() {
		f.Keys = append(f.Keys, keyFile{k.KeyInfo, k.warm, k.byok, k.counts.file()})
	}
	for _, ip := range slices.SortedFunc(maps.Keys(w.ips), netip.Addr.Compare) {
		f.Addresses = append(f.Addresses, addressFile{ip, w.ips[ip].file()})
	}
	for _, a := range w.ordered {
		f.Agents = append(f.Agents, agentFile{a.copied(), a.number, append([]Exchange{}, a.exchanges.all()...), a.exchanges.dropped, a.ownKey})
	}
	return f
}

func (c *counts) file() countsFile {
	f := countsFile{Last: c.last}
	for i, w := range c.windows {
		if len(w.calls) > 0 || !w.shut.IsZero() {
			f.Windows = append(f.Windows, windowFile{Limit(spec.Limits[i].Key), slices.Clone(w.calls), w.shut})
		}
	}
	return f
}

// state builds the state that a file describes, by the options of a fake.
func (f *stateFile) state(c *config) state {
	st := newState()
	st.numbers, st.byokUnavailable = f.Numbers, !f.BYOKAvailable
	owners := map[string]*apiKey{}
	for i, k := range f.Keys {
		key := k.key(i+1, c.sliding)
		st.keys[digestOf(c.keyText(i+1))], owners[key.Label] = key, key
	}
	for _, a := range f.Addresses {
		st.ips[a.Address] = a.counts(c.sliding)
	}
	for _, a := range f.Agents {
		st.insert(a.agent(owners[a.Key], c.exchangeLimit()))
	}
	return st
}

func (f *keyFile) key(n int, sliding bool) *apiKey {
	return &apiKey{KeyInfo: f.KeyInfo, number: n, warm: f.Warm, byok: f.BYOK, counts: f.counts(sliding)}
}

func (f *countsFile) counts(sliding bool) *counts {
	c := newCounts(sliding)
	c.last = f.Last
	for _, w := range f.Windows {
		into := &c.windows[limitIndex(w.Limit)]
		into.shut = w.Shut
		into.fill(w.Calls)
	}
	return c
}

func (f *agentFile) agent(owner *apiKey, kept int) *agent {
	a := &agent{Agent: f.copied(), number: f.Number, owner: owner, ownKey: f.OwnKey}
	a.exchanges.dropped = f.Dropped
	for _, e := range f.Exchanges {
		a.exchanges.add(e, kept)
	}
	return a
}
