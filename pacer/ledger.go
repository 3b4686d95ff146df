package pacer

import (
	"math"
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
	l := ledger{state: s, rules: rules, calls: 1}
	for b := range l.budgets(everything) {
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

// ledger is the state machine: state, time and a question give an answer.
type ledger struct {
	*state
	rules  []rule
	member int64             // this process
	took   int64             // how long a step takes at least
	calls  int64             // what each counts as: more than 1 for a process on its share
	lonely bool              // the number of processes is not known
	grants [mostGrants]int64 // of the last answer
}

// refused lets the limit that is to blame learn: a call that counted as k, and was
// granted at a time, shall wait.
func (l *ledger) refused(k costSet, granted, wait int64) {
	for b := range l.budgets(k) {
		if b.isLong() { // what was refused does not count
			b.giveBack(granted)
		}
	}
	if k != request {
		k &^= request
	}
	var blamed budget
	fullest := math.Inf(-1)
	for b := range l.budgets(k) {
		if full := b.full(); wait <= b.window+second && full > fullest {
			fullest, blamed = full, b
		}
	}
	if blamed.rule != nil {
		l.learn(blamed, granted, l.Now+wait)
	}
}

// full is how much of a limit is used. A long one whose count does not explain
// a refusal comes after all short ones.
func (b budget) full() float64 {
	switch {
	case !b.isLong():
		return float64(b.sent()) / b.allowed
	case b.used():
		return 0.95
	}
	return -b.max
}

// learn lets a limit learn from a refusal. A level is learned only where the
// calls of a whole window are known, from a call that was not held up on its
// way, and for limits on single operations only where most of it was used: else
// others may be to blame.
func (l *ledger) learn(b budget, granted, opens int64) {
	l.calm(b.counts, min(opens, l.Now+hour))
	known := l.lonely || l.Now-l.Fresh >= b.window
	switch {
	case b.isLong():
		b.refusedLong(opens)
	case known && granted >= l.Now-b.window/2 && (b.counts == request || b.full() >= 0.5):
		b.refusedShort(opens, granted, l.lonely)
	}
}

// calm lets the calls go at an even pace when a limit opens again, as they did
// when they filled it: a sliding window frees its room at that pace.
func (l *ledger) calm(counts costSet, opens int64) {
	for b := range l.budgets(counts) {
		b.pause(opens)
	}
}

// reopen forgets what refusals have shut, and how many calls a long limit held.
func (l *ledger) reopen() {
	l.Gates = nil
	for b := range l.budgets(everything) {
		b.Due, b.Most = min(b.Due, l.Now), 0
	}
}

// gate holds back all calls that spend at least the limits that a refused call
// spent. It opens after an hour at the latest, even if Retry-After named a later
// time: the plan may have been upgraded.
type gate struct {
	Kinds costSet
	Opens int64
	Told  int64  // when it opens by the service's Retry-After
	Key   string // the limit_key of the service's answer
}

// shut closes a gate, or keeps it closed for longer.
//
// A refusal makes only one thing certain: a call that spends at least the limits of
// the refused call would be refused too. Only such calls wait, however the limit is
// named, so no call is held back that the service would have accepted. If a plain
// request is then refused as well, it shuts the gate for all calls.
func (s *state) shut(k costSet, until int64, key string) {
	if until > s.last(k).Told {
		s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Kinds == k })
		s.Gates = append(s.Gates, gate{k, min(until, s.Now+hour), until, key})
	}
}

// last returns the gate that opens latest among the gates for a call with the costs
// k; the zero gate if there is none.
func (s *state) last(k costSet) (last gate) {
	for _, g := range s.Gates {
		if g.Kinds&^k == 0 && g.Told > last.Told {
			last = g
		}
	}
	return last
}
