package pacer

// long is the state of a limit of an hour or more. Its calls are not paced, but
// counted. When Max are sent, one more finds out whether the service refuses;
// if it does, "so many calls, then so long" is remembered for the periods that
// follow without a pause. As the service may count otherwise, that holds nobody
// back once less than Max have gone in the last window, of which short's slots
// keep count.
type long struct {
	Begins  int64 // the period that is counted
	Sent    int64 // in it
	Most    int64 // what such a period held; 0: not known
	Lasts   int64 // how long it lasted
	Probing int64 // until then a call that finds out may be refused
	Changed int64 // when a refusal was last learned from
}

const (
	probeWait = 10 * second // for the refusal of a probe
	longGuard = 2 * second  // added to a period, as its calls may arrive later than those of the one before
)

// roll begins the next period when one is over, or when the service has not
// refused a probe. Only one that was used up, and is followed without a pause,
// is known to be like the one before.
func (b budget) roll() {
	ends := b.Begins + b.Lasts
	switch {
	case b.Probing > 0 && b.now >= b.Probing:
		b.long = long{Begins: b.Probing - probeWait, Sent: 1, Changed: b.Changed}
	case b.Most == 0 || b.now < ends:
	case b.Sent >= b.Most && b.now < ends+b.Lasts:
		b.Begins, b.Sent = ends, 0
	default:
		b.Begins, b.Sent, b.Most = b.now, 0, 0
	}
}

func (b budget) nextLong(before int64) int64 {
	b.roll()
	switch {
	case b.Probing > b.now:
		return b.Probing
	case b.Most > 0 && b.Sent+before >= b.Most:
		return min(b.Begins+b.Lasts, b.free(b.max-float64(before)))
	}
	return b.now
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
func (b budget) used() bool { return float64(b.Sent-1) >= b.max || b.Most > 0 && b.Sent > 1 }

// refusedLong learns from a refusal that asks to wait until opens. Only a count
// that is full is remembered, or one that agrees with the limit's rate: another
// may be due to other limits, or to calls that came a bit early.
func (b budget) refusedLong(opens, granted int64) {
	if granted <= b.Changed {
		return
	}
	held, lasts := b.Sent-1, min(b.window, opens-b.Begins)
	rate := float64(held) / float64(lasts) * float64(b.window) / b.max
	next := long{Begins: opens, Changed: b.now}
	switch {
	case float64(held) >= b.max || b.used() && rate <= 2:
		next.Most, next.Lasts = held, lasts+longGuard
	case b.Most == 0:
	case held <= 0: // the period before lasted longer
		next.Most, next.Lasts = b.Most, min(b.window+longGuard, b.Lasts+opens-b.Begins)
	default:
		next = b.long
		next.Sent, next.Probing = held, 0
	}
	b.long = next
}
