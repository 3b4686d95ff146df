package fakeserver

import (
	"fmt"
	"maps"
)

// Snapshot is the state of the service at one moment: keys and plans, agents
// and conversations, BYOK configurations, limits, what SetBYOKAvailable said,
// and the numbers from which identifiers of agents and keys go on. It never
// changes, and provider keys are as encrypted in it as in the fake.
type Snapshot struct {
	server *Server
	state  state
}

// Format prints a name and nothing else, whatever the verb: a snapshot holds
// texts that do not belong into a log.
func (Snapshot) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("fakeserver.Snapshot")) }

// Snapshot copies the state of the service, for Restore. Scripts, injected
// faults, recorded calls and the clock belong to the test and are not in it,
// nor is the count of trace identifiers: each of those names one recorded call.
func (s *Server) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Snapshot{server: s, state: s.world.state.clone()}
}

// Restore brings the service back to the state of a snapshot, any number of
// times. The clock goes on, so limits that were open then may have closed. A
// call that is under way ends on the state that it began on, which is then
// gone. A snapshot of another fake panics: its keys are encrypted under a key
// that this one does not have.
func (s *Server) Restore(snapshot *Snapshot) {
	if snapshot == nil || snapshot.server != s {
		misuse("Restore", "the snapshot is not one that this fake made")
	}
	fresh := snapshot.state.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.state = fresh
}

// clone copies everything that calls change. BYOK configurations are replaced
// and never changed, so they are shared.
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

// clone copies an agent. What the exchanges hold never changes.
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
