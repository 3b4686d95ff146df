package quota

import "slices"

// line holds waiting calls in the order in which they go. Tenants take turns: in each
// round, one call of every tenant goes.
type line struct {
	calls   []*Waiter         // ordered by round
	round   int               // of the call that went last
	tenants map[string]tenant // the tenants with waiting calls
}

type tenant struct {
	waiting int
	last    int // the round of its last call
}

// push puts a call into its place, and returns how many calls go before it. A new call
// joins the round after the current one at the earliest: otherwise ever new tenants could
// keep all others waiting. A call that the service has refused joins the current round,
// because it has waited before.
func (l *line) push(w *Waiter) (before int) {
	t := l.tenants[w.Tenant]
	w.round = l.round
	if !w.Refused {
		w.round = max(l.round, t.last) + 1
		t.last = w.round
	}
	t.waiting++
	l.tenants[w.Tenant] = t
	before, _ = slices.BinarySearchFunc(l.calls, w.round+1, byRound)
	l.calls = slices.Insert(l.calls, before, w)
	w.waits = true
	return before
}

func byRound(w *Waiter, round int) int { return w.round - round }

// next takes out the call that goes next.
func (l *line) next() *Waiter {
	w := l.calls[0]
	l.remove(w)
	l.round = w.round
	return w
}

// remove takes out a call that waits. If it was the last of its tenant, the tenant's next
// call takes its round.
func (l *line) remove(w *Waiter) {
	i, _ := slices.BinarySearchFunc(l.calls, w.round, byRound) // 100,000 calls may leave at once
	if i += slices.Index(l.calls[i:], w); i == 0 {
		l.calls[0], l.calls = nil, l.calls[1:] // the usual case, without moving the others
	} else {
		l.calls = slices.Delete(l.calls, i, i+1)
	}
	w.waits = false
	t := l.tenants[w.Tenant]
	if t.waiting--; t.last == w.round {
		t.last--
	}
	if l.tenants[w.Tenant] = t; t.waiting == 0 {
		delete(l.tenants, w.Tenant)
	}
}
