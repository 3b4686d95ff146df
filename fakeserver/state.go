package fakeserver

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// world is the part of a Server that Reset forgets. The server's lock guards
// it.
type world struct {
	state
	resets  int // counts the Resets before this world
	traces  int
	journal journal

	scripts    rulebook[*Script]
	injections rulebook[*Injection]
	refusals   rulebook[*Injection] // of RefuseConnection, asked before a call is sent
}

// state is the memory of the service itself, which Snapshot copies.
type state struct {
	keys    map[digest]*apiKey
	agents  map[string]*agent
	ordered []*agent // in the order of creation
	numbers int      // the number of the last agent
	ips     map[netip.Addr]*counts
	sweepAt int // at so many addresses sweep drops those whose windows have closed

	byokUnavailable bool
}

func newWorld(c config, now time.Time) *world {
	w := &world{state: newState(), journal: journal{limit: c.callLimit}}
	w.issue(c, KeyOptions{Plan: c.plan}, now)
	return w
}

// newState returns an empty state.
func newState() state {
	return state{
		keys:    map[digest]*apiKey{},
		agents:  map[string]*agent{},
		ips:     map[netip.Addr]*counts{},
		sweepAt: minSweep,
	}
}

// keysInOrder are the API keys in the order of issue.
func (st *state) keysInOrder() []*apiKey {
	return slices.SortedFunc(maps.Values(st.keys), func(a, b *apiKey) int { return a.number - b.number })
}

// nextTrace returns the next trace identifier. The interface does not show
// their form; the fake counts.
func (w *world) nextTrace() string {
	w.traces++
	return numbered("trace", w.traces)
}

// countsOf returns the windows of a client address. Each time the number of
// addresses has doubled, those whose windows have closed are dropped. So memory
// follows the addresses in use, and no call pays for a scan.
func (w *world) countsOf(ip netip.Addr, now time.Time, sliding bool) *counts {
	c := w.ips[ip]
	// Bubbles and the outside may share an address, but not a key. So another clock
	// resets an address in silence.
	if c == nil || c.behind(now) {
		w.sweep(now)
		c = newCounts(true, sliding)
		w.ips[ip] = c
	}
	return c
}

// minSweep is the number of addresses that are kept in any case.
const minSweep = 1024

func (w *world) sweep(now time.Time) {
	if len(w.ips) < w.sweepAt {
		return
	}
	for ip, c := range w.ips {
		if c.closed(now) {
			delete(w.ips, ip)
		}
	}
	w.sweepAt = max(minSweep, 2*len(w.ips))
}

// Snapshot is the state of the service at one moment: keys and plans, agents
// and conversations, BYOK configurations, limits, SetBYOKAvailable, and the
// next numbers of agents and keys. It never changes. Provider keys are
// encrypted in it as in the fake.
type Snapshot struct {
	server *Server
	state  state
}

// Format prints only a name, with every verb: a snapshot holds texts that must
// not get into a log.
func (Snapshot) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Snapshot")) }

// Snapshot copies the state of the service, for Restore. Scripts, injected
// faults, recorded calls and the clock belong to the test and are not copied.
// Neither is the count of trace identifiers, since each names one recorded
// call.
func (s *Server) Snapshot() *Snapshot {
	return look(s, func(w *world) *Snapshot { return &Snapshot{server: s, state: w.state.clone()} })
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
	fresh := snapshot.state.clone()
	s.locked(func(w *world) { w.state = fresh })
}

// clone copies everything that calls change. BYOK configurations are shared,
// since they are replaced and never changed.
func (st *state) clone() state {
	c := *st
	c.keys = make(map[digest]*apiKey, len(st.keys))
	owners := make(map[*apiKey]*apiKey, len(st.keys))
	for d, k := range st.keys {
		c.keys[d] = k.clone()
		owners[k] = c.keys[d]
	}
	c.agents = make(map[string]*agent, len(st.agents))
	c.ordered = make([]*agent, 0, len(st.ordered))
	for _, a := range st.ordered {
		twin := a.clone(owners[a.owner])
		c.agents[a.ID] = twin
		c.ordered = append(c.ordered, twin)
	}
	c.ips = maps.Clone(st.ips)
	for ip, counted := range c.ips {
		c.ips[ip] = counted.clone()
	}
	return c
}

func (k *apiKey) clone() *apiKey {
	c := *k
	c.counts = k.counts.clone()
	return &c
}

// clone copies an agent. Stored exchanges never change.
func (a *agent) clone(owner *apiKey) *agent {
	return &agent{Agent: a.copied(), number: a.number, owner: owner, exchanges: a.exchanges.clone()}
}

func (c *counts) clone() *counts {
	twin := *c
	for i, w := range c.windows {
		if w != nil {
			twin.windows[i] = w.clone()
		}
	}
	if c.shut != nil {
		shut := *c.shut
		twin.shut = &shut
	}
	return &twin
}
