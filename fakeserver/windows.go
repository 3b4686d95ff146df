package fakeserver

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// window counts calls against one limit. Its answers depend only on the calls
// that it counted and on its arguments.
//
// A fixed window starts with its first counted call and ends length later: a
// call at exactly that time starts the next one. A sliding window counts the
// calls of the last length: one that was counted exactly length ago has left.
type window struct {
	length  time.Duration
	sliding bool
	calls   []tally   // that count, oldest first; in a fixed window all have the time of the first
	used    int       // how many they are
	shut    time.Time // until when Exhaust keeps the limit closed
}

type tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

func (w *window) drop(now time.Time) {
	for len(w.calls) > 0 && !w.calls[0].At.Add(w.length).After(now) {
		w.used -= w.calls[0].Calls
		w.calls = w.calls[1:]
	}
}

// opens returns when the next call passes; a time not after now means that it
// passes now.
func (w *window) opens(now time.Time, limit int) time.Time {
	w.drop(now)
	opens, left := now, w.used
	for _, t := range w.calls {
		if left < limit {
			break
		}
		opens, left = t.At.Add(w.length), left-t.Calls
	}
	return opens
}

func (w *window) take(now time.Time) {
	w.drop(now)
	w.used++
	last := len(w.calls) - 1
	// Calls may be counted in another order than they read the clock.
	if last >= 0 && (!w.sliding || !now.After(w.calls[last].At)) {
		w.calls[last].Calls++
		return
	}
	w.calls = append(w.calls, tally{now, 1})
}

// fill puts calls that were counted before into a new window, perhaps by one of
// the other kind.
func (w *window) fill(calls []tally) {
	for _, t := range calls {
		w.used += t.Calls
	}
	w.calls = append(w.calls, calls...)
	if !w.sliding && len(calls) > 0 {
		w.calls = []tally{{calls[0].At, w.used}}
	}
}

// ends returns when the oldest counted call stops counting; a time not after
// now means that none counts.
func (w *window) ends(now time.Time) time.Time {
	w.drop(now)
	if len(w.calls) == 0 {
		return now
	}
	return w.calls[0].At.Add(w.length)
}

// waitSeconds is how long until opens, for Retry-After: whole seconds, rounded
// up so that the wait is enough, and at least 1.
func waitSeconds(now, opens time.Time) int {
	return max(1, int((opens.Sub(now)+time.Second-1)/time.Second))
}

// counts are the windows of one API key, or of one client address. A key counts
// nothing in the windows of limits per address, and an address nothing in those
// per key.
type counts struct {
	windows [spec.LimitCount]window // in the order of spec.Limits
	last    time.Time               // the time of the newest counted call
}

func newCounts(sliding bool) *counts {
	c := new(counts)
	for i := range c.windows {
		c.windows[i].length, c.windows[i].sliding = spec.Limits[i].Window, sliding
	}
	return c
}

// behind reports whether now comes from another clock: a bubble starts in the
// year 2000. A day is the longest window, and a test does not set its clock back
// by more.
func (c *counts) behind(now time.Time) bool { return c.last.After(now.Add(spec.Day)) }

// take counts a call against limit i.
func (c *counts) take(i int, now time.Time) {
	c.windows[i].take(now)
	c.touch(now)
}

func (c *counts) touch(now time.Time) {
	if now.After(c.last) {
		c.last = now
	}
}

// exhaust closes limit i until the key's open window ends, or for a whole
// window from now.
func (c *counts) exhaust(i int, now time.Time) {
	w := &c.windows[i]
	c.touch(now)
	switch ends := w.ends(now); {
	case w.shut.After(now):
	case ends.After(now):
		w.shut = ends
	default:
		w.shut = now.Add(w.length)
	}
}
