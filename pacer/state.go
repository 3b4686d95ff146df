package pacer

import (
	"iter"
	"slices"
)

// state is all that the processes of one API key share: the value in the store.
// Times are in microseconds of the state's clock; 0 means never.
type state struct {
	Format  int
	Now     int64 // the latest time that was seen
	Fresh   int64 // since when the calls of all processes are in it
	Limits  []limit
	Gates   []gate
	Members map[int64]int64 // when each process asked last
	Tickets []ticket
}

// limit is the state of a rule; which half is used depends on its window.
type limit struct {
	short
	long
}

const memberFor = 120 * second // a process is counted, after its last step

func newState(rules []rule, now int64) *state {
	unused := limit{short: short{Level: 1}}
	s := &state{Format: format, Now: now, Fresh: now, Members: map[int64]int64{}, Limits: slices.Repeat([]limit{unused}, len(rules))}
	m := machine{state: s, rules: rules, calls: 1}
	for b := range m.budgets(everything) {
		b.pause(now - (atOnceAtFirst-1)*b.pace)
	}
	return s
}

// at brings the state to a time.
func (s *state) at(now int64) {
	s.Now = max(s.Now, now)
	s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Opens <= s.Now })
	s.Tickets = slices.DeleteFunc(s.Tickets, func(t ticket) bool { return t.Due < s.Now-ticketFor })
}

// machine is the state machine: state, time and a question give an answer.
type machine struct {
	*state
	rules  []rule
	offset int64             // what Now is ahead of the pacer's time
	member int64             // this process
	took   int64             // how long a step takes at least
	calls  int64             // what each counts as: more than 1 for a process on its share
	lonely bool              // nobody knows how many processes there are
	grants [mostGrants]int64 // of the last answer
}

// budget is one limit at work.
type budget struct {
	*rule
	*limit
	index   int
	now     int64
	calls   int64   // what a call counts as
	slot    int64   // the time that a slot counts calls of
	guard   int64   // kept between two windows, since calls arrive later than they are sent
	allowed float64 // calls in a window, by now
	pace    int64   // their even distance
	credit  int64   // how far they may be ahead of that; not those of a share
}

func (m *machine) budget(i int) budget {
	b := budget{rule: &m.rules[i], limit: &m.Limits[i], index: i, now: m.Now, calls: m.calls}
	b.slot, b.guard, b.allowed = b.window/240, min(400_000, b.window/20), b.level()
	if b.isLong() { // in few slots, since the window may be a day
		b.slot = b.window / 60
		b.guard = b.slot + longGuard
	}
	b.pace = int64(float64(b.window+b.guard) / b.allowed)
	if most := b.max; b.calls == 1 {
		if m.lonely { // others may have begun with a part too
			most = b.allowed
		}
		b.credit = (min(mostAtOnce, max(2, int64(most/6))) - 1) * b.pace
	}
	return b
}

// budgets are the limits that a call of a kind spends.
func (m *machine) budgets(k kinds) iter.Seq[budget] {
	return func(yield func(budget) bool) {
		for i := range m.rules {
			if m.rules[i].counts&k != 0 && !yield(m.budget(i)) {
				return
			}
		}
	}
}

// next is when a call may go that has so many before it. A call of a share
// counts as several, and goes where there is room for part of them.
func (b budget) next(before int64) int64 {
	if b.isLong() {
		return b.nextLong(before)
	}
	return max(b.Due-b.credit+before*b.pace, b.free(b.allowed-float64(before)))
}

func (m *machine) spend(k kinds, at int64) {
	for b := range m.budgets(k) {
		b.now = at
		if !b.isLong() {
			b.spendShort()
			continue
		}
		b.spendLong()
		if b.Most > 0 && b.Sent >= b.Most {
			m.calm(b.counts, b.nextLong(0))
		}
	}
}

// giveBack takes back a call that was not sent.
func (m *machine) giveBack(k kinds, at int64) {
	for b := range m.budgets(k) {
		b.giveBack(at)
	}
}

func (b budget) giveBack(at int64) {
	b.add(at, -b.calls)
	if b.isLong() {
		b.Sent, b.Probing = max(0, b.Sent-b.calls), 0
	} else {
		b.Due -= b.calls * b.pace
	}
}
