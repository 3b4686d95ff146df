package pacer

// long is the state of a limit of an hour or more. Its calls are not paced, but
// counted. When Max are sent, one more finds out whether the service refuses;
// if it does, "so many calls, then so long" is remembered for the periods that
// follow without a pause.
type long struct {
	begins  int64 // the period that is counted
	sent    int64 // in it
	most    int64 // what such a period held; 0: not known
	lasts   int64 // how long it lasted
	probing int64 // until then one call finds out
	changed int64 // when a refusal was last learned from
}

// probeWait is how long the answer of a probe is waited for.
const probeWait = 10 * second

// roll begins the next period when one is over. Only one that was used up, and
// is followed without a pause, is known to be like the one before.
func (l *long) roll(now int64) {
	end := l.begins + l.lasts
	switch {
	case l.most == 0 || now < end:
	case l.sent >= l.most && now < end+l.lasts:
		l.begins, l.sent = end, 0
	default:
		l.begins, l.sent, l.most = now, 0, 0
	}
}

// next is when a call may go that has so many before it, and whether it is to
// find out if the service refuses.
func (l *long) next(r *rule, now int64, before int) (at int64, probe bool) {
	l.roll(now)
	sent := l.sent + int64(before)
	switch {
	case l.probing > now:
		return l.probing, false
	case l.most > 0 && sent >= l.most:
		return l.begins + l.lasts, false
	}
	return now, l.most == 0 && float64(sent) >= r.max
}

func (l *long) spend(at, calls int64, probe bool) {
	if l.begins == 0 {
		l.begins = at
	}
	l.sent += calls
	if probe {
		l.probing = at + probeWait
	}
}

// accepted begins a period: the service did not refuse the probe.
func (l *long) accepted(now int64) {
	if l.probing > 0 {
		*l = long{begins: now, sent: 1, changed: l.changed}
	}
}

const (
	// longGuard is added to a period, since its calls arrive now and then later
	// than those of the one before.
	longGuard = 2 * second
	// shortWait is a wait that a limit of a minute may ask for as well.
	shortWait = 61 * second
)

// used reports whether its own count explains a refusal: it is full, or goes on
// from a period that was.
func (l *long) used(r *rule) bool { return float64(l.sent-1) >= r.max || l.most > 0 && l.sent > 1 }

// refused learns from a refusal that asks to wait until opens. Only a count that
// is full is remembered, or one that agrees with the limit's rate: another may
// be due to other limits, or to calls that came a bit early.
func (l *long) refused(r *rule, now, opens, granted int64) {
	if granted <= l.changed {
		return
	}
	l.probing = 0
	held, lasts := l.sent-1, min(r.window, opens-l.begins)
	rate := float64(held) / float64(lasts) * float64(r.window) / r.max
	full := float64(held) >= r.max
	switch {
	case full, l.used(r) && rate <= 2 && (opens-now > shortWait || lasts < 2*shortWait):
		*l = long{begins: opens, changed: now, most: held, lasts: lasts + longGuard}
	case l.most == 0:
		*l = long{begins: opens, changed: now}
	case held <= 0: // the period before lasted longer
		*l = long{begins: opens, changed: now, most: l.most, lasts: min(r.window+longGuard, l.lasts+opens-l.begins)}
	default:
		l.sent--
	}
}
