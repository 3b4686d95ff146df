package pacer

import (
	"context"
	"math/rand/v2"
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
	deadline int64 // of the pacer's clock; 0: none
	maxWait  int64 // until the limits let anybody go

	answered chan struct{} // closed when the call has its permit, or its refusal
	permit   *permit
	err      error

	round, number int // tenants take turns, each with a call in every round
	waits         bool
	weight        uint32
	size          int // of the tree below it
	left, right   *waiter
}

// line holds waiting calls in the order of their turns: a search tree that
// random weights keep flat (a treap). Arriving, leaving and counting who is
// before take logarithmic time.
type line struct {
	root    *waiter
	last    map[string]int // round of each tenant's last call
	round   int            // that is being served
	arrived int
}

func (l *line) len() int { return l.root.len() }

func (w *waiter) len() int {
	if w == nil {
		return 0
	}
	return w.size
}

// roundOf is the round in which a new call of the tenant goes: not the one that
// is being served, or new tenants could keep all others waiting.
func (l *line) roundOf(tenant string) int { return max(l.round, l.last[tenant]) + 1 }

// before counts who would go before a new call of the tenant.
func (l *line) before(tenant string) int {
	first, rest := split(l.root, l.roundOf(tenant), l.arrived)
	defer func() { l.root = merge(first, rest) }()
	return first.len()
}

func (l *line) push(w *waiter) {
	if l.last == nil || len(l.last) > 2*l.len()+64 {
		l.forgetTenants()
	}
	w.round, w.number, w.waits = l.roundOf(w.tenant), l.arrived, true
	w.weight, w.size = rand.Uint32(), 1
	l.arrived++
	l.last[w.tenant] = w.round
	first, rest := split(l.root, w.round, w.number)
	l.root = merge(merge(first, w), rest)
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
	w := l.root
	for w.left != nil {
		w = w.left
	}
	l.remove(w)
	l.round = w.round
	return w
}

// remove reports false where the call waits no more.
func (l *line) remove(w *waiter) bool {
	if !w.waits {
		return false
	}
	first, rest := split(l.root, w.round, w.number)
	_, rest = split(rest, w.round, w.number+1)
	l.root, w.waits = merge(first, rest), false
	return true
}

// all are the waiting calls, in the order of their turns.
func (l *line) all() (calls []*waiter) {
	var walk func(*waiter)
	walk = func(w *waiter) {
		if w != nil {
			walk(w.left)
			calls = append(calls, w)
			walk(w.right)
		}
	}
	walk(l.root)
	return calls
}

// split parts a tree into the calls that go before a turn, and the others.
func split(w *waiter, round, number int) (before, rest *waiter) {
	switch {
	case w == nil:
		return nil, nil
	case w.round < round || w.round == round && w.number < number:
		w.right, rest = split(w.right, round, number)
		before = w
	default:
		before, w.left = split(w.left, round, number)
		rest = w
	}
	w.size = w.left.len() + 1 + w.right.len()
	return before, rest
}

// merge joins two trees, of which all of the first goes before the second.
func merge(a, b *waiter) *waiter {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.weight > b.weight:
		a.right = merge(a.right, b)
		a.size = a.left.len() + 1 + a.right.len()
		return a
	}
	b.left = merge(a, b.left)
	b.size = b.left.len() + 1 + b.right.len()
	return b
}
