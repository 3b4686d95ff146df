package fakeserver

import (
	"fmt"
	"net/netip"
)

// world is everything that Reset forgets. The server's lock guards it.
type world struct {
	keys    map[digest]*apiKey
	agents  map[string]*agent
	ordered []*agent // in the order of creation
	ips     map[netip.Addr]*counts
	sweepAt int // the number of addresses at which closed windows are dropped
	traces  int
	journal journal
	scripts []*Script // never changed in place, so that a copy of the slice is a snapshot

	byokUnavailable bool
}

func newWorld(c config) *world {
	w := &world{
		keys:    map[digest]*apiKey{},
		agents:  map[string]*agent{},
		ips:     map[netip.Addr]*counts{},
		sweepAt: minSweep,
		journal: journal{limit: c.callLimit},
	}
	w.issue(KeyOptions{}, c.sliding)
	return w
}

// nextTrace returns the next trace identifier. Their form is not shown in the
// interface; the fake counts.
func (w *world) nextTrace() string {
	w.traces++
	return numbered("trace", w.traces)
}

func numbered(kind string, n int) string { return fmt.Sprintf("%s_%06d", kind, n) }
