package fakeserver

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

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
	Limit string    `json:"limit_key"`
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

// file copies the state.
func (w *world) file() *stateFile {
	f := &stateFile{Traces: w.traces, Numbers: w.numbers, BYOKAvailable: !w.byokUnavailable}
	for _, k := range w.keysInOrder() {
		f.Keys = append(f.Keys, keyFile{k.info(), k.warm, k.byok, k.counts.file()})
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
			f.Windows = append(f.Windows, windowFile{string(spec.Limits[i].Key), slices.Clone(w.calls), w.shut})
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
		st.keys[digestOf(c.keyText(i+1))], owners[key.label] = key, key
	}
	for _, a := range f.Addresses {
		st.ips[a.Address] = a.counts(c.sliding)
	}
	for _, a := range f.Agents {
		st.insert(a.agent(owners[a.Key]))
	}
	return st
}

// key builds the n-th API key.
func (f *keyFile) key(n int, sliding bool) *apiKey {
	plan, _ := f.Plan.find()
	from, _ := netip.ParseAddr(f.Address)
	return &apiKey{
		number: n, label: f.Label, plan: plan, dashboard: f.Dashboard, revoked: f.Revoked, warm: f.Warm,
		issued: f.IssuedAt, from: from, byok: f.BYOK, counts: f.counts(sliding),
	}
}

func (f *countsFile) counts(sliding bool) *counts {
	c := newCounts(sliding)
	c.last = f.Last
	for _, w := range f.Windows {
		into := &c.windows[limitIndex(spec.LimitKey(w.Limit))]
		into.shut = w.Shut
		into.fill(w.Calls)
	}
	return c
}

func (f *agentFile) agent(owner *apiKey) *agent {
	a := &agent{Agent: f.copied(), number: f.Number, owner: owner, ownKey: f.OwnKey}
	a.exchanges.dropped = f.Dropped
	for _, e := range f.Exchanges {
		a.exchanges.add(e, keptExchanges)
	}
	return a
}
