package pacer

import (
	"container/heap"
	"context"
)

// Priority orders calls that wait in a [Pacer].
type Priority int

const (
	// PriorityInteractive is for calls that a person waits for; the default.
	PriorityInteractive Priority = iota
	// PriorityBatch is for calls that can wait: interactive ones go first. So
	// that batch calls do not starve, every eighth permit goes to one.
	PriorityBatch
)

type (
	priorityKey struct{}
	tenantKey   struct{}
)

// WithPriority returns a context under which calls have the given priority.
func WithPriority(ctx context.Context, priority Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, priority)
}

// WithTenant returns a context under which calls belong to a tenant, such as
// one of your customers. The tenants of a process that wait with the same
// priority take turns, so one with a thousand waiting calls does not delay one
// that has a single call. Calls without a tenant are one tenant together.
func WithTenant(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, tenantKey{}, id)
}

// waiter is a call that waits.
type waiter struct {
	tenant   string
	round    int           // tenants take turns: it goes in this one
	number   int           // in the order of arrival
	deadline int64         // of the pacer's clock; 0: none
	maxWait  int64         // until the limits let anybody go
	places   [2]int        // in the line's heaps
	ready    chan *verdict // holds one
}

// verdict ends a wait: a permit, or the refusal.
type verdict struct {
	permit *permit
	err    error
}

// line holds waiting calls, in the order of their turns and in that of their
// deadlines. Arriving, leaving and counting who is before take logarithmic time.
type line struct {
	turns     waiters
	deadlines waiters
	last      map[string]int // round of each tenant's last call
	ranks     ranks
	round     int // that is being served
	arrived   int
	maxWait   int64 // the least of those that wait
}

func (l *line) len() int { return len(l.turns.list) }

// roundOf is the round in which a new call of the tenant goes: not the one that
// is being served, or new tenants could keep all others waiting.
func (l *line) roundOf(tenant string) int { return max(l.round, l.last[tenant]) + 1 }

// before counts who would go before a new call of the tenant.
func (l *line) before(tenant string) int { return l.ranks.upTo(l.roundOf(tenant)) }

func (l *line) push(w *waiter) {
	if l.len() == 0 {
		l.turns.less, l.deadlines.less, l.deadlines.which = byTurn, byDeadline, 1
		l.maxWait = w.maxWait
	}
	if l.last == nil || len(l.last) > 2*l.len()+64 {
		l.forgetTenants()
	}
	w.round, w.number = l.roundOf(w.tenant), l.arrived
	l.arrived++
	l.last[w.tenant], l.maxWait = w.round, min(l.maxWait, w.maxWait)
	l.ranks.grow(l, w.round)
	l.ranks.add(w.round, 1)
	heap.Push(&l.turns, w)
	if w.deadline > 0 {
		heap.Push(&l.deadlines, w)
	}
}

// forgetTenants drops those whose calls have all had their turn.
func (l *line) forgetTenants() {
	kept := map[string]int{}
	for tenant, last := range l.last {
		if last > l.round {
			kept[tenant] = last
		}
	}
	l.last = kept
}

// pop takes the call whose turn it is.
func (l *line) pop() *waiter {
	w := l.turns.list[0]
	l.remove(w)
	l.round = w.round
	return w
}

// remove reports false where the call waits no more.
func (l *line) remove(w *waiter) bool {
	if w.places[0] >= len(l.turns.list) || l.turns.list[w.places[0]] != w {
		return false
	}
	heap.Remove(&l.turns, w.places[0])
	if w.deadline > 0 {
		heap.Remove(&l.deadlines, w.places[1])
	}
	l.ranks.add(w.round, -1)
	return true
}

// waiters is a heap of calls that know their place in it.
type waiters struct {
	list  []*waiter
	which int // of waiter.places
	less  func(a, b *waiter) bool
}

func byTurn(a, b *waiter) bool {
	return a.round < b.round || a.round == b.round && a.number < b.number
}

func byDeadline(a, b *waiter) bool { return a.deadline < b.deadline }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h *waiters) Len() int           { return len(h.list) }
func (h *waiters) Less(i, j int) bool { return h.less(h.list[i], h.list[j]) }

func (h *waiters) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].places[h.which], h.list[j].places[h.which] = i, j
}

func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.places[h.which] = len(h.list)
	h.list = append(h.list, w)
}

func (h *waiters) Pop() any {
	last := len(h.list) - 1
	w := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return w
}

// ranks counts the calls of each round, from first on, as a Fenwick tree.
type ranks struct {
	first int
	sums  []int
}

func (r *ranks) add(round, n int) {
	for i := round - r.first + 1; i <= len(r.sums); i += i & -i {
		r.sums[i-1] += n
	}
}

// upTo counts the calls of all rounds up to one.
func (r *ranks) upTo(round int) (n int) {
	for i := min(round-r.first+1, len(r.sums)); i > 0; i -= i & -i {
		n += r.sums[i-1]
	}
	return n
}

// grow makes room for a round, and starts at the first one that is needed. It
// is called for every arrival, and does something for few of them.
func (r *ranks) grow(l *line, round int) {
	if round-r.first < len(r.sums) {
		return
	}
	*r = ranks{first: l.round, sums: make([]int, 64+2*(round-l.round))}
	for _, w := range l.turns.list {
		r.add(w.round, 1)
	}
}
