package service

import (
	"cmp"
	"math"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Window is what was counted against one limit, in the form that a state file keeps.
// CountedBy is Behavior.Windows of the fake that counted; "" before the first call. A
// token bucket uses Full, every other way of counting Calls and Used.
type Window struct {
	CountedBy      string    `json:"kind,omitempty"`
	Calls          []Tally   `json:"calls,omitempty"`     // oldest first; of a window that starts at one time, all have that time
	Used           int       `json:"used,omitempty"`      // the sum of Calls
	Full           time.Time `json:"full,omitzero"`       // when a bucket is full again
	ExhaustedUntil time.Time `json:"shut_until,omitzero"` // until when Exhaust keeps the limit closed
}

// Tally is how many calls were counted at a time. For a window that starts at one time
// there is one Tally however many calls it counts, so memory grows with the limit only
// for a sliding window.
type Tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

// limit is one limit as it applies to one key: what it allows, and what was used of it.
// State.limit makes it for one call. Its methods change the Usage that it points to, and
// their results depend only on what it holds and on the arguments.
type limit struct {
	// counting is Behavior.Windows. bucket and burst are read from it, once for all
	// limits.
	counting string
	bucket   bool
	burst    int // of a bucket for a minute; 0 means max
	// length is from the row of spec.Limits, max from the key's plan or WithLimit.
	length time.Duration
	max    int

	*Window                  // what this limit has counted, in usage
	usage          *Usage    // of the key, or of the address for a limit per address
	exhaustedUntil time.Time // until when Exhaust keeps the limit closed for the key
}

// perCall returns the time in which a bucket gains one call. It is never 0, however high
// WithLimit has set the maximum, since used divides by it.
func (l limit) perCall() time.Duration { return max(1, l.length/time.Duration(l.max)) }

// headStart returns how far Full may be ahead of the clock: the time in which an empty
// bucket fills. Only limits per minute have the size that "token bucket of 10" names: with
// it for the day too, the eleventh call would wait for 87 s.
func (l limit) headStart() time.Duration {
	calls := l.max
	if l.length <= time.Minute {
		calls = min(cmp.Or(l.burst, calls), calls)
	}
	return time.Duration(calls) * l.perCall()
}

// dropExpired forgets the calls that no longer count. A weighted window also needs the
// calls of the window before, so it keeps a call for two lengths.
func (l limit) dropExpired(now time.Time) {
	counts := l.length
	if l.counting == decisions.WindowsWeighted {
		counts *= 2
	}
	for len(l.Calls) > 0 && !l.Calls[0].At.Add(counts).After(now) {
		l.Used -= l.Calls[0].Calls
		l.Calls = l.Calls[1:]
	}
}

// count counts a call that passes now; refuseOrSpend counts no call that it refuses. If
// the calls before were counted in another way, by the fake that wrote a state file, the
// count starts anew.
//
// A bucket is one time, Full: each call moves it later by perCall. The bucket is empty
// when Full is headStart after now, and full when Full has passed.
func (l limit) count(now time.Time) {
	if now.After(l.usage.Last) {
		l.usage.Last = now
	}
	if l.CountedBy != l.counting {
		*l.Window = Window{CountedBy: l.counting, ExhaustedUntil: l.ExhaustedUntil}
	}
	if l.bucket {
		if l.Full.Before(now) {
			l.Full = now
		}
		l.Full = l.Full.Add(l.perCall())
		return
	}
	l.dropExpired(now)
	l.Used++
	// at is the start of the window in which the call counts. A sliding window starts
	// with each call.
	at, last := now, len(l.Calls)-1
	switch {
	case l.counting == decisions.WindowsAligned || l.counting == decisions.WindowsWeighted:
		at = now.Truncate(l.length)
	case l.counting == decisions.WindowsFixed && last >= 0:
		at = l.Calls[0].At
	}
	// Calls may be counted in another order than they read the clock.
	if last >= 0 && !at.After(l.Calls[last].At) {
		l.Calls[last].Calls++
		return
	}
	l.Calls = append(l.Calls, Tally{at, 1})
}

// opens returns when the next call passes; a time not after now means that it passes now. A
// window with a start opens at its end. A sliding window opens when enough of its oldest
// calls no longer count. A lower maximum, by SetPlan, applies to calls that were counted
// under a higher one.
func (l limit) opens(now time.Time) time.Time {
	l.dropExpired(now)
	opens, left := now, l.Used
	switch {
	case l.CountedBy != l.counting: // nothing was counted yet
	case l.bucket:
		opens = l.Full.Add(l.perCall() - l.headStart())
	case l.counting == decisions.WindowsWeighted:
		opens = l.weightedOpens(now)
	default:
		for _, t := range l.Calls {
			if left < l.max {
				break
			}
			opens, left = t.At.Add(l.length), left-t.Calls
		}
	}
	if opens.Before(l.exhaustedUntil) {
		return l.exhaustedUntil
	}
	return opens
}

// weightedOpens returns the first time at which the calls of the present window, and the
// part of the window before that still counts, leave room for one call.
func (l limit) weightedOpens(now time.Time) time.Time {
	start := now.Truncate(l.length)
	before := l.callsBefore(start)
	present := l.Used - before
	if present >= l.max { // it opens in the next window, for which these are the calls before
		start, before, present = start.Add(l.length), present, 0
	}
	room := l.max - 1 - present
	if before <= room {
		return start
	}
	// Until the share of the window that has passed, before*(1-share) + present stays
	// above max-1; then there is room for one call.
	share := 1 - float64(room)/float64(before) // of the window that has to pass
	return start.Add(time.Duration(math.Ceil(share * float64(l.length))))
}

// callsBefore returns how many of the counted calls came before a time.
func (w *Window) callsBefore(start time.Time) (calls int) {
	for _, t := range w.Calls {
		if t.At.Before(start) {
			calls += t.Calls
		}
	}
	return calls
}

// used returns how many calls count now. A part of a call counts as a call, so that a
// limit which refuses the next call never shows one left.
func (l limit) used(now time.Time) int {
	switch {
	case l.CountedBy != l.counting:
		return 0
	case l.bucket:
		return int(max(0, l.Full.Sub(now)+l.perCall()-1) / l.perCall())
	}
	l.dropExpired(now)
	if l.counting != decisions.WindowsWeighted {
		return l.Used
	}
	start := now.Truncate(l.length)
	before := l.callsBefore(start)
	// left is the share of the window before that the last length still covers.
	left := 1 - float64(now.Sub(start))/float64(l.length)
	return l.Used - before + int(math.Ceil(float64(before)*left-rounding))
}

// rounding is more than the error of a count that is computed with floats. Without it a
// count of exactly 60 might be rounded up to 61.
const rounding = 1e-6

// Usage is what one API key, or one client address, has used of each limit. A key uses
// nothing of the limits per address, and an address nothing of those per key.
//
// Last shows when a Usage comes from another clock: see usageIfSameClock.
type Usage struct {
	Windows [spec.LimitCount]Window `json:"windows"` // in the order of spec.Limits
	Last    time.Time               `json:"last"`    // the time of the newest counted call
}

// The longest windows of the limits of a key, and of an address (interface 8.1).
const longestKeyWindow, longestAddressWindow = spec.Day, time.Minute

// usageIfSameClock returns u, or an empty Usage if u is nil or comes from another clock: its
// newest call is later than now by more than the longest window. A bubble starts in the
// year 2000, and a test does not set its clock back by more.
func usageIfSameClock(u *Usage, now time.Time, longest time.Duration) *Usage {
	if u == nil || u.Last.After(now.Add(longest)) {
		return new(Usage)
	}
	return u
}
