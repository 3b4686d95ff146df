package pacer

// long is the state of a limit of an hour or more. Its calls are not paced, but
// counted. When Max are sent, one more finds out whether the service refuses;
// if it does, "so many calls, then so long" is remembered for as long as all of
// that is used. As the service may count otherwise, that holds nobody back for
// more than mostTrusted once less than Max have gone in the last window, of which
// short's slots keep count.
type long struct {
	Begins  int64 // the period that is counted
	Sent    int64 // in it
	Most    int64 // what such a period held; 0: not known
	Lasts   int64 // how long it lasted
	Probing int64 // until then a call that finds out may be refused
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

// rate is that of so many calls in a time, as a part of the limit's.
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
