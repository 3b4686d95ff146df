// Package pacing decides when a call may be sent so that the service does not
// refuse it. It is a pure state machine: time is an argument, and a
// [quota.Step] at a time gives a [quota.Answer]. One process runs it alone;
// for a fleet a coordinator runs it, or a twin of it, for all.
//
// A limit admits a call if every window that ends with it holds at most as
// many as the service allows. That is right for a window that is fixed, that
// slides, or that is a token bucket of that size, so that nobody needs to know
// which it is. What is stricter (a smaller bucket, another user of the key, a
// lower limit) is learned from the service's refusals.
//
// Times are microseconds; the twins compute them in the same order with the
// same roundings.
package pacing

import (
	"math/bits"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

const (
	second = int64(1e6)
	// memberLife is how long a process counts as one of the fleet.
	memberLife = 60 * second
	// mostFleet is what a share can still be computed of.
	mostFleet = 1_000_000
)

// Tuning departs from the normal machine; its zero value is the normal one.
type Tuning struct {
	// Burst is how many calls may go at once after a quiet time; 0 means a
	// sixth of the limit, but 10 at least where the limit is not less.
	Burst int
	// Late puts off the first call by a part of the time between two calls,
	// from 0 to 1, so that processes that start together do not call together.
	Late float64

	// What is left out, to see what it is good for.
	NoGuard, NoSmoothing, NoQueue, NoCoolDown, NoLearning bool
}

// State is the state of one API key's limits. It is not safe for concurrent use.
type State struct {
	tuning  Tuning
	epoch   int64
	setBack int64 // how far the clock was set back; the time goes on from the latest seen
	last    int64 // the latest time seen
	arrived int64 // tickets so far
	limits  []limit
	tickets []ticket
	members map[uint32]int64     // when each process was last seen
	seen    map[string]quota.Set // the limits that a limit_key can stand for
	recent  recent
}

// New returns the state of limits that nobody has used. The first step makes
// its time the state's epoch.
func New(limits []quota.Limit, tuning Tuning) *State {
	s := &State{tuning: tuning, members: map[uint32]int64{}, seen: map[string]quota.Set{}}
	for _, l := range limits {
		s.limits = append(s.limits, newLimit(l, tuning))
	}
	return s
}

// Share is the part of limits that one of fleet processes may take without
// asking the others. A limit that is smaller than the fleet becomes one call in
// a longer window. Long windows are not divided: what keeps a process alone is
// short beside them, and the service's refusals bound the harm.
func Share(limits []quota.Limit, fleet int) []quota.Limit {
	fleet = min(max(1, fleet), mostFleet)
	shares := make([]quota.Limit, len(limits))
	for i, l := range limits {
		shares[i] = l
		if l.Window.Microseconds() >= longWindow {
			continue
		}
		shares[i].Max = max(1, l.Max/fleet)
		// The product can be larger than 64 bits; the quotient is at most the fleet times an hour.
		high, low := bits.Mul64(uint64(l.Window), uint64(fleet*shares[i].Max))
		window, _ := bits.Div64(high, low, uint64(max(1, l.Max)))
		// A window that became long would not be smoothed, and be probed instead.
		shares[i].Window = min(time.Duration(window), time.Duration(longWindow-1)*time.Microsecond)
	}
	return shares
}

// Do takes one step at the time now, in microseconds, which is more than 0.
func (s *State) Do(now int64, step quota.Step) quota.Answer {
	s.start(now)
	now = s.last
	s.meet(now, uint32(step.ID>>32))
	for i := range s.limits {
		s.limits[i].settle(now)
	}
	var answer quota.Answer
	switch step.Kind {
	case quota.Ask:
		answer = s.ask(now, step)
	case quota.Refused:
		s.refused(now, step)
	case quota.Accepted:
		s.accepted(step)
	case quota.Unused:
		s.unused(step)
	case quota.Replay:
		s.replay(now, step.Grants)
	}
	answer.Fleet, answer.Epoch = len(s.members), s.epoch
	return answer
}

func (s *State) start(now int64) {
	if s.last == 0 {
		s.epoch = now
		for i := range s.limits {
			s.limits[i].start(now)
		}
	}
	s.setBack = max(s.setBack, s.last-now) // as far as it was set back; then it goes on
	s.last = max(s.last, now+s.setBack)
}

// meet notes that a process is there, and forgets those that are not.
func (s *State) meet(now int64, member uint32) {
	s.members[member] = now
	for other, seen := range s.members {
		if seen < now-memberLife {
			delete(s.members, other)
		}
	}
}

func (s *State) unused(step quota.Step) {
	s.leaveQueue(step.ID)
	for i := range s.limits {
		if step.Spends.Has(i) {
			s.limits[i].giveBack(s.last, step.ID)
		}
	}
}

func (s *State) replay(now int64, grants []quota.Grant) {
	for i := range s.limits {
		s.limits[i].calm(now)
		var calls []entry
		for _, g := range grants {
			if g.Spends.Has(i) {
				s.recent.add(now, g.ID)
				calls = append(calls, entry{at: now - max(0, g.Age.Microseconds()), id: g.ID})
			}
		}
		s.limits[i].replay(now, calls)
	}
}

// recent are the ids of late grants, and some more: most asks are new, and need
// not be looked for in the logs.
type recent struct {
	young, old map[uint64]struct{}
	since      int64
}

func (r *recent) add(now int64, id uint64) {
	if r.young == nil || now-r.since > recall {
		r.young, r.old, r.since = map[uint64]struct{}{}, r.young, now
	}
	r.young[id] = struct{}{}
}

func (r *recent) has(id uint64) bool {
	if _, young := r.young[id]; young {
		return true
	}
	_, old := r.old[id]
	return old
}

// calm takes away the credit for a burst: there may be calls that the state has
// not been told of yet.
func (l *limit) calm(now int64) {
	l.credit, l.creditAt = min(l.saved(now, false), l.distance()), now
}
