package quota

import (
	"slices"
	"sort"
)

// line holds waiting calls in the order in which they go. Tenants take turns: in each
// round, one call of every tenant goes.
type line struct {
	calls   []*Waiter         // ordered by round
	round   int               // the round of the call that went last
	tenants map[string]tenant // the tenants with waiting calls
}

type tenant struct {
	waiting int
	last    int // the round of the tenant's last call
}

// push puts a call into its place, and returns how many calls go before it. A new call joins
// the round after the current one, or after the last call of its tenant if that is later. It
// never joins the current round: a stream of new tenants could then keep all others waiting.
// An Unserved call joins the current round, because it has waited before.
func (l *line) push(w *Waiter) (before int) {
	t := l.tenants[w.Tenant]
	w.round = l.round
	if !w.Unserved {
		w.round = max(l.round, t.last) + 1
		t.last = w.round
	}
	t.waiting++
	l.tenants[w.Tenant] = t
	before = sort.Search(len(l.calls), func(i int) bool { return l.calls[i].round > w.round })
	l.calls = slices.Insert(l.calls, before, w)
	w.inLine = true
	return before
}

// remove takes a waiting call out. If it had its tenant's last round, that round is free for
// the tenant's next call.
func (l *line) remove(w *Waiter) {
	i := sort.Search(len(l.calls), func(i int) bool { return l.calls[i].round >= w.round }) // because 100,000 calls may leave at once
	if i += slices.Index(l.calls[i:], w); i == 0 && len(l.calls) > 1 {
		l.calls[0], l.calls = nil, l.calls[1:] // the usual case in a long line: no other call moves
	} else {
		l.calls = slices.Delete(l.calls, i, i+1)
	}
	w.inLine = false
	t := l.tenants[w.Tenant]
	if t.waiting--; t.last == w.round {
		t.last--
	}
	l.tenants[w.Tenant] = t
	if t.waiting == 0 {
		delete(l.tenants, w.Tenant)
	}
}
