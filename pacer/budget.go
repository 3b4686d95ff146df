package pacer

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// budget is a bound and its count at a moment, with what follows from them; see
// ledger.budget. Times and durations are in microseconds.
type budget struct {
	*bound
	*count
	index         int // in ledger.bounds
	now           int64
	callWeight    int64   // how many calls one call counts as: see ledger.callWeight
	slotLength    int64   // the length of a slot
	arrivalMargin int64   // added to each window, because calls arrive later than they are sent
	allowed       float64 // the level now: calls in a window
	evenGap       int64   // the distance at which calls fill the window evenly
	pace          int64   // the distance between calls: even and extra
	extra         float64 // the part of pace that is added to even; at least the guard's
	burst         int64   // how early calls may go after a quiet time; 0 while the process works on its share
}

// next returns when a call may go, after before other calls. On a share a call counts as
// several, but may go if there is room for one.
func (b budget) next(before int64) int64 {
	if !b.paced() {
		return max(b.Due, b.now)
	}
	gap := b.pace
	if b.early(b.now) {
		gap = b.evenGap
	}
	return max(max(b.Due, b.now-b.burst)+before*gap, b.roomAt(b.allowed-float64(before)))
}

const second = int64(time.Second / time.Microsecond)

// count is the state of a bound: the calls of the last window, and what refusals have
// taught. If the window is below an hour, calls go at an even pace, a few at once after
// quiet, and never more than the level in one window. The calls of a longer window are
// only counted: only the service knows when such a window begins anew, so its refusal
// closes the limit. See spendCounted.
type count struct {
	Due       int64   // when the next call may go, by the pace
	Slots     []slot  // the calls of the last window, oldest first
	Held      int64   // the calls of all slots
	Level     float64 // how many calls a window allows, as a part of Max
	Extra     float64 // by which part the pace is longer than window/level: 0.25 is a quarter
	Corrected int64   // when a refusal last changed Level or Extra; 0: never
	Quiet     int64   // when Level begins to climb back to Max
	Early     int64   // when an answer last let a call go earlier: see ledger.accepted
	Trials    int64   // of a limit that is only counted, see spendCounted; 0: none yet
}

// slot counts the calls of a part of the window: 1/pacedSlots or 1/countedSlots.
type slot struct {
	Leaves int64 // when its calls leave the window and the guard
	Calls  int64
}

const (
	pacedSlots    = 240         // slots of a paced window; with 120 a few calls exceeded the limit
	countedSlots  = 60          // slots of a window that is only counted, which may be a day
	trialWait     = second      // how long a trial is waited for: services refuse quickly
	maxAtOnce     = 10          // calls of a burst
	atOnceAtFirst = 3           // calls of the first burst of a process
	levelGrowth   = 1.5         // the factor by which the level grows in a window
	shortHold     = 2.25        // windows for which a level that was cut does not climb
	longHold      = 40.0        // the same for a process that looks for its share
	quickAnswer   = second / 20 // the least time that an answer takes: see spaced
	nearlyFull    = 0.8         // with fewer calls than this part of a full pace, the pace did not cause the refusal: see refused
	unsureCut     = 0.8         // a process that looks for its share cuts its level to this part, or less
	minLevel      = 0.25        // with fewer calls it takes too long to find out that more may go
	// A refusal in a nearly full window multiplies Extra by extraGrowth, up to maxExtra. Each call
	// that passes shrinks it by its square, but not by more than maxExtraShrink: a small Extra,
	// which costs little, is kept for long. On a leaky bucket, where a delay of 80 ms costs
	// a second, one call in 75 is refused.
	extraGrowth    = 1.8
	maxExtra       = 1.5 // bounds what refusals without a cause can cost
	maxExtraShrink = 1.0 / 140
)

// level returns how many calls a window may hold now.
func (b budget) level() float64 {
	level := max(1, b.Level*b.max)
	if level >= b.max || b.now < b.Quiet {
		return level
	}
	return min(b.max, level*math.Pow(levelGrowth, float64(b.now-b.Quiet)/float64(b.window)))
}

// pause holds all calls back until a time. After it they go at the pace, without a burst.
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
	leaves := (at/b.slotLength+1)*b.slotLength + b.window + max(0, b.arrivalMargin-b.slotLength)
	i, has := slices.BinarySearchFunc(b.Slots, leaves, func(s slot, leaves int64) int { return cmp.Compare(s.Leaves, leaves) })
	if !has {
		b.Slots = slices.Insert(b.Slots, i, slot{Leaves: leaves})
	}
	calls = max(calls, -b.Slots[i].Calls)
	b.Slots[i].Calls += calls
	b.Held += calls
}

// spreadEvenly replaces the slots by a number of calls at even distances in the last window. It is
// for calls that went without the store: there a process on its share counted each call as
// several at once, which would leave the window together.
func (b budget) spreadEvenly(calls int64) {
	b.Slots, b.Held = nil, 0
	places := min(calls, (b.window+b.arrivalMargin)/b.slotLength) // calls may be any number: a store may lie
	for i := range places {
		b.add(b.now-(i+1)*(b.window+b.arrivalMargin)/(places+1), calls*(i+1)/places-calls*i/places)
	}
}

// roomAt returns when the window has room for one more call, with most as its maximum.
func (b budget) roomAt(most float64) int64 {
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
	b.add(b.now, b.callWeight)
	b.Due = max(b.Due, b.now-b.burst) + b.safeDistance()
	b.Extra = b.extra - b.extra*min(maxExtraShrink, b.extra*b.extra)*float64(b.callWeight)
}

// spendCounted counts a call of a limit without a pace. Once Max calls have gone, and
// after each refusal, the next call is a trial: the others wait for as long as its refusal
// would take. After it one call goes, then two, four, eight, each time followed by a wait.
func (b budget) spendCounted() {
	if b.Trials == 0 && b.sent() >= int64(b.max) {
		b.Trials = 1
	}
	b.add(b.now, b.callWeight)
	if b.Trials > 0 {
		if b.Trials&(b.Trials-1) == 0 {
			b.Due = b.now + trialWait
		}
		b.Trials++
	}
}

// safeDistance returns the distance to the next call. It is the pace, or longer if the window
// would fill up before its next slots leave. Later slots have more room, so the loop ends as
// soon as even the last one could not make the distance longer.
func (b budget) safeDistance() int64 {
	distance, room := b.callWeight*b.pace, int64(b.allowed)-b.Held
	latest := b.Slots[len(b.Slots)-1].Leaves - b.now
	for i := 0; i < len(b.Slots) && latest > distance*(room+1); i++ {
		if room >= 0 {
			distance = max(distance, (b.Slots[i].Leaves-b.now)/(room+1))
		}
		room += b.Slots[i].Calls
	}
	return distance
}

// refused learns from a refusal of a call that was granted at a time; opens is when the
// limit opens again.
//
// If the window then holds far fewer calls than the pace sends, it allows no more: others
// use the limit, or it is lower than Max. The level is cut, and does not climb for some
// windows. Otherwise the calls came too close together, for a service that spaces them or
// refuses a full window: Extra grows. But a call that goes early, after an answer, cannot
// come too close to the one before, so its refusal cuts the level too. A process that never
// saw the store looks for its share: it cuts the level more.
func (b budget) refused(opens, granted int64, neverSawStore bool) {
	if b.Corrected > 0 && granted <= b.Corrected+2*b.pace {
		return // the call was under way at the last correction, or that had no time to work
	}
	atFullPace, quietWindows := float64(b.window)/float64(b.pace), shortHold
	inWindow := float64(b.sentAt(opens) - 1) // without the refused call
	b.Level = b.allowed / b.max
	full := inWindow >= nearlyFull*atFullPace
	switch {
	case neverSawStore:
		b.Level, quietWindows = max(1, b.allowed/2, min(inWindow, unsureCut*b.allowed))/b.max, longHold
	case !full || b.early(granted):
		b.Level = max(b.allowed/2, inWindow, minLevel*b.max) / b.max
	}
	if full && !neverSawStore {
		b.Extra = min(maxExtra, extraGrowth*b.extra)
	}
	b.Corrected, b.Quiet = b.now, b.now+int64(quietWindows*float64(b.window))
}

// spaced reports whether the service seems to space calls, and Extra is so long that an answer
// can come in between. A level below Max means that it refused calls for another reason.
func (b budget) spaced() bool {
	return b.paced() && b.allowed >= b.max && b.pace-b.evenGap > quickAnswer
}

// early reports whether a call that is granted at a time goes early, after an answer.
func (b budget) early(granted int64) bool { return granted < b.Early+b.evenGap }

// usedPart returns how much of a limit is used, to find the limit that explains a refusal. A
// limit that is only counted explains none before it is used up: until then usedPart is below
// that of all others.
func (b budget) usedPart() float64 {
	full := float64(b.sent()) / b.allowed
	if !b.paced() && full < 1 {
		return full - 2
	}
	return full
}
