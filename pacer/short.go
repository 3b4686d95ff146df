package pacer

import "time"

const second = int64(time.Second / time.Microsecond)

// short is the state of a limit whose window is below an hour. Its calls go at
// an even pace, a few at once after quiet, and never more than the level in one
// window.
type short struct {
	due       int64  // the end of what was granted, at an even pace
	slots     []slot // the calls of the last window, oldest first
	level     float64
	top       float64 // the highest level that held; 0: the rule's Max
	corrected int64   // when the level was last cut; 0: never
	quiet     int64   // from then on it climbs
	streak    int64   // cuts that followed each other
	pressed   int64   // since when somebody has always waited; 0: nobody does
	patience  int64   // windows under pressure before it looks above top
}

// slot counts the calls of a 240th of the window.
type slot struct{ number, calls int64 }

const (
	slotsPerWindow = 240
	mostAtOnce     = 10
	atOnceAtFirst  = 3
	climb          = 1.5  // a window
	above          = 1.1  // likewise, above what was told
	shortHold      = 2.25 // windows in which a level that was cut does not climb
	longHold       = 15
	firstPatience  = 15
	mostPatience   = 240
)

func (r *rule) slot() int64 { return max(1, r.window/slotsPerWindow) }

// guard is kept between two windows, since calls arrive later than they are
// sent: about as long as the answers' times spread, within bounds.
func (r *rule) guard(spread int64) int64 {
	least := min(400_000, r.window/20)
	return min(max(spread, least), max(least, r.window/40))
}

// leaves is when a slot has left the window.
func (r *rule) leaves(number, guard int64) int64 {
	return (number+1)*r.slot() + r.window + max(0, guard-r.slot())
}

// allowed is the level by now: learned from refusals, and climbing since.
func (l *short) allowed(r *rule, now int64) float64 {
	top := max(r.max, l.top)
	if l.corrected == 0 {
		return top
	}
	level := l.level
	for t := l.quiet; t < now && level < top; t += r.window {
		level *= 1 + (climb-1)*min(1, float64(now-t)/float64(r.window))
	}
	return max(1, min(level, top))
}

// pace is the even distance of calls.
func (l *short) pace(r *rule, now, guard int64) int64 {
	return int64(float64(r.window+guard) / l.allowed(r, now))
}

// credit is how far the calls may be ahead of the even pace.
func (l *short) credit(r *rule, now, guard int64, alone bool) int64 {
	if !alone {
		return 0
	}
	atOnce := min(mostAtOnce, max(2, int64(l.allowed(r, now)/6)))
	return (atOnce - 1) * l.pace(r, now, guard)
}

// start is the limit's state at first, or after its state was lost.
func (l *short) start(r *rule, now, guard int64, calls int64) {
	l.due = max(l.due, now+l.credit(r, now, guard, true)-(calls-1)*l.pace(r, now, guard))
}

// forget drops the slots that have left, and counts the others.
func (l *short) forget(r *rule, now, guard int64) (calls int64) {
	old := 0
	for old < len(l.slots) && r.leaves(l.slots[old].number, guard) <= now {
		old++
	}
	l.slots = append(l.slots[:0], l.slots[old:]...)
	for _, s := range l.slots {
		calls += s.calls
	}
	return calls
}

// even puts so many calls at even distances into the last window: what is known
// of calls that went without the store is their number.
func (l *short) even(r *rule, now, guard, calls int64) {
	l.slots = nil
	for i := calls; i > 0; i-- {
		number := (now - i*(r.window+guard)/(calls+1)) / r.slot()
		if last := len(l.slots) - 1; last >= 0 && l.slots[last].number == number {
			l.slots[last].calls++
		} else {
			l.slots = append(l.slots, slot{number, 1})
		}
	}
}

// next is when a call may go that has so many before it.
func (l *short) next(r *rule, now, guard int64, before int, alone bool) int64 {
	calls := l.forget(r, now, guard)
	at := max(now, l.due-l.credit(r, now, guard, alone)+int64(before)*l.pace(r, now, guard))
	room := l.allowed(r, now) - float64(calls) - float64(before)
	for _, s := range l.slots {
		if room >= 1 || !alone && room > 0 {
			break
		}
		room += float64(s.calls)
		at = max(at, r.leaves(s.number, guard))
	}
	return at
}

// spend counts a call that is sent at a time, and as so many.
func (l *short) spend(r *rule, at, guard, calls int64) {
	l.press(r, at, guard)
	number := at / r.slot()
	i := len(l.slots)
	for i > 0 && l.slots[i-1].number > number {
		i--
	}
	if i > 0 && l.slots[i-1].number == number {
		l.slots[i-1].calls += calls
	} else {
		l.slots = append(l.slots, slot{})
		copy(l.slots[i+1:], l.slots[i:])
		l.slots[i] = slot{number, calls}
	}
	l.due = max(l.due, at) + max(calls*l.pace(r, at, guard), l.spread(r, at, guard, 0))
}

// spread is the distance of calls at which the room of the window, when so many
// more have gone, does not run out before its oldest calls leave.
func (l *short) spread(r *rule, at, guard, more int64) (widest int64) {
	room := int64(l.allowed(r, at)) - more
	for _, s := range l.slots {
		room -= s.calls
	}
	for _, s := range l.slots {
		if room >= 0 {
			widest = max(widest, (r.leaves(s.number, guard)-at)/(room+1))
		}
		room += s.calls
	}
	return widest
}

// press notes whether calls have waited without a break. A limit that was used
// up for a quarter of an hour without a refusal may be higher than it was told:
// the level then goes above it, until a refusal.
func (l *short) press(r *rule, at, guard int64) {
	if at > l.due-l.credit(r, at, guard, true)+2*l.pace(r, at, guard) {
		l.pressed = 0
		return
	}
	patience := max(firstPatience, l.patience) * r.window
	if l.pressed == 0 || len(l.slots) == 0 || l.allowed(r, at) < max(r.max, l.top) {
		l.pressed = at
	} else if at-l.pressed > patience+r.window {
		l.top = max(r.max, l.top) * above
		l.pressed += r.window
	}
}

// giveBack takes back a call that was not sent.
func (l *short) giveBack(r *rule, at, guard, calls int64) {
	for i := range l.slots {
		if s := &l.slots[i]; s.number == at/r.slot() && s.calls >= calls {
			s.calls -= calls
			l.due -= calls * l.pace(r, at, guard)
			return
		}
	}
}

// refused learns from a refusal at now that asks to wait until opens, of a call
// that was granted at a time. hold is for how many windows it does not climb.
func (l *short) refused(r *rule, now, opens, granted, guard int64, hold float64) {
	calls := l.forget(r, now, guard)
	l.due = max(l.due, opens+l.credit(r, now, guard, true))
	if l.corrected > 0 && granted <= l.corrected+2*l.pace(r, now, guard) {
		return // it was under way when the level was cut, or the cut had no time to work
	}
	l.streak++
	if now-l.corrected > 4*r.window {
		l.streak = 0
	}
	level := l.allowed(r, now)
	seen := l.seen(r, opens, calls)
	switch {
	case seen < 0.95*level:
	case l.streak == 0 && level >= 0.95*r.max: // calls that came a bit closer together than they were sent
		seen, hold = 0.985*level, longHold
	default:
		seen = level * (1 - 0.06*float64(max(1, l.streak)))
	}
	l.level = max(1, level/2, seen)
	if l.top > r.max { // the step before held
		l.level = min(l.level, l.top/above)
		l.top, l.patience = max(r.max, l.level), min(mostPatience, 2*max(firstPatience, l.patience))
	}
	l.corrected, l.quiet, l.pressed = now, now+int64(hold*float64(r.window)), 0
}

// seen is the level that a refusal shows: the calls since the window began
// that opens ends, without the refused one.
func (l *short) seen(r *rule, opens, calls int64) float64 {
	since := int64(0)
	for _, s := range l.slots {
		if (s.number+1)*r.slot() > opens-r.window {
			since += s.calls
		}
	}
	return float64(min(since, calls) - 1)
}
