// Package record keeps calls: those that are under way, and the newest of those
// that were answered. It knows nothing of what a call is.
package record

import (
	"slices"
	"sort"
)

// Log keeps calls. The zero value keeps none that was answered.
type Log[C comparable] struct {
	Limit    int // how many answered calls are kept
	kept     []C // oldest first
	total    int // answered calls, those that were dropped included
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

// Add keeps a call that was answered, and may have ended too. Beyond the limit it
// drops the oldest, which costs the same on average however many there are.
func (l *Log[C]) Add(call C, ended bool) {
	if ended {
		l.End(call)
	}
	l.total++
	l.kept = append(l.kept, call)
	if len(l.kept) > l.Limit {
		clear(l.kept[:1]) // the array lives on
		l.kept = l.kept[1:]
	}
}

// Clear forgets the answered calls, those that were dropped included.
func (l *Log[C]) Clear() { l.kept, l.total = nil, 0 }

// All returns a copy of the answered calls, oldest first.
func (l *Log[C]) All() []C { return slices.Clone(l.kept) }

// Since returns a copy of the new calls, oldest first. isNew holds for every call
// after the first new one.
func (l *Log[C]) Since(isNew func(C) bool) []C {
	first := sort.Search(len(l.kept), func(i int) bool { return isNew(l.kept[i]) })
	return slices.Clone(l.kept[first:])
}

// Dropped counts the calls that were answered and are not kept.
func (l *Log[C]) Dropped() int { return l.total - len(l.kept) }

// Total counts the calls that were ever answered.
func (l *Log[C]) Total() int { return l.total }
