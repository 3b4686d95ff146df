package quota

import (
	"maps"
	"slices"
)

// line holds waiting calls in the order of their turns: tenants take turns, each with
// one call in every round.
type line struct {
	calls   []*Waiter      // by rounds; some wait no more
	waiting int            // how many do
	gone    int            // how many went
	round   int            // of the call that went last
	last    map[string]int // the round of each tenant's last call
}

// place sets the round of a call and counts who goes before it. A new call does not go
// in the round that is being served, or new tenants could keep all others waiting. One
// that the service has refused does, since it waited before.
func (l *line) place(w *Waiter) (before int) {
	w.round = l.round
	if !w.Refused {
		w.round = max(l.round, l.last[w.Tenant]) + 1
	}
	before, _ = slices.BinarySearchFunc(l.all(), w.round+1, func(w *Waiter, round int) int { return w.round - round })
	return before
}

// push puts a call into its place.
func (l *line) push(w *Waiter, before int) {
	l.calls = slices.Insert(l.calls, before, w)
	l.waiting++
	if w.waits, w.number = true, l.gone+before+1; w.Refused {
		return
	}
	l.last[w.Tenant] = w.round
}

// first is the call that goes next; nil if nobody waits. Its round begins only when it
// leaves: until then another tenant can still join that round.
func (l *line) first() *Waiter {
	for len(l.calls) > 0 && !l.calls[0].waits {
		l.calls[0] = nil // for the garbage collector
		l.calls = l.calls[1:]
	}
	if len(l.calls) == 0 {
		clear(l.last)
		return nil
	}
	return l.calls[0]
}

func (l *line) pop() *Waiter {
	w := l.first()
	if w != nil {
		l.remove(w)
		l.gone, l.round = l.gone+1, w.round
		if l.last[w.Tenant] <= l.round {
			delete(l.last, w.Tenant)
		}
	}
	return w
}

// remove takes out a call, if it waits. The line drops it later, since many can leave
// at once.
func (l *line) remove(w *Waiter) {
	if w.waits {
		w.waits = false
		l.waiting--
	}
}

// all are those who wait, in order.
func (l *line) all() []*Waiter {
	if len(l.calls) > l.waiting {
		l.calls = slices.DeleteFunc(l.calls, func(w *Waiter) bool { return !w.waits })
		maps.DeleteFunc(l.last, func(_ string, round int) bool { return round <= l.round })
	}
	return l.calls
}
