package service

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Ledger holds the calls that were counted against one limit, in the form that a state
// file keeps. CountedBy is Behavior.Windows of the fake that counted; "" before the first
// call. A token bucket uses Full. Every other way of counting uses Calls and Used.
type Ledger struct {
	CountedBy      string    `json:"kind,omitempty"`
	Calls          []Tally   `json:"calls,omitempty"`     // oldest first; if the window has a start, all have the time of the start
	Used           int       `json:"used,omitempty"`      // the sum of Calls
	Full           time.Time `json:"full,omitzero"`       // when a bucket is full again
	ExhaustedUntil time.Time `json:"shut_until,omitzero"` // Exhaust keeps the limit closed until this time
}

// Tally says how many calls were counted at a time. A window with a start needs one Tally
// for any number of calls, so memory grows with the limit only for a sliding window.
type Tally struct {
	At    time.Time `json:"at"`
	Calls int       `json:"calls"`
}

// limit is one limit as it applies to one key: its maximum, and the calls that count.
// State.limit makes it for one call. Only count changes the Usage that it points to. The results
// of its methods depend only on its fields and on their arguments.
type limit struct {
	// counting is Behavior.Windows. bucket and burst are parsed from it once for all limits.
	counting       string
	bucket         bool
	burst          int         // the size of a bucket for a minute; 0 means max
	row            *spec.Limit // its row of spec.Limits
	max            int         // from the key's plan or WithLimit
	*Ledger                    // this limit's ledger in usage
	usage          *Usage      // of the key, or of the address for a limit per address
	keyClosedUntil time.Time   // Exhaust keeps the limit closed for the key until this time, even a limit per address
}

// perCall returns the time in which a bucket gains one call. It is never 0, however high
// WithLimit has set the maximum, since used divides by it.
func (l limit) perCall() time.Duration { return max(1, l.row.Window/time.Duration(l.max)) }

// burstTolerance returns how far Full may be ahead of the clock, as in GCRA: the time in
// which an empty bucket fills. The size that "token bucket of 10" names is only for limits
// per minute. If the limit per day had the same size, the eleventh call would wait for
// 87 s.
func (l limit) burstTolerance() time.Duration {
	calls := l.max
	if l.row.Window <= time.Minute {
		calls = min(cmp.Or(l.burst, calls), calls)
	}
	return time.Duration(calls) * l.perCall()
}

// counted returns the calls that still count, and their sum. A weighted window also needs the
// calls of the window before, so there they count for two windows.
func (l limit) counted(now time.Time) (calls []Tally, used int) {
	counts := l.row.Window
	if l.counting == decisions.WindowsWeighted {
		counts *= 2
	}
	calls, used = l.Calls, l.Used
	for len(calls) > 0 && !calls[0].At.Add(counts).After(now) {
		used -= calls[0].Calls
		calls = calls[1:]
	}
	return calls, used
}

// count counts a call that passes now. If the fake that wrote a state file counted calls in
// another way, the count starts from zero.
func (l limit) count(now time.Time) {
	l.usage.Last = later(l.usage.Last, now)
	if l.CountedBy != l.counting {
		*l.Ledger = Ledger{CountedBy: l.counting, ExhaustedUntil: l.ExhaustedUntil}
	}
	// The state of a bucket is a single time, Full. Each call moves Full later by perCall. The
	// bucket is empty when Full is burstTolerance after now, and full when Full has passed.
	if l.bucket {
		l.Full = later(l.Full, now).Add(l.perCall())
		return
	}
	l.Calls, l.Used = l.counted(now)
	l.Used++
	// at is the start of the window in which the call counts. A sliding window starts
	// with each call.
	at, last := now, len(l.Calls)-1
	switch {
	case l.counting == decisions.WindowsAligned || l.counting == decisions.WindowsWeighted:
		at = now.Truncate(l.row.Window)
	case l.counting == decisions.WindowsFixed && last >= 0:
		at = l.Calls[0].At
	}
	// Concurrent calls may be counted in another order than the one in which they read the
	// clock.
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
	calls, left := l.counted(now)
	opens := now
	switch {
	case l.CountedBy != l.counting: // no call was counted in this way yet
	case l.bucket:
		opens = l.Full.Add(l.perCall() - l.burstTolerance())
	case l.counting == decisions.WindowsWeighted:
		opens = l.weightedOpens(now, calls, left)
	default:
		for _, t := range calls {
			if left < l.max {
				break
			}
			opens, left = t.At.Add(l.row.Window), left-t.Calls
		}
	}
	return later(opens, l.keyClosedUntil)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// weightedOpens returns the first time at which the calls of the present window, and the
// part of the window before that still counts, leave room for one call. calls and used are what
// counted returns.
func (l limit) weightedOpens(now time.Time, calls []Tally, used int) time.Time {
	start := now.Truncate(l.row.Window)
	before := callsBefore(calls, start)
	present := used - before
	if present >= l.max { // the limit opens in the next window, where these calls are the calls of the window before
		start, before, present = start.Add(l.row.Window), present, 0
	}
	room := l.max - 1 - present
	if before <= room {
		return start
	}
	// There is room for one call when before*left + present has fallen to max-1, where left
	// is the share of the window before that still counts.
	return start.Add(l.row.Window - time.Duration(fraction(int64(l.row.Window), int64(room), int64(before))))
}

// fraction returns n*part/whole, rounded down. Floats would put some openings a nanosecond
// late, and Retry-After would then be a second too long.
func fraction(n, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(n), uint64(part))
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(quotient)
}

// callsBefore returns how many of the calls came before start.
func callsBefore(calls []Tally, start time.Time) (before int) {
	for _, t := range calls {
		if t.At.Before(start) {
			before += t.Calls
		}
	}
	return before
}

// used returns how many calls count now. A fraction of a call counts as a whole one, so that a
// limit that refuses the next call never shows that one is left.
func (l limit) used(now time.Time) int {
	switch {
	case l.CountedBy != l.counting:
		return 0
	case l.bucket:
		return int(max(0, l.Full.Sub(now)+l.perCall()-1) / l.perCall())
	}
	calls, used := l.counted(now)
	if l.counting != decisions.WindowsWeighted {
		return used
	}
	start := now.Truncate(l.row.Window)
	return used - int(fraction(int64(callsBefore(calls, start)), int64(now.Sub(start)), int64(l.row.Window)))
}

// stateAt describes the limit.
func (l limit) stateAt(now time.Time) LimitState {
	state := LimitState{Limit: l.row.Key, Max: l.max, Used: l.used(now), Exhausted: l.keyClosedUntil.After(now)}
	if opens := l.opens(now); opens.After(now) {
		state.Opens = opens
	}
	return state
}

// LimitState is one limit at one moment, as Server.Limits shows it and a 429 explains
// it.
type LimitState struct {
	Limit     spec.LimitKey
	Max, Used int
	Opens     time.Time // when the next call passes; zero if a call passes now
	Exhausted bool      // Exhaust closed the limit, until Opens or earlier
}

// Usage holds the calls of one API key, or of one client address, that count against each
// limit. The Usage of a key has no calls for limits per address, and the Usage of an
// address none for limits per key.
//
// Last shows when a Usage comes from another clock: see usageIfSameClock.
type Usage struct {
	Ledgers [spec.LimitCount]Ledger `json:"windows"` // in the order of spec.Limits
	Last    time.Time               `json:"last"`    // the time of the newest counted call
}

// The longest windows of the limits of a key, and of an address.
var longestKeyWindow, longestAddressWindow = longestWindow(false), longestWindow(true)

func longestWindow(perIP bool) (longest time.Duration) {
	for _, l := range spec.Limits {
		if l.PerIP == perIP {
			longest = max(longest, l.Window)
		}
	}
	return longest
}

// usageIfSameClock returns u, or an empty Usage if u is nil or comes from another clock.
// The clock is another one if the newest call is later than now by more than the longest
// window: a synctest bubble starts in the year 2000, and a test does not set its clock
// back that far.
func usageIfSameClock(u *Usage, now time.Time, longest time.Duration) *Usage {
	if u == nil || u.Last.After(now.Add(longest)) {
		return new(Usage)
	}
	return u
}
