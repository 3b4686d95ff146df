package pacer

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// budget is one limit at work.
type budget struct {
	*rule
	*limit
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

// limit is the state of a rule; which half is used depends on its window.
type limit struct {
	short
	long
}

// next returns when a call may go after before other calls. On a share a call
// counts as several, and may go if there is room for a part of them.
func (b budget) next(before int64) int64 {
	if b.isLong() {
		return b.nextLong(before)
	}
	return max(max(b.Due, b.now-b.credit)+before*b.pace, b.free(b.allowed-float64(before)))
}

func (b budget) giveBack(at int64) {
	b.add(at, -b.calls)
	if b.isLong() {
		b.Sent, b.Probing = max(0, b.Sent-b.calls), 0
	} else {
		b.Due -= b.calls * b.pace
	}
}

const second = int64(time.Second / time.Microsecond)

// short is the state of a limit whose window is below an hour. Its calls go at
// an even pace, a few at once after quiet, and never more than the level in one
// window.
type short struct {
	Due       int64   // when the next call may go, at an even pace
	Slots     []slot  // the calls of the last window, oldest first
	Held      int64   // the calls of all slots
	Level     float64 // the calls that a window holds, as a part of Max
	Extra     float64 // what is added to the even distance, as a part of it; at least the guard
	Corrected int64   // when the level was last cut; 0: never
	Quiet     int64   // from then on it climbs to Max
}

// slot counts the calls of 1/240 of the window. With 120 slots a few calls exceeded
// the limit. A long limit has 60 slots.
type slot struct {
	Leaves int64 // the window, and the guard after it
	Calls  int64
}

const (
	mostAtOnce    = 10
	atOnceAtFirst = 3
	climb         = 1.5  // a window
	shortHold     = 2.25 // windows in which a level that was cut does not climb
	longHold      = 15.0
	nearlyFull    = 0.8 // of what the pace sends
	lonelyCut     = 0.75
	// A refusal of a nearly full window has Extra grow by grow. Each call that passes
	// shrinks it by its square, but not by more than mostShrink: a small distance, which
	// costs little, is kept for long. On a leaky bucket, where a delay of 80 ms costs a
	// second, one call in 80 is refused.
	grow       = 1.8
	mostShrink = 1.0 / 140
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
// went without the store: only their number is known.
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
		if room >= 1 || b.calls > 1 && room > 0 {
			break
		}
		room += float64(s.Calls)
		at = s.Leaves
	}
	return at
}

func (b budget) spendShort() {
	b.add(b.now, b.calls)
	b.Due = max(b.Due, b.now-b.credit) + max(b.calls*b.pace, b.widest())
	b.Extra = b.extra - b.extra*min(mostShrink, b.extra*b.extra)*float64(b.calls)
}

// widest returns the distance between calls at which the window does not fill up
// before its oldest calls leave.
func (b budget) widest() (distance int64) {
	room := int64(b.allowed) - b.Held
	for _, s := range b.Slots {
		if room >= 0 {
			distance = max(distance, (s.Leaves-b.now)/(room+1))
		}
		if room > 2*b.window { // the slots that follow need no microsecond
			break
		}
		room += s.Calls
	}
	return distance
}

// refusedShort learns from a refusal. If much fewer calls than the pace sends are in the
// window when the limit opens, the window holds no more: others use it, or the limit is
// lower. It does not climb for some windows. Otherwise the calls came closer together
// than they were sent, for a service that spaces them or refuses a full window. A lonely
// process looks for its share.
func (b budget) refusedShort(opens, granted int64, lonely bool) {
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
		b.Level = max(1, b.allowed/2, seen) / b.max
	default:
		b.Extra = grow * b.extra
	}
	b.Corrected, b.Quiet = b.now, b.now+int64(hold*float64(b.window))
}

// long is the state of a limit of an hour or more. Its calls are not paced, but
// counted. After Max calls one more is sent, to see whether the service refuses it.
// If it does, the number of calls and the length of the period are remembered, while
// each period is used up. The service may count in another way, so once fewer than
// Max calls have gone in the last window (short's slots count them), a remembered
// period holds calls back for at most mostTrusted.
type long struct {
	Begins  int64 // the period that is counted
	Sent    int64 // in it
	Most    int64 // what such a period held; 0: not known
	Lasts   int64 // how long it lasted
	Probing int64 // the probe may be refused until then
}

const (
	probeWait = 10 * second // for the refusal of a probe
	// mostTrusted is the longest period that is believed whatever the last window
	// held: a service that refills a large limit lets one call go now and then.
	mostTrusted = 120 * second
	longGuard   = 2 * second // added to a period, as its calls may arrive later than those of the one before
)

// roll begins the next period when one is over, or when the service has not
// refused a probe. One that was not used up says nothing about the next, and one
// that was slower than the limit's rate is not kept to again.
func (b budget) roll() {
	over := b.Most > 0 && b.now >= b.Begins+b.Lasts
	switch {
	case b.Probing > 0 && b.now >= b.Probing:
		b.long = long{Begins: b.Probing - probeWait, Sent: 1}
	case over && (b.Sent < b.Most || b.rate(b.Most, b.Lasts) < 0.9):
		b.long = long{Begins: b.now}
	case over:
		b.Begins, b.Sent = b.now, 0
	}
}

func (b budget) nextLong(before int64) int64 {
	b.roll()
	switch {
	case b.Probing > b.now:
		return b.Probing
	case b.Most == 0 || b.Sent+before < b.Most:
		return b.now
	case b.Lasts <= mostTrusted:
		return b.Begins + b.Lasts
	}
	return min(b.Begins+b.Lasts, b.free(b.max-float64(before)))
}

func (b budget) spendLong() {
	b.roll()
	if b.Begins == 0 {
		b.Begins = b.now
	}
	if b.Most == 0 && float64(b.Sent) >= b.max {
		b.Probing = b.now + probeWait
	}
	b.Sent += b.calls
	b.sent() // forgets what has left the window
	b.add(b.now, b.calls)
}

// used reports whether its own count explains a refusal.
func (b budget) used() bool { return float64(b.Sent) >= b.max || b.Most > 0 && b.Sent > 0 }

// rate returns the rate of calls in a time as a fraction of the limit's rate.
func (b budget) rate(calls, lasts int64) float64 {
	return float64(calls) / float64(lasts) * float64(b.window) / b.max
}

// refusedLong learns from a refusal that asks to wait until opens. Only a count
// that is full is remembered, or one that agrees with the limit's rate: another
// may be due to other limits, or to calls that came a bit early.
func (b budget) refusedLong(opens int64) {
	next, lasts := long{Begins: opens}, min(b.window, opens-b.Begins)
	switch {
	case float64(b.Sent) >= b.max || b.used() && b.rate(b.Sent, lasts) <= 2:
		next.Most, next.Lasts = b.Sent, lasts+longGuard
	case b.used():
		return
	case b.Most > 0: // the period before lasted longer
		slowest := float64(b.window) * float64(b.Most) / b.max
		next.Most, next.Lasts = b.Most, min(int64(slowest)+longGuard, b.Lasts+opens-b.Begins)
	}
	b.long = next
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
