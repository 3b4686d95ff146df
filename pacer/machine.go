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
	memberFor = 120 * second
	setBack   = 5 * second
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

// next is when the limit lets a call go that has so many before it.
func (b budget) next(before int64) int64 {
	if b.isLong() {
		at, _ := b.nextLong(before)
		return at
	}
	return b.nextShort(before)
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
