package pacer

import (
	"math"
	"slices"
)

// refused shuts a gate, and lets the limit that is to blame learn: a call that
// counted as k, and was granted at a time, shall wait.
//
// What is known for certain: a call that counts as what the refused one did,
// or as more, would be refused too. Only these wait; whatever the limit is
// called, no other call is held back that the service would have accepted. If
// the guess is wrong, the next plain request is refused, and shuts the gate of
// all.
func (m *machine) refused(k kinds, granted, wait int64, key string) {
	m.shut(k, m.Now+wait, key)
	for b := range m.budgets(k) {
		if b.isLong() { // what was refused does not count
			b.giveBack(granted)
		}
	}
	if k != request {
		k &^= request
	}
	var blamed budget
	fullest := math.Inf(-1)
	for b := range m.budgets(k) {
		if full := b.full(); wait <= b.window+second && full > fullest {
			fullest, blamed = full, b
		}
	}
	if blamed.rule != nil {
		m.learn(blamed, granted, m.Now+wait)
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
func (m *machine) learn(b budget, granted, opens int64) {
	m.calm(b.counts, min(opens, m.Now+hour))
	known, hold := m.lonely || m.Now-m.Fresh >= b.window, shortHold
	if m.lonely {
		hold = longHold
	}
	switch {
	case b.isLong():
		b.refusedLong(opens)
	case known && granted >= m.Now-b.window/2 && (b.counts == request || b.full() >= 0.5):
		b.refusedShort(opens, granted, hold)
	}
}

// calm lets the calls go at an even pace when a limit opens again, as they did
// when they filled it: a sliding window frees its room at that pace.
func (m *machine) calm(counts kinds, opens int64) {
	for b := range m.budgets(counts) {
		b.pause(opens)
	}
}

// reopen forgets what refusals have shut, and how many calls a long limit held.
func (m *machine) reopen() {
	m.Gates = nil
	for b := range m.budgets(everything) {
		b.Due, b.Most = min(b.Due, m.Now+b.credit), 0
	}
}

// gate holds back all calls that count as a refused one did, or as more. It opens
// after an hour at the latest, whatever was told: the plan may have been upgraded.
type gate struct {
	Kinds kinds
	Opens int64
	Told  int64  // when it opens, in the service's words
	Key   string // of the limit, likewise
}

// shut never opens a gate earlier.
func (s *state) shut(k kinds, told int64, key string) {
	if told > s.last(k).Told {
		s.Gates = slices.DeleteFunc(s.Gates, func(g gate) bool { return g.Kinds == k })
		s.Gates = append(s.Gates, gate{k, min(told, s.Now+hour), told, key})
	}
}

// last is the gate that is the last to let a call go that counts as k; zero if
// none is shut.
func (s *state) last(k kinds) (last gate) {
	for _, g := range s.Gates {
		if g.Kinds&^k == 0 && g.Told > last.Told {
			last = g
		}
	}
	return last
}
