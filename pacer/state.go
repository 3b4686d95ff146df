package pacer

import "slices"

// state is all that the processes of one API key share. Times are in
// microseconds of the store's clock.
type state struct {
	born    int64 // names this state: one that was lost is followed by another
	now     int64 // the latest time that was seen
	fresh   int64 // since when the calls of all processes are in it
	opens   int64 // nobody goes before: processes return from an outage
	passed  int64 // interactive calls that went before a batch call
	limits  []limit
	gates   []gate
	members []member
	tickets []ticket
}

// limit is a rule's state; which half is used depends on its window.
type limit struct {
	short
	long
}

// gate is shut by a refusal, for all calls that count as the refused one did.
type gate struct {
	kinds kinds
	opens int64
	key   string // in the service's words
}

// member is a process that took a step.
type member struct {
	id     int64
	seen   int64
	spread int64 // of the times that answers take
}

// ticket is the place of a process's waiting calls of one kind. due is when it
// is expected to come back for its turn; long after that it is dropped.
type ticket struct {
	member int64
	kinds  kinds
	batch  bool
	calls  int64 // that it will take at once
	due    int64
}

// grant is the leave to send a call.
type grant struct {
	at    int64
	probe bool // tell when the service accepts it
}

const (
	mostGrants = 4
	memberFor  = 120 * second
	ticketFor  = 1500 * int64(1000) // behind due
	returnHold = 2 * second         // the last process has found the store by then
	batchTurn  = 8                  // one of so many grants goes to batch calls
	setBack    = 5 * second
)

// machine is the state machine: state, time and a question give an answer.
type machine struct {
	*state
	rules  []rule
	now    int64
	calls  int64   // what each counts as: more than 1 for a process on its share
	lonely bool    // nobody knows how many processes there are
	shared bool    // the state is that in the store
	hold   float64 // windows in which a level that was cut does not climb
}

func newState(rules []rule, now, born int64) *state {
	s := &state{born: born, now: now, fresh: now, limits: make([]limit, len(rules))}
	m := machine{state: s, rules: rules, now: now, calls: 1}
	m.resume(atOnceAtFirst)
	return s
}

// resume lets so many calls go at once, and then an even pace.
func (m *machine) resume(calls int64) {
	for i := range m.rules {
		if r := &m.rules[i]; !r.long() {
			m.limits[i].start(r, max(m.now, m.opens), m.guard(r), calls)
		}
	}
}

// at brings the state to a time. A clock that was set back takes all times of
// the state with it.
func (s *state) at(rules []rule, now int64) *machine {
	if now < s.now-setBack {
		s.move(rules, now-s.now)
	}
	s.now = max(s.now, now)
	m := &machine{state: s, rules: rules, now: s.now, calls: 1, hold: shortHold}
	m.members = slices.DeleteFunc(m.members, func(o member) bool { return o.seen < m.now-memberFor })
	m.tickets = slices.DeleteFunc(m.tickets, func(t ticket) bool { return t.due < m.now-ticketFor })
	m.gates = slices.DeleteFunc(m.gates, func(g gate) bool { return g.opens <= m.now })
	return m
}

// move changes all times of the state.
func (s *state) move(rules []rule, by int64) {
	s.visit(&coder{shift: by})
	for i, l := range s.limits {
		for j := range l.slots {
			l.slots[j].number += by / rules[i].slot()
		}
	}
}

func (m *machine) guard(r *rule) int64 {
	var spread int64
	for _, o := range m.members {
		spread = max(spread, o.spread)
	}
	return r.guard(spread)
}

// ask is a process's question whether a call may be sent.
type ask struct {
	member int64
	spread int64
	kinds  kinds
	batch  bool
	ahead  int64 // grants are taken so long before they are due
	took   int64 // what a step takes: slow ones take several grants
	waits  int64 // calls that wait
}

// answer is what it learns.
type answer struct {
	grants [mostGrants]grant
	n      int // of them

	due   int64 // of the next call of the kind, where one waits
	opens int64 // when the limits would let somebody go
	gap   int64 // of the process's turns
	extra int64 // that it is longer by for now
	limit int   // that keeps it waiting
}

// ask grants calls, or keeps a place for them.
func (m *machine) ask(a ask) (got answer) {
	m.note(a)
	t := ticket{member: a.member, kinds: a.kinds, batch: a.batch, calls: min(a.waits, m.atOnce(a))}
	place := slices.IndexFunc(m.tickets, t.same)
	if place < 0 {
		place = len(m.tickets)
	}
	var grants [mostGrants]grant
	n := 0
	for got = m.turn(t, place); n < int(t.calls) && got.due <= m.now+a.ahead; got = m.turn(t, place) {
		at := max(got.due, m.now)
		grants[n] = grant{at, m.spend(a.kinds, at)}
		n++
		m.passedBy(t)
	}
	if n > 0 && place < len(m.tickets) {
		m.tickets = slices.Delete(m.tickets, place, place+1)
	}
	if t.calls = min(t.calls, a.waits-int64(n)); t.calls > 0 {
		if n > 0 {
			place = len(m.tickets)
			got = m.turn(t, place)
		}
		m.keep(t, place, got.due)
	}
	got.grants, got.n = grants, n
	return got
}

// atOnce is how many calls a step takes: more than one where the store is so
// far away that the processes would be in each other's way.
func (m *machine) atOnce(a ask) int64 {
	pace := int64(1)
	for i := range m.rules {
		if r := &m.rules[i]; r.counts&a.kinds != 0 && !r.long() {
			pace = max(pace, m.limits[i].pace(r, m.now, m.guard(r)))
		}
	}
	return min(mostGrants, max(1, 2*a.took/pace))
}

func (t ticket) same(o ticket) bool {
	return o.member == t.member && o.kinds == t.kinds && o.batch == t.batch
}

func (m *machine) keep(t ticket, place int, due int64) {
	if place == len(m.tickets) {
		m.tickets = append(m.tickets, t)
	}
	m.tickets[place].due, m.tickets[place].calls = due, t.calls
}

// note keeps the process among the members.
func (m *machine) note(a ask) {
	for i := range m.members {
		if o := &m.members[i]; o.id == a.member {
			o.seen, o.spread = m.now, a.spread
			return
		}
	}
	m.members = append(m.members, member{a.member, m.now, a.spread})
}

// turn is when a ticket at a place comes to its turn: after those before it
// that are due by then.
func (m *machine) turn(t ticket, place int) answer {
	var before [maxLimits]int
	got := m.earliest(t.kinds, &before)
	rivals := int64(1)
	for i, other := range m.tickets {
		if other.same(t) {
			continue
		}
		shares := m.shares(other, got.limit)
		if shares {
			rivals += max(1, other.calls/max(1, t.calls))
		}
		if m.goesBefore(i, other, place, t) && max(other.due, m.gate(other.kinds)) <= got.due+got.gap {
			m.reserve(other, &before)
			opens, gap := got.opens, got.gap
			got = m.earliest(t.kinds, &before)
			got.opens, got.gap = opens, max(gap, got.gap)
		}
	}
	got.gap, got.extra = rivals*got.gap, rivals*got.extra
	return got
}

func (m *machine) shares(t ticket, limit int) bool { return t.kinds&m.rules[limit].counts != 0 }

func (m *machine) reserve(t ticket, before *[maxLimits]int) {
	for i := range m.rules {
		if m.rules[i].counts&t.kinds != 0 {
			before[i] += int(t.calls)
		}
	}
}

// goesBefore reports whether the ticket at i goes before the one at place:
// interactive ones before batch ones, in the order in which they came; but
// the first batch call goes before all when its turn has come.
func (m *machine) goesBefore(i int, other ticket, place int, t ticket) bool {
	if other.batch == t.batch {
		return i < place
	}
	turn := m.passed >= batchTurn-1
	if other.batch {
		return turn && i == m.firstBatch()
	}
	return !turn || place != m.firstBatch()
}

func (m *machine) firstBatch() int {
	return slices.IndexFunc(m.tickets, func(t ticket) bool { return t.batch })
}

// passedBy counts the grants that went before a batch call.
func (m *machine) passedBy(t ticket) {
	if t.batch {
		m.passed = 0
	} else if m.firstBatch() >= 0 {
		m.passed++
	}
}

// earliest is when all limits of a kind let a call go that has others before it.
func (m *machine) earliest(k kinds, before *[maxLimits]int) answer {
	got := answer{due: max(m.now, m.opens, m.gate(k)), limit: m.tightest(k)}
	for i := range m.rules {
		r, l := &m.rules[i], &m.limits[i]
		if r.counts&k == 0 {
			continue
		}
		at := int64(0)
		if r.long() {
			at, _ = l.long.next(r, m.now, before[i])
		} else {
			at = l.short.next(r, m.now, m.guard(r), before[i], m.calls == 1)
			got.gap = max(got.gap, m.calls*l.pace(r, m.now, m.guard(r)))
			got.extra = max(got.extra, l.spread(r, at, m.guard(r), 1)-got.gap)
		}
		if at > got.due {
			got.due, got.limit = at, i
		}
	}
	got.opens = got.due
	return got
}

// tightest is the first limit of a kind: what a gate is put down to.
func (m *machine) tightest(k kinds) int {
	for i := range m.rules {
		if m.rules[i].counts&k != 0 {
			return i
		}
	}
	return 0
}

// spend counts a call against its limits, and reports whether it is a probe.
func (m *machine) spend(k kinds, at int64) (probe bool) {
	for i := range m.rules {
		r, l := &m.rules[i], &m.limits[i]
		switch {
		case r.counts&k == 0:
		case r.long():
			_, finds := l.long.next(r, at, 0)
			l.long.spend(at, m.calls, finds)
			if l.most > 0 && l.sent >= l.most {
				m.calm(r.counts, l.begins+l.lasts)
			}
			probe = probe || finds
		default:
			l.short.spend(r, at, m.guard(r), m.calls)
		}
	}
	return probe
}

// calm lets the calls go at an even pace when a long limit opens again, as they
// did when they filled it: a sliding window frees its room at that pace.
func (m *machine) calm(counts kinds, opens int64) {
	for i := range m.rules {
		if r, l := &m.rules[i], &m.limits[i]; r.counts == counts && !r.long() {
			l.due = max(l.due, opens+l.credit(r, m.now, m.guard(r), true))
		}
	}
}

// giveBack takes back a call that was not sent.
func (m *machine) giveBack(k kinds, at int64) {
	for i := range m.rules {
		r, l := &m.rules[i], &m.limits[i]
		switch {
		case r.counts&k == 0:
		case r.long():
			l.sent, l.probing = max(0, l.sent-m.calls), 0
		default:
			l.giveBack(r, at, m.guard(r), m.calls)
		}
	}
}

// accepted notes that the service did not refuse a probe.
func (m *machine) accepted(k kinds) {
	for i := range m.rules {
		if r := &m.rules[i]; r.counts&k != 0 && r.long() {
			m.limits[i].accepted(m.now)
		}
	}
}

// withdraw gives up the place of a process's calls of a kind.
func (m *machine) withdraw(a ask) {
	m.tickets = slices.DeleteFunc(m.tickets, ticket{member: a.member, kinds: a.kinds, batch: a.batch}.same)
}
