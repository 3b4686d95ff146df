package service

import (
	"cmp"
	"math"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Window counts calls against one limit. Its answers depend only on the calls
// that it counted and on its arguments.
type Window struct {
	Kind  string    `json:"kind,omitempty"`
	Calls []Tally   `json:"calls,omitempty"`     // oldest first; of a window that starts at one time, all have that time
	Used  int       `json:"used,omitempty"`      // the sum of Calls
	Full  time.Time `json:"full,omitzero"`       // when a bucket is full again
	Shut  time.Time `json:"shut_until,omitzero"` // until when Exhaust keeps the limit closed
}

// Tally is how many calls were counted at a time.
type Tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

// rate is what a window allows.
type rate struct {
	kind   string
	length time.Duration
	max    int
	bucket bool
	burst  int // of a bucket for a minute; 0 means max
}

// perCall is the time in which a bucket gains one call. It is never 0, however high
// WithLimit has set the maximum.
func (r rate) perCall() time.Duration { return max(1, r.length/time.Duration(r.max)) }

// saved is the time that a full bucket is ahead. The burst is that of a minute: with a
// bucket of 10 for the day too, the eleventh call would wait for 87 s.
func (r rate) saved() time.Duration {
	calls := r.max
	if r.length <= time.Minute {
		calls = min(cmp.Or(r.burst, calls), calls)
	}
	return time.Duration(calls) * r.perCall()
}

// start is when the window begins that a call at now counts in.
func (w *Window) start(r rate, now time.Time) time.Time {
	switch {
	case r.kind == WindowsAligned || r.kind == WindowsWeighted:
		return now.Truncate(r.length)
	case r.kind == WindowsFixed && len(w.Calls) > 0:
		return w.Calls[0].At
	}
	return now
}

// drop forgets the calls that count no more.
func (w *Window) drop(r rate, now time.Time) {
	counts := r.length
	if r.kind == WindowsWeighted {
		counts *= 2
	}
	for len(w.Calls) > 0 && !w.Calls[0].At.Add(counts).After(now) {
		w.Used -= w.Calls[0].Calls
		w.Calls = w.Calls[1:]
	}
}

// take counts a call.
func (w *Window) take(r rate, now time.Time) {
	if w.Kind != r.kind {
		*w = Window{Kind: r.kind, Shut: w.Shut} // as it was read from the file of another service
	}
	if r.bucket {
		if w.Full.Before(now) {
			w.Full = now
		}
		w.Full = w.Full.Add(r.perCall())
		return
	}
	w.drop(r, now)
	w.Used++
	at, last := w.start(r, now), len(w.Calls)-1
	// Calls may be counted in another order than they read the clock.
	if last >= 0 && !at.After(w.Calls[last].At) {
		w.Calls[last].Calls++
		return
	}
	w.Calls = append(w.Calls, Tally{at, 1})
}

// opens returns when the next call passes; a time not after now means that it
// passes now.
func (w *Window) opens(r rate, now time.Time) time.Time {
	if w.Kind != r.kind {
		return now
	}
	w.drop(r, now)
	opens, left := now, w.Used
	switch {
	case r.bucket:
		return w.Full.Add(r.perCall() - r.saved())
	case r.kind == WindowsWeighted:
		return w.weightedOpens(r, now)
	}
	for _, t := range w.Calls {
		if left < r.max {
			break
		}
		opens, left = t.At.Add(r.length), left-t.Calls
	}
	return opens
}

// weightedOpens finds the first time at which the calls of the present window,
// and the part of those before that still counts, leave room for one call.
func (w *Window) weightedOpens(r rate, now time.Time) time.Time {
	start := now.Truncate(r.length)
	before := w.before(start)
	present := w.Used - before
	if present >= r.max { // not before the next window, in which these are the calls before
		start, before, present = start.Add(r.length), present, 0
	}
	room := r.max - 1 - present
	if before <= room {
		return start
	}
	share := 1 - float64(room)/float64(before) // of the window, after which little enough counts
	return start.Add(time.Duration(math.Ceil(share * float64(r.length))))
}

// before counts the calls before a time.
func (w *Window) before(start time.Time) (calls int) {
	for _, t := range w.Calls {
		if t.At.Before(start) {
			calls += t.Calls
		}
	}
	return calls
}

// used is how many calls count now. A part of a call counts as a call.
func (w *Window) used(r rate, now time.Time) int {
	switch {
	case w.Kind != r.kind:
		return 0
	case r.bucket:
		return int(max(0, w.Full.Sub(now)+r.perCall()-1) / r.perCall())
	}
	w.drop(r, now)
	if r.kind != WindowsWeighted {
		return w.Used
	}
	start := now.Truncate(r.length)
	before := w.before(start)
	left := 1 - float64(now.Sub(start))/float64(r.length)
	return w.Used - before + int(math.Ceil(float64(before)*left-rounding))
}

// rounding is more than the error of a count that is computed with floats.
const rounding = 1e-6

// Usage is what one API key, or one client address, has used of each limit. A key
// uses nothing of the limits per address, and an address nothing of those per key.
type Usage struct {
	Windows [spec.LimitCount]Window `json:"windows"` // in the order of spec.Limits
	Last    time.Time               `json:"last"`    // the time of the newest counted call
}

// fresh returns u, or an empty Usage if u is nil or comes from another clock: a bubble
// starts in the year 2000. A day is the longest window, and a test does not set its
// clock back by more.
func fresh(u *Usage, now time.Time) *Usage {
	if u == nil || u.Last.After(now.Add(spec.Day)) {
		return new(Usage)
	}
	return u
}
