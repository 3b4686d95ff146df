package pacer

import "slices"

// class is what calls have in common that take turns.
type class struct {
	Kinds kinds
	Batch bool
}

// ticket is the place of a process's waiting calls of a class. Tickets go by rank,
// and then in the order in which they were taken.
type ticket struct {
	class
	Member int64
	Passed int   // interactive calls that went before it, the first batch ticket
	Calls  int64 // that it will take at once
	Due    int64 // when the process is expected back
}

const (
	ticketFor  = 1500 * int64(1000) // behind its Due it lapses
	batchTurn  = 8                  // one of so many grants goes to batch calls
	mostGrants = 10
)

// answer says which calls may go, by the state's clock, and when the others will,
// by the pacer's.
type answer struct {
	grants []int64
	offset int64  // between the clocks
	due    int64  // the next of the others
	opens  int64  // when the limits would let somebody go, or the service has told so
	gap    int64  // of the process's turns
	extra  int64  // added to gap while a burst is made up for
	limit  *rule  // that keeps them waiting
	key    string // of the limit, or in the service's words what its refusal shut
}

// ask grants calls of a process where so many wait, and keeps a place for those
// that have to go on waiting. It grants more than one where the store is so far
// away that the processes would be in each other's way.
func (m *machine) ask(c class, waits int64) answer {
	pace := int64(1)
	for b := range m.budgets(c.Kinds) {
		pace = max(pace, b.pace)
	}
	t := ticket{class: c, Member: m.member, Calls: min(waits, mostGrants, max(1, m.took*m.took/pace/pace))}
	var got answer
	grants := m.grants[:0]
	for int64(len(grants)) < t.Calls {
		if got = m.turn(t); got.due > m.Now+6*m.took { // so early that the way to the store is hidden
			break
		}
		at := max(got.due, m.Now)
		grants = append(grants, at)
		m.spend(c.Kinds, at)
		if i := m.firstBatch(); i >= 0 && !t.Batch {
			m.Tickets[i].Passed++
		}
	}
	granted := int64(len(grants))
	if granted > 0 { // who has got some goes to the end of the line
		m.withdraw(c)
	}
	if t.Calls = min(t.Calls, waits-granted); t.Calls > 0 {
		got = m.turn(t)
	}
	got.grants, got.offset, got.due, got.opens = grants, m.offset, got.due-m.offset, got.opens-m.offset
	return got
}

func (t ticket) same(o ticket) bool {
	return o.Member == t.Member && o.class == t.class
}

func (m *machine) withdraw(c class) {
	m.Tickets = slices.DeleteFunc(m.Tickets, ticket{class: c, Member: m.member}.same)
}

// turn forecasts when a ticket comes to its turn: after the tickets that go before
// it and are due by then. It keeps the ticket, in its old place where it has one.
func (m *machine) turn(t ticket) answer {
	if !slices.ContainsFunc(m.Tickets, t.same) {
		m.Tickets = append(m.Tickets, t)
	}
	slices.SortStableFunc(m.Tickets, func(a, b ticket) int { return a.rank() - b.rank() })
	place := slices.IndexFunc(m.Tickets, t.same)
	var before [maxLimits]int64 // calls that go first
	got := m.earliest(t.Kinds, &before)
	opens, rivals := max(got.due, m.last(t.Kinds).Told), int64(1)
	for i, other := range m.Tickets {
		if i != place && other.Kinds&got.limit.counts != 0 {
			rivals++
		}
		if i < place && other.Due <= got.due+got.gap {
			for b := range m.budgets(other.Kinds) {
				before[b.index] += other.Calls
			}
			got = m.earliest(t.Kinds, &before)
		}
	}
	m.Tickets[place].Calls, m.Tickets[place].Due = t.Calls, got.due
	got.opens, got.gap, got.extra = opens, rivals*got.gap, rivals*got.extra
	return got
}

// rank puts interactive tickets before batch ones, but the first batch ticket
// before all when its turn has come.
func (t ticket) rank() int {
	switch {
	case t.Passed >= batchTurn-1:
		return 0
	case !t.Batch:
		return 1
	}
	return 2
}

func (m *machine) firstBatch() int {
	return slices.IndexFunc(m.Tickets, func(t ticket) bool { return t.Batch })
}

// earliest is when all limits of a kind let a call go that has others before it.
// What a gate holds back is put down to the first of them, under the gate's key.
func (m *machine) earliest(k kinds, before *[maxLimits]int64) answer {
	shut := m.last(k)
	got := answer{due: max(m.Now, shut.Opens), limit: &m.rules[0]}
	for b := range m.budgets(k) {
		at := b.next(before[b.index])
		if at > got.due || got.limit.counts&k == nothing {
			got.due, got.limit = max(at, got.due), b.rule
		}
		if !b.isLong() {
			b.now = at
			got.gap = max(got.gap, b.pace*b.calls)
			got.extra = max(got.extra, b.widest(1)-got.gap)
		}
	}
	if got.key = got.limit.Key; got.due == shut.Opens {
		got.key = shut.Key
	}
	return got
}
