package pacer

import (
	"iter"
	"slices"
)

// machine is the state machine: state, time and a question give an answer.
type machine struct {
	*state
	rules  []rule
	now    int64
	calls  int64 // what each counts as: more than 1 for a process on its share
	lonely bool  // nobody knows how many processes there are
}

// budget is one limit at work.
type budget struct {
	*rule
	*limit
	index int
	now   int64
	calls int64 // what a call counts as

	// Of a window below an hour:
	guard   int64   // kept between two windows
	allowed float64 // calls in a window, by now
	pace    int64   // their even distance
}

const (
	mostGrants = 10
	memberFor  = 120 * second
	ticketFor  = 1500 * int64(1000) // behind its time
	returnHold = 2 * second         // the last process has found the store by then
	batchTurn  = 8                  // one of so many grants goes to batch calls
	setBack    = 5 * second
)

// at brings the state to a time. A clock that was set back takes all times of
// the state with it.
func (s *state) at(rules []rule, now int64) *machine {
	if now < s.Now-setBack {
		s.move(now - s.Now)
	}
	s.Now = max(s.Now, now)
	m := &machine{state: s, rules: rules, now: s.Now, calls: 1}
	m.Members = slices.DeleteFunc(m.Members, func(o member) bool { return o.Seen < m.now-memberFor })
	m.Tickets = slices.DeleteFunc(m.Tickets, func(t ticket) bool { return t.Due < m.now-ticketFor })
	m.Gates = slices.DeleteFunc(m.Gates, func(g gate) bool { return g.Opens <= m.now })
	return m
}

func (m *machine) budget(i int) budget {
	b := budget{rule: &m.rules[i], limit: &m.Limits[i], index: i, now: m.now, calls: m.calls}
	if !b.isLong() {
		b.guard = b.guardFor(m.Members)
		b.allowed = b.level()
		b.pace = int64(float64(b.window+b.guard) / b.allowed)
	}
	return b
}

// spent are the limits that a call of a kind spends.
func (m *machine) spent(k kinds) iter.Seq[budget] {
	return func(yield func(budget) bool) {
		for i := range m.rules {
			if m.rules[i].counts&k != 0 && !yield(m.budget(i)) {
				return
			}
		}
	}
}

// resume lets so many calls go at once, and then an even pace.
func (m *machine) resume(atOnce int64) {
	for b := range m.spent(everything) {
		if !b.isLong() {
			b.pause(max(m.now, m.Gates.opens(nothing)) - (atOnce-1)*b.pace)
		}
	}
}

// ask is a process's question whether calls may be sent.
type ask struct {
	member int64
	spread int64
	kinds  kinds
	batch  bool
	ahead  int64 // grants are taken so long before they are due
	took   int64 // what a step takes: slow ones take several grants
	waits  int64 // calls that wait
}

// grant is the leave to send a call.
type grant struct {
	at    int64
	probe bool // tell when the service accepts it
}

// answer is what the process learns.
type answer struct {
	grants [mostGrants]grant
	n      int   // of them
	due    int64 // of the next call, where one waits
	opens  int64 // when the limits would let somebody go
	gap    int64 // of the process's turns
	extra  int64 // that it is longer by for now
	limit  int   // that keeps it waiting
}

// ask grants calls, and keeps a place for those that have to wait.
func (m *machine) ask(a ask) (got answer) {
	m.note(a)
	t := ticket{Member: a.member, Kinds: a.kinds, Batch: a.batch, Calls: min(a.waits, m.atOnce(a))}
	place := slices.IndexFunc(m.Tickets, t.same)
	if place < 0 {
		place = len(m.Tickets)
		m.Tickets = append(m.Tickets, t)
	}
	var grants [mostGrants]grant
	n := 0
	for a.waits > 0 {
		got = m.turn(t, place)
		if n == int(t.Calls) || got.due > m.now+max(a.ahead, 6*a.took) {
			break
		}
		at := max(got.due, m.now)
		grants[n] = grant{at, m.spend(a.kinds, at)}
		m.passedBy(t)
		n++
		a.waits--
	}
	t.Calls = min(t.Calls, a.waits)
	if n > 0 {
		m.Tickets = slices.Delete(m.Tickets, place, place+1)
		place = len(m.Tickets)
	}
	if a.waits > 0 {
		if n > 0 { // to the end of the line
			m.Tickets = append(m.Tickets, t)
			got = m.turn(t, place)
		}
		m.Tickets[place].Due, m.Tickets[place].Calls = got.due, t.Calls
	}
	got.grants, got.n = grants, n
	return got
}

// atOnce is how many calls a step takes: more than one where the store is so
// far away that the processes would be in each other's way.
func (m *machine) atOnce(a ask) int64 {
	pace := int64(1)
	for b := range m.spent(a.kinds) {
		if !b.isLong() {
			pace = max(pace, b.pace)
		}
	}
	return min(mostGrants, max(1, a.took*a.took/pace/pace))
}

func (t ticket) same(o ticket) bool {
	return o.Member == t.Member && o.Kinds == t.Kinds && o.Batch == t.Batch
}

// withdraw gives up the place of a process's calls of a kind.
func (m *machine) withdraw(a ask) {
	m.Tickets = slices.DeleteFunc(m.Tickets, ticket{Member: a.member, Kinds: a.kinds, Batch: a.batch}.same)
}

// note keeps the process among the members.
func (m *machine) note(a ask) {
	i := slices.IndexFunc(m.Members, func(o member) bool { return o.ID == a.member })
	if i < 0 {
		i = len(m.Members)
		m.Members = append(m.Members, member{ID: a.member})
	}
	m.Members[i].Seen, m.Members[i].Spread = m.now, a.spread
}

// turn is when the ticket at a place comes to its turn: after those before it
// that are due by then.
func (m *machine) turn(t ticket, place int) answer {
	var before [maxLimits]int64 // calls that go first
	got := m.earliest(t.Kinds, &before)
	rivals := int64(1)
	for i, other := range m.Tickets {
		if i == place {
			continue
		}
		if other.Kinds&m.rules[got.limit].counts != 0 {
			rivals += max(1, other.Calls/max(1, t.Calls))
		}
		if m.rank(i) < m.rank(place) && max(other.Due, m.Gates.opens(other.Kinds)) <= got.due+got.gap {
			for b := range m.spent(other.Kinds) {
				before[b.index] += other.Calls
			}
			opens, gap := got.opens, got.gap
			got = m.earliest(t.Kinds, &before)
			got.opens, got.gap = opens, max(gap, got.gap)
		}
	}
	got.gap, got.extra = rivals*got.gap, rivals*got.extra
	return got
}

// rank orders the tickets: interactive ones before batch ones, in the order in
// which they came; but the first batch call goes before all when its turn has
// come.
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

// passedBy counts the grants that went before a batch call.
func (m *machine) passedBy(t ticket) {
	if t.Batch {
		m.Passed = 0
	} else if m.firstBatch() >= 0 {
		m.Passed++
	}
}

// earliest is when all limits of a kind let a call go that has others before it.
// What a gate holds back is put down to the first of them.
func (m *machine) earliest(k kinds, before *[maxLimits]int64) answer {
	first := slices.IndexFunc(m.rules, func(r rule) bool { return r.counts&k != 0 })
	got := answer{due: max(m.now, m.Gates.opens(k)), limit: max(0, first)}
	for b := range m.spent(k) {
		at, n := int64(0), before[b.index]
		if b.isLong() {
			at, _ = b.nextLong(n)
		} else {
			at = b.nextShort(n)
			got.gap = max(got.gap, b.calls*b.pace)
			later := b
			later.now = at
			got.extra = max(got.extra, later.widest(1)-got.gap)
		}
		if at > got.due {
			got.due, got.limit = at, b.index
		}
	}
	got.opens = got.due
	return got
}

// spend counts a call against its limits, and reports whether it is a probe.
func (m *machine) spend(k kinds, at int64) (probe bool) {
	for b := range m.spent(k) {
		b.now = at
		if !b.isLong() {
			b.spendShort()
			continue
		}
		probe = b.spendLong() || probe
		if b.Most > 0 && b.Sent >= b.Most {
			m.calm(b.counts, b.Begins+b.Lasts)
		}
	}
	return probe
}

// giveBack takes back a call that was not sent.
func (m *machine) giveBack(k kinds, at int64) {
	for b := range m.spent(k) {
		if b.isLong() {
			b.Sent, b.Probing = max(0, b.Sent-b.calls), 0
		} else {
			b.add(at, -b.calls)
			b.Due -= b.calls * b.pace
		}
	}
}

// accepted notes that the service did not refuse a probe.
func (m *machine) accepted(k kinds) {
	for b := range m.spent(k) {
		if b.isLong() {
			b.accepted()
		}
	}
}
