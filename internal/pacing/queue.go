package pacing

import (
	"cmp"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

const (
	// aging is how much older a batch call must be than an interactive one to
	// go before it: it waits longer, but not for ever.
	aging = 60 * second
	// patience is the longest that one who waits stays away: quota may come
	// free earlier than it was told.
	patience = 5 * second
	// lease is how long a ticket outlives the time at which its owner was to
	// ask again; after that the owner is taken for dead.
	lease = second
	// farthest is the longest wait there is: it can still be added to.
	farthest = 100 * 365 * 24 * 3600 * second
)

// Patience is the longest that one who waits may stay away from the state
// before asking again.
const Patience = time.Duration(patience) * time.Microsecond

// ticket is a place in the queue. A process has one for each set of limits
// that its calls spend, and takes a new one after each grant: so a process
// with many callers gets no more than one with few.
type ticket struct {
	id      uint64
	spends  quota.Set
	since   int64 // when it was first asked for
	arrival int64 // orders tickets of the same time
	batch   bool
	expires int64
}

func (t *ticket) order() int64 {
	if t.batch {
		return t.since + aging
	}
	return t.since
}

func (s *State) ask(now int64, step quota.Step) quota.Answer {
	s.tickets = slices.DeleteFunc(s.tickets, func(t ticket) bool { return t.expires < now })
	if s.granted(step) {
		return quota.Answer{Granted: true, Probe: s.isProbe(step)}
	}
	waited := s.enqueue(now, step)
	crowd := s.crowd(step.ID, waited)
	ahead, alone := s.ahead(now, step, crowd)
	at, binding := s.earliest(now, step.Spends, ahead, crowd)
	probe := at > now && s.mayProbe(now, step.Spends, ahead, crowd)
	if at <= now || probe {
		s.grant(now, step, crowd, probe)
		return quota.Answer{Granted: true, Probe: probe}
	}
	s.hold(step.ID, now+min(at-now, patience)+lease)
	return quota.Answer{
		Wait:  duration(max(at-now, 1000)),
		Alone: duration(alone - now),
		Gap:   duration(s.limits[binding].gap() * max(1, int64(crowd[binding]))),
		Limit: binding,
	}
}

func duration(micros int64) time.Duration {
	return time.Duration(min(micros, farthest)) * time.Microsecond
}

// counts are numbers of tickets, by limit.
type counts [quota.MaxLimits]int

func (c *counts) add(spends quota.Set) {
	for i := range c {
		if spends.Has(i) {
			c[i]++
		}
	}
}

// granted reports that the step was granted before: its answer was lost.
func (s *State) granted(step quota.Step) bool {
	if !s.recent.has(step.ID) {
		return false
	}
	for i := range s.limits {
		if step.Spends.Has(i) {
			return s.limits[i].find(s.last, step.ID) >= 0
		}
	}
	return false
}

// enqueue gives the step its ticket, and reports whether it had one: then it
// has been turned away before.
func (s *State) enqueue(now int64, step quota.Step) (waited bool) {
	i := slices.IndexFunc(s.tickets, func(t ticket) bool { return t.id == step.ID })
	if waited = i >= 0; waited {
		s.tickets[i].batch = step.Batch
	} else {
		s.arrived++
		s.tickets = append(s.tickets, ticket{
			id: step.ID, spends: step.Spends, since: now, arrival: s.arrived, batch: step.Batch, expires: now,
		})
	}
	slices.SortFunc(s.tickets, func(a, b ticket) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.arrival, b.arrival))
	})
	return waited
}

func (s *State) hold(id uint64, expires int64) {
	for i := range s.tickets {
		if s.tickets[i].id == id {
			s.tickets[i].expires = expires
		}
	}
}

func (s *State) leaveQueue(id uint64) {
	s.tickets = slices.DeleteFunc(s.tickets, func(t ticket) bool { return t.id == id })
}

// crowd counts for each limit those that were turned away and wait.
func (s *State) crowd(id uint64, waited bool) *counts {
	var crowd counts
	for _, t := range s.tickets {
		if t.id == id && !waited {
			continue
		}
		crowd.add(t.spends)
	}
	return &crowd
}

// ahead counts for each limit the tickets that go before the step's. One that
// another limit keeps longer than the step itself has to wait does not count,
// or a daily limit would hold up those that it does not concern. alone is when
// the step could go if there were none.
func (s *State) ahead(now int64, step quota.Step, crowd *counts) (_ *counts, alone int64) {
	var ahead, none counts
	alone, _ = s.earliest(now, step.Spends, &none, crowd)
	if s.tuning.NoQueue {
		return &ahead, alone
	}
	for _, t := range s.tickets {
		if t.id == step.ID {
			break
		}
		if at, _ := s.earliest(now, t.spends, &none, crowd); at > alone {
			continue
		}
		ahead.add(t.spends)
	}
	return &ahead, alone
}

// earliest is when a call may go that spends the given limits, and the limit
// that keeps it longest.
func (s *State) earliest(now int64, spends quota.Set, ahead, crowd *counts) (at int64, binding int) {
	at = now
	for i := range s.limits {
		if !spends.Has(i) {
			continue
		}
		if opens := s.limits[i].earliest(now, ahead[i], crowd[i] > 0); opens > at {
			at, binding = opens, i
		}
	}
	return at, binding
}

func (s *State) grant(now int64, step quota.Step, crowd *counts, probe bool) {
	s.leaveQueue(step.ID)
	s.recent.add(now, step.ID)
	for i := range s.limits {
		if step.Spends.Has(i) {
			s.limits[i].take(now, step.ID, crowd[i] > 0, probe)
		}
	}
}
