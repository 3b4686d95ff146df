package pacer

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// budget is a bound and its count, at a moment.
type budget struct {
	*bound
	*count
	index   int
	now     int64
	calls   int64   // what a call counts as
	slot    int64   // the time that a slot counts calls of
	guard   int64   // kept between two windows, since calls arrive later than they are sent
	allowed float64 // calls in a window, by now
	pace    int64   // their even distance
	extra   float64 // of this distance
	credit  int64   // how far they may be ahead of it after quiet; not those of a share
}

// next returns when a call may go after before other calls. On a share a call
// counts as several, and may go if there is room for one of them.
func (b budget) next(before int64) int64 {
	if !b.paced() {
		return max(b.Due, b.now)
	}
	return max(max(b.Due, b.now-b.credit)+before*b.pace, b.free(b.allowed-float64(before)))
}

const second = int64(time.Second / time.Microsecond)

// count is what is known of a bound: the calls of the last window, and what refusals have
// taught. If the window is below an hour, calls go at an even pace, a few at once after
// quiet, and never more than the level in one window. The calls of a longer window are
// only counted: when the service begins it anew, only the service knows, and its refusal
// closes the limit. See spendCounted.
type count struct {
	Due       int64   // when the next call may go, at an even pace
	Slots     []slot  // the calls of the last window, oldest first
	Held      int64   // the calls of all slots
	Level     float64 // the calls that a window holds, as a part of Max
	Extra     float64 // what is added to the even distance, as a part of it; at least the guard
	Corrected int64   // when the level was last cut; 0: never
	Quiet     int64   // from then on it climbs to Max
	Trials    int64   // of a limit that is only counted: see spendCounted; 0: none yet
}

// slot counts the calls of a part of the window: 1/pacedSlots or 1/countedSlots.
type slot struct {
	Leaves int64 // the window, and the guard after it
	Calls  int64
}

const (
	pacedSlots    = 240    // of a window; with 120 a few calls exceeded the limit
	countedSlots  = 60     // of a window that is only counted, and may be a day
	trialWait     = second // services refuse quickly
	maxAtOnce     = 10
	atOnceAtFirst = 3
	climb         = 1.5  // a window
	shortHold     = 2.25 // windows in which a level that was cut does not climb
	longHold      = 40.0 // of a process that looks for its share
	nearlyFull    = 0.8  // of what the pace sends
	lonelyCut     = 0.8
	minLevel      = 0.25 // with fewer calls it takes too long to find out that more may go
	// A refusal of a nearly full window has Extra grow by grow, up to maxExtra. Each
	// call that passes shrinks it by its square, but not by more than maxShrink: a small
	// distance, which costs little, is kept for long. On a leaky bucket, where a delay of
	// 80 ms costs a second, one call in 80 is refused.
	grow      = 1.8
	maxExtra  = 1.5 // so that refusals without a cause do not stop the calls
	maxShrink = 1.0 / 140
)

// level returns how many calls a window may hold now.
func (b budget) level() float64 {
	level := max(1, b.Level*b.max)
	if level >= b.max || b.now < b.Quiet {
		return level
	}
	return min(b.max, level*math.Pow(climb, float64(b.now-b.Quiet)/float64(b.window)))
}

// pause holds all calls back until a time. After it they go at an even pace, without a
// burst.
func (b budget) pause(until int64) { b.Due = max(b.Due, until) }

// sent counts the calls of the last window, and forgets those before.
func (b budget) sent() int64 {
	for len(b.Slots) > 0 && b.Slots[0].Leaves <= b.now {
		b.Held -= b.Slots[0].Calls
		b.Slots = b.Slots[1:]
	}
	return b.Held
}

// sentAt counts the calls that will still be in the window at a later time.
func (b budget) sentAt(later int64) (calls int64) {
	for _, s := range b.Slots {
		if s.Leaves > later {
			calls += s.Calls
		}
	}
	return calls
}

// add counts calls in their slot, or takes some back.
func (b budget) add(at, calls int64) {
	leaves := (at/b.slot+1)*b.slot + b.window + max(0, b.guard-b.slot)
	i, has := slices.BinarySearchFunc(b.Slots, leaves, func(s slot, leaves int64) int { return cmp.Compare(s.Leaves, leaves) })
	if !has {
		b.Slots = slices.Insert(b.Slots, i, slot{Leaves: leaves})
	}
	calls = max(calls, -b.Slots[i].Calls)
	b.Slots[i].Calls += calls
	b.Held += calls
}

// even puts calls at even distances into the last window. It is for calls that
// went without the store: their number counts, and a process on its share counts each as
// several at once, which would leave the window together.
func (b budget) even(calls int64) {
	b.Slots, b.Held = nil, 0
	for i := calls; i > 0; i-- {
		b.add(b.now-i*(b.window+b.guard)/(calls+1), 1)
	}
}

// free returns when the window has room for one more call, with most as its maximum.
func (b budget) free(most float64) int64 {
	room, at := most-float64(b.sent()), b.now
	for _, s := range b.Slots {
		if room >= 1 {
			break
		}
		room += float64(s.Calls)
		at = s.Leaves
	}
	return at
}

// spend counts a call that goes at a time, now or soon.
func (b budget) spend(at int64) {
	if b.now = at; !b.paced() {
		b.spendCounted()
		return
	}
	b.add(b.now, b.calls)
	b.Due = max(b.Due, b.now-b.credit) + max(b.calls*b.pace, b.widest())
	b.Extra = b.extra - b.extra*min(maxShrink, b.extra*b.extra)*float64(b.calls)
}

// spendCounted counts a call of a limit without a pace. Once Max calls have gone, and
// after each refusal, the next one is a trial: the others wait as long as its refusal
// would take, and then one more goes, two, four, eight.
func (b budget) spendCounted() {
	if sent := b.sent(); sent >= int64(b.max) && sent-b.calls < int64(b.max) {
		b.Trials = 1
	}
	b.add(b.now, b.calls)
	if b.Trials > 0 {
		if b.Trials&(b.Trials-1) == 0 {
			b.Due = b.now + trialWait
		}
		b.Trials++
	}
}

// widest returns the distance between calls at which the window does not fill up
// before its oldest calls leave.
func (b budget) widest() (distance int64) {
	room := int64(b.allowed) - b.Held
	for _, s := range b.Slots {
		if room >= 0 {
			distance = max(distance, (s.Leaves-b.now)/(room+1))
		}
		room += s.Calls
	}
	return distance
}

// refused learns from a refusal. If much fewer calls than the pace sends are in the
// window when the limit opens, the window holds no more: others use it, or the limit is
// lower. It does not climb for some windows. Otherwise the calls came closer together
// than they were sent, for a service that spaces them or refuses a full window. A lonely
// process looks for its share.
func (b budget) refused(opens, granted int64, lonely bool) {
	if b.Corrected > 0 && granted <= b.Corrected+2*b.pace {
		return // it was under way when the level was cut, or the cut had no time to work
	}
	expected, hold := float64(b.window)/float64(b.pace), shortHold
	seen := float64(b.sentAt(opens) - 1) // without the refused one
	b.Level = b.allowed / b.max
	switch {
	case lonely:
		b.Level, hold = max(1, b.allowed/2, min(seen, lonelyCut*b.allowed))/b.max, longHold
	case seen < nearlyFull*expected:
		b.Level = max(b.allowed/2, seen, minLevel*b.max) / b.max
	default:
		b.Extra = min(maxExtra, grow*b.extra)
	}
	b.Corrected, b.Quiet = b.now, b.now+int64(hold*float64(b.window))
}

// full is how much of a limit is used. A limit that is only counted explains no refusal
// before it is used up, so it is emptier than all others until then.
func (b budget) full() float64 {
	full := float64(b.sent()) / b.allowed
	if !b.paced() && full < 1 {
		return full - 2
	}
	return full
}
