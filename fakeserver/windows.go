package fakeserver

import (
	"slices"
	"time"
)

// window counts calls against one limit. Its answers depend only on the calls
// that it counted and on its arguments.
type window interface {
	// opens returns when the next call passes; a time not after now means
	// that it passes now.
	opens(now time.Time, limit int) time.Time
	// take counts a call.
	take(now time.Time)
	// ends returns when the oldest counted call stops counting; a time not
	// after now means that none counts.
	ends(now time.Time) time.Time
	// used returns how many calls count.
	used(now time.Time) int
	// clone returns a copy that shares nothing.
	clone() window
}

// fixedWindow starts with its first counted call and ends length later: a call
// at exactly that time starts the next one.
type fixedWindow struct {
	length time.Duration
	start  time.Time
	count  int
}

func (w *fixedWindow) opens(now time.Time, limit int) time.Time {
	if w.count < limit {
		return now
	}
	return w.ends(now)
}

func (w *fixedWindow) take(now time.Time) {
	if !w.ends(now).After(now) {
		w.start, w.count = now, 0
	}
	w.count++
}

func (w *fixedWindow) ends(now time.Time) time.Time {
	if w.count == 0 {
		return now
	}
	return w.start.Add(w.length)
}

func (w *fixedWindow) used(now time.Time) int {
	if !w.ends(now).After(now) {
		return 0
	}
	return w.count
}

func (w *fixedWindow) clone() window {
	c := *w
	return &c
}

// slidingWindow counts the calls of the last length: one that was counted
// exactly length ago has left.
type slidingWindow struct {
	length time.Duration
	log    []time.Time // oldest first; calls that have left are dropped at the next take
}

func (w *slidingWindow) opens(now time.Time, limit int) time.Time {
	if len(w.log) < limit {
		return now
	}
	// The call that must leave first, so that limit-1 others remain.
	return w.log[len(w.log)-limit].Add(w.length)
}

func (w *slidingWindow) take(now time.Time) {
	w.drop(now)
	// Calls may be counted in another order than they read the clock.
	if n := len(w.log); n > 0 && w.log[n-1].After(now) {
		now = w.log[n-1]
	}
	w.log = append(w.log, now)
}

func (w *slidingWindow) ends(now time.Time) time.Time {
	w.drop(now)
	if len(w.log) == 0 {
		return now
	}
	return w.log[0].Add(w.length)
}

func (w *slidingWindow) used(now time.Time) int {
	w.drop(now)
	return len(w.log)
}

func (w *slidingWindow) clone() window { return &slidingWindow{w.length, slices.Clone(w.log)} }

func (w *slidingWindow) drop(now time.Time) {
	for len(w.log) > 0 && !w.log[0].Add(w.length).After(now) {
		w.log = w.log[1:]
	}
}

func newWindow(length time.Duration, sliding bool) window {
	if sliding {
		return &slidingWindow{length: length}
	}
	return &fixedWindow{length: length}
}

// waitSeconds is how long until opens, for Retry-After: whole seconds, rounded
// up so that the wait is enough, and at least 1.
func waitSeconds(now, opens time.Time) int {
	return max(1, int((opens.Sub(now)+time.Second-1)/time.Second))
}
