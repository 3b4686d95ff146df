package quota

import "slices"

// line holds waiting calls in the order of their turns: tenants take turns, each with
// one call in every round.
type line struct {
	calls   []*Waiter         // by rounds; some wait no more
	waiting int               // how many do
	round   int               // of the call that went last
	tenants map[string]tenant // that have calls here
}

type tenant struct {
	waiting int
	last    int // the round of its last call
}

// push puts a call into its place, and counts who goes before it. A new call does not go
// in the round that is being served, or new tenants could keep all others waiting. One
// that the service has refused does, since it waited before.
func (l *line) push(w *Waiter) (before int) {
	t := l.tenants[w.Tenant]
	w.round = l.round
	if !w.Refused {
		w.round = max(l.round, t.last) + 1
		t.last = w.round
	}
	t.waiting++
	l.tenants[w.Tenant] = t
	before, _ = slices.BinarySearchFunc(l.all(), w.round+1, func(w *Waiter, round int) int { return w.round - round })
	l.calls = slices.Insert(l.calls, before, w)
	l.waiting++
	w.waits = true
	return before
}

// first is the call that goes next; nil if nobody waits. Its round begins only when it
// leaves: until then another tenant can still join that round.
func (l *line) first() *Waiter {
	if l.waiting == 0 {
		clear(l.calls) // for the garbage collector
		l.calls = l.calls[:0]
		return nil
	}
	for !l.calls[0].waits {
		l.calls[0] = nil // for the garbage collector
		l.calls = l.calls[1:]
	}
	return l.calls[0]
}

func (l *line) pop() *Waiter {
	w := l.first()
	if w != nil {
		l.remove(w)
		l.round = w.round
	}
	return w
}

// remove takes out a call, if it waits. The line drops it later, since many can leave
// at once. The place of a tenant's last call is free for its next one.
func (l *line) remove(w *Waiter) {
	if !w.waits {
		return
	}
	w.waits = false
	l.waiting--
	t := l.tenants[w.Tenant]
	if t.waiting--; t.last == w.round {
		t.last--
	}
	if l.tenants[w.Tenant] = t; t.waiting == 0 {
		delete(l.tenants, w.Tenant)
	}
}

// all are those who wait, in order.
func (l *line) all() []*Waiter {
	if len(l.calls) > l.waiting {
		l.calls = slices.DeleteFunc(l.calls, func(w *Waiter) bool { return !w.waits })
	}
	return l.calls
}
