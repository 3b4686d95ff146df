package pacer

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const second = int64(time.Second / time.Microsecond)

// short is the state of a limit whose window is below an hour. Its calls go at
// an even pace, a few at once after quiet, and never more than the level in one
// window.
type short struct {
	Due       int64   // the end of what was granted, at an even pace
	Slots     []slot  // the calls of the last window, oldest first
	Held      int64   // the calls of all slots
	Level     float64 // the calls that a window holds, as a part of Max
	Corrected int64   // when the level was last cut; 0: never
	Quiet     int64   // from then on it climbs to Max
}

// slot counts the calls of a 240th of the window. Half as many still let a few
// calls too many go. Of a long limit it is a 60th.
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
)

// level is what a window may hold by now.
func (b budget) level() float64 {
	level := max(1, b.Level*b.max)
	if level >= b.max || b.now < b.Quiet {
		return level
	}
	return min(b.max, level*math.Pow(climb, float64(b.now-b.Quiet)/float64(b.window)))
}

// pause keeps all calls back until then; from then on they go at an even pace.
func (b budget) pause(until int64) { b.Due = max(b.Due, until+b.credit) }

// sent counts the calls of the last window, and forgets those before.
func (b budget) sent() int64 {
	for len(b.Slots) > 0 && b.Slots[0].Leaves <= b.now {
		b.Held -= b.Slots[0].Calls
		b.Slots = b.Slots[1:]
	}
	return b.Held
}

// sentAt counts those that are still in the window at a later time.
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

// even puts so many calls at even distances into the last window: only the
// number is known of calls that went without the store.
func (b budget) even(calls int64) {
	b.Slots, b.Held = nil, 0
	for i := calls; i > 0; i-- {
		b.add(b.now-i*(b.window+b.guard)/(calls+1), 1)
	}
}

// free is when the window has room for one more call, if it may have so many.
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
	b.Due = max(b.Due, b.now) + max(b.calls*b.pace, b.widest(0))
}

// widest is the distance of calls at which the room of the window, when so many
// more have gone, does not run out before its oldest calls leave.
func (b budget) widest(more int64) (distance int64) {
	room := int64(b.allowed) - more - b.Held
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

// refusedShort learns a level from a refusal. It does not climb for some windows.
func (b budget) refusedShort(opens, granted int64, hold float64) {
	if b.Corrected > 0 && granted <= b.Corrected+2*b.pace {
		return // it was under way when the level was cut, or the cut had no time to work
	}
	level, seen := b.allowed, float64(b.sentAt(opens)-1) // without the refused one
	switch {
	case seen < 0.95*level:
	case b.now-b.Corrected > 4*b.window && level >= 0.95*b.max: // calls that came a bit closer together than they were sent
		seen, hold = 0.985*level, longHold
	default:
		seen = 0.9 * level
	}
	b.Level = max(1, level/2, seen) / b.max
	b.Corrected, b.Quiet = b.now, b.now+int64(hold*float64(b.window))
}
