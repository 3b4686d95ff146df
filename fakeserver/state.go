package fakeserver

import (
	"maps"
	"net/netip"
	"slices"
	"time"
)

// world is the part of a Server that Reset forgets. The server's lock guards
// it.
type world struct {
	state
	resets int // counts the Resets before this world
	traces int
	log    callLog

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
	w := &world{state: newState(), log: callLog{limit: c.callLimit}}
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
		c = newCounts(sliding)
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
