package pacer

import "context"

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

// line holds waiting calls in the order of their turns. Arriving, leaving and
// counting who is before take logarithmic time: a Fenwick tree counts the calls
// of the rounds.
type line struct {
	rounds  [][]*call // with calls that have left
	round   int       // that is being served
	last    map[string]int
	counts  []int
	waiting int
}

// roundOf is the round in which a new call of the tenant goes: not the one that
// is being served, or new tenants could keep all others waiting.
func (l *line) roundOf(tenant string) int { return max(l.round, l.last[tenant]) + 1 }

// before counts who would go before a new call of the tenant.
func (l *line) before(tenant string) (n int) {
	for i := min(l.roundOf(tenant)+1, len(l.rounds)); i > 0; i -= i & -i {
		n += l.counts[i]
	}
	return n
}

func (l *line) count(round, n int) {
	l.waiting += n
	for i := round + 1; i < len(l.counts); i += i & -i {
		l.counts[i] += n
	}
}

func (l *line) push(c *call) {
	if l.roundOf(c.tenant)+1 >= len(l.counts) {
		l.renumber()
	}
	c.waits = true
	l.put(c, l.roundOf(c.tenant))
}

func (l *line) put(c *call, round int) {
	for len(l.rounds) <= round {
		l.rounds = append(l.rounds, nil)
	}
	l.rounds[round] = append(l.rounds[round], c)
	c.round, l.last[c.tenant] = round, round
	l.count(round, 1)
}

// renumber drops the rounds that are over or empty, and tenants without calls.
func (l *line) renumber() {
	calls, was := l.all(), l.round
	*l = line{last: map[string]int{}, counts: make([]int, 2*len(calls)+64)}
	next := 0
	for _, c := range calls {
		if c.round > was {
			was, next = c.round, next+1
		}
		l.put(c, next)
	}
}

func (l *line) pop() *call {
	for ; ; l.round++ {
		for i, c := range l.rounds[l.round] {
			if l.remove(c) {
				l.rounds[l.round] = l.rounds[l.round][i+1:]
				return c
			}
		}
	}
}

// remove reports false where the call waits no more.
func (l *line) remove(c *call) (waited bool) {
	if waited = c.waits; waited {
		c.waits = false
		l.count(c.round, -1)
	}
	return waited
}

func (l *line) all() (calls []*call) {
	for _, round := range l.rounds[l.round:] {
		for _, c := range round {
			if c.waits {
				calls = append(calls, c)
			}
		}
	}
	return calls
}
