package quota

import (
	"maps"
	"slices"
)

// line holds waiting calls in the order of their turns: tenants take turns, each with
// one call in every round.
type line struct {
	calls []*Waiter      // by rounds; some have left
	left  int            // how many of them
	gone  int            // how many went
	round int            // of the call that went last
	last  map[string]int // the round of each tenant's last call
}

func (l *line) waiting() int { return len(l.calls) - l.left }

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
	if w.waits, w.number = true, l.gone+before+1; w.Refused {
		return
	}
	l.last[w.Tenant] = w.round
}

// first is the call that goes next; nil if nobody waits. Its round begins only when it
// leaves: until then another tenant can still join that round.
func (l *line) first() *Waiter {
	for len(l.calls) > 0 && !l.calls[0].waits {
		l.calls = l.calls[1:]
		l.left--
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
		w.waits = false
		l.calls[0] = nil
		l.calls, l.gone, l.round = l.calls[1:], l.gone+1, w.round
		if l.last[w.Tenant] <= l.round {
			delete(l.last, w.Tenant)
		}
	}
	return w
}

// remove takes out a call, if it waits. The line drops it later, since many can leave at
// once.
func (l *line) remove(w *Waiter) {
	if w.waits {
		w.waits = false
		l.left++
	}
}

// all are those who wait, in order.
func (l *line) all() []*Waiter {
	if l.left > 0 {
		l.calls = slices.DeleteFunc(l.calls, func(w *Waiter) bool { return !w.waits })
		l.left = 0
		maps.DeleteFunc(l.last, func(_ string, round int) bool { return round <= l.round })
	}
	return l.calls
}
