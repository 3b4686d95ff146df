// Package record keeps calls: those that are under way, and the newest of those
// that were answered. It knows nothing of what a call is.
package record

import (
	"slices"
	"sort"
)

// Log keeps calls. Adding one costs the same however many it holds. The zero
// value keeps none.
type Log[C comparable] struct {
	Limit    int // how many answered calls are kept
	kept     []C
	oldest   int // the index of the oldest call, once the log is full
	dropped  int
	underWay []C // in the order of arrival
}

// Begin keeps a call that arrives.
func (l *Log[C]) Begin(call C) { l.underWay = append(l.underWay, call) }

// End forgets that a call is under way.
func (l *Log[C]) End(call C) {
	if i := slices.Index(l.underWay, call); i >= 0 {
		l.underWay = slices.Delete(l.underWay, i, i+1)
	}
}

// UnderWay returns a copy of the calls that have begun and not ended, in the order
// of arrival.
func (l *Log[C]) UnderWay() []C { return slices.Clone(l.underWay) }

// Add keeps a call that was answered. Beyond the limit it drops the oldest.
func (l *Log[C]) Add(call C) {
	switch {
	case len(l.kept) < l.Limit:
		l.kept = append(l.kept, call)
		return
	case l.Limit > 0:
		l.kept[l.oldest] = call
		l.oldest = (l.oldest + 1) % l.Limit
	}
	l.dropped++
}

// Clear forgets the answered calls, those that were dropped included.
func (l *Log[C]) Clear() { l.kept, l.oldest, l.dropped = nil, 0, 0 }

// All returns a copy of the answered calls, oldest first.
func (l *Log[C]) All() []C { return slices.Concat(l.kept[l.oldest:], l.kept[:l.oldest]) }

// Since returns a copy of the new calls, oldest first. isNew holds for every call
// after the first new one.
func (l *Log[C]) Since(isNew func(C) bool) []C {
	at := func(i int) C { return l.kept[(l.oldest+i)%len(l.kept)] }
	first := sort.Search(len(l.kept), func(i int) bool { return isNew(at(i)) })
	found := make([]C, 0, len(l.kept)-first)
	for i := first; i < len(l.kept); i++ {
		found = append(found, at(i))
	}
	return found
}

// Dropped counts the calls that were answered and are not kept.
func (l *Log[C]) Dropped() int { return l.dropped }

// Total counts the calls that were ever answered.
func (l *Log[C]) Total() int { return len(l.kept) + l.dropped }
