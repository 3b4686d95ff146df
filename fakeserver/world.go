package fakeserver

import (
	"net/netip"
	"strconv"
	"time"
)

// world is everything that Reset forgets. The server's lock guards it.
type world struct {
	state
	resets  int // how many worlds came before
	traces  int
	journal journal

	// Never changed in place, so that a copy of a slice is a snapshot.
	scripts    []*Script
	injections []*Injection
}

// state is what the service itself remembers: what Snapshot copies.
type state struct {
	keys    map[digest]*apiKey
	agents  map[string]*agent
	ordered []*agent // in the order of creation
	numbers int      // the number of the last agent
	ips     map[netip.Addr]*counts
	sweepAt int // the number of addresses at which closed windows are dropped

	byokUnavailable bool
}

func newWorld(c config, now time.Time) *world {
	w := &world{state: newState(), journal: journal{limit: c.callLimit}}
	w.issue(c, KeyOptions{Plan: c.plan}, now)
	return w
}

// newState is a state without anything in it.
func newState() state {
	return state{
		keys:    map[digest]*apiKey{},
		agents:  map[string]*agent{},
		ips:     map[netip.Addr]*counts{},
		sweepAt: minSweep,
	}
}

// nextTrace returns the next trace identifier. Their form is not shown in the
// interface; the fake counts.
func (w *world) nextTrace() string {
	w.traces++
	return numbered("trace", w.traces)
}

// numbered is kind, an underscore, and n in at least six digits.
func numbered(kind string, n int) string {
	digits := strconv.Itoa(n)
	return kind + "_" + "000000"[min(len(digits), 6):] + digits
}
