package pacer

import "slices"

// ticket is the place of a process's waiting calls of one kind. Who has a ticket
// goes in its turn; tickets are kept in the order in which they were taken.
type ticket struct {
	Member int64
	Kinds  kinds
	Batch  bool
	Calls  int64 // that it will take at once
	Due    int64 // when the process is expected back
}

const (
	ticketFor  = 1500 * int64(1000) // behind its Due it lapses
	batchTurn  = 8                  // one of so many grants goes to batch calls
	mostGrants = 10
)

// ask is a process's question whether calls may be sent.
type ask struct {
	member int64
	kinds  kinds
	batch  bool
	ahead  int64 // grants are taken so long before they are due
	took   int64 // what a step takes
	waits  int64 // calls that wait
}

// answer says when calls may go, and when the others will.
type answer struct {
	forecast
	grants [mostGrants]int64
	n      int // of them
}

// forecast is when the calls that wait will go.
type forecast struct {
	due   int64 // the next of them
	opens int64 // when the limits would let somebody go
	gap   int64 // of the process's turns
	extra int64 // added to gap while a burst is made up for
	limit int   // that keeps it waiting
}

// ask grants calls, and keeps a place for those that have to wait.
func (m *machine) ask(a ask) (got answer) {
	m.Members[a.member] = m.now
	t := ticket{Member: a.member, Kinds: a.kinds, Batch: a.batch, Calls: min(a.waits, m.atOnce(a))}
	place := m.place(t)
	for ; a.waits > 0; a.waits-- {
		got.forecast = m.turn(t, place)
		if got.n == int(t.Calls) || got.due > m.now+max(a.ahead, 6*a.took) {
			break
		}
		at := max(got.due, m.now)
		m.spend(a.kinds, at)
		if t.Batch {
			m.Passed = 0
		} else if m.firstBatch() >= 0 {
			m.Passed++
		}
		got.grants[got.n] = at
		got.n++
	}
	if got.n > 0 || a.waits == 0 { // who has got some goes to the end of the line
		m.withdraw(a)
	}
	if t.Calls = min(t.Calls, a.waits); t.Calls > 0 {
		place = m.place(t)
		got.forecast = m.turn(t, place)
		m.Tickets[place].Calls, m.Tickets[place].Due = t.Calls, got.due
	}
	return got
}

// atOnce is how many calls a step takes: more than one where the store is so
// far away that the processes would be in each other's way.
func (m *machine) atOnce(a ask) int64 {
	pace := int64(1)
	for b := range m.spent(a.kinds) {
		pace = max(pace, b.pace)
	}
	return min(mostGrants, max(1, a.took*a.took/pace/pace))
}

// place is the ticket's place among all, or a new one at the end.
func (m *machine) place(t ticket) int {
	if i := slices.IndexFunc(m.Tickets, t.same); i >= 0 {
		return i
	}
	m.Tickets = append(m.Tickets, t)
	return len(m.Tickets) - 1
}

func (t ticket) same(o ticket) bool {
	return o.Member == t.Member && o.Kinds == t.Kinds && o.Batch == t.Batch
}

// withdraw gives up the place of a process's calls of a kind.
func (m *machine) withdraw(a ask) {
	m.Tickets = slices.DeleteFunc(m.Tickets, ticket{Member: a.member, Kinds: a.kinds, Batch: a.batch}.same)
}

// turn forecasts when the ticket at a place comes to its turn: after the tickets
// that go before it and are due by then.
func (m *machine) turn(t ticket, place int) forecast {
	var before [maxLimits]int64 // calls that go first
	got := m.earliest(t.Kinds, &before)
	opens, rivals := got.due, int64(1)
	for i, other := range m.Tickets {
		if i == place {
			continue
		}
		if other.Kinds&m.rules[got.limit].counts != 0 {
			rivals++
		}
		if m.rank(i) < m.rank(place) && other.Due <= got.due+got.gap {
			for b := range m.spent(other.Kinds) {
				before[b.index] += other.Calls
			}
			got = m.earliest(t.Kinds, &before)
		}
	}
	got.opens, got.gap, got.extra = opens, rivals*got.gap, rivals*got.extra
	return got
}

// rank orders the tickets: interactive ones before batch ones, in the order in
// which they were taken; but the first batch ticket goes before all when its
// turn has come.
func (m *machine) rank(place int) int {
	switch {
	case !m.Tickets[place].Batch:
		return place
	case m.Passed >= batchTurn-1 && place == m.firstBatch():
		return -1
	}
	return len(m.Tickets) + place
}

func (m *machine) firstBatch() int {
	return slices.IndexFunc(m.Tickets, func(t ticket) bool { return t.Batch })
}

// earliest is when all limits of a kind let a call go that has others before it.
// What a gate holds back is put down to the first of them.
func (m *machine) earliest(k kinds, before *[maxLimits]int64) forecast {
	first := slices.IndexFunc(m.rules, func(r rule) bool { return r.counts&k != 0 })
	got := forecast{due: max(m.now, m.Gates.opens(k)), limit: max(0, first)}
	for b := range m.spent(k) {
		at := b.next(before[b.index])
		if at > got.due {
			got.due, got.limit = at, b.index
		}
		if !b.isLong() {
			b.now = at
			got.gap = max(got.gap, b.calls*b.pace)
			got.extra = max(got.extra, b.widest(1)-got.gap)
		}
	}
	return got
}
