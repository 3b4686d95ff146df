package quota

import "time"

// ramp lets callers go in turn behind a gate that has opened, so that few of them
// meet the refusal that shows where the limit is: one goes, then two for each that
// has passed, up to the number that passed last time. From there on one goes
// after each gap: last time's average distance, which shrinks with each that passes.
type ramp struct {
	before  int           // how many passed when the gate was open last; 0: not known
	gap     time.Duration // the distance beyond before; 0: not known
	sent    int           // since the opening
	passed  int           // of them
	refused int           // of them
	opened  time.Duration
	last    time.Duration // when one was sent, or the opening
}

const (
	// answerWait is how long an answer is waited for before the next caller goes
	// all the same: services refuse quickly, but replies can take minutes. It also
	// bounds what the pace of many costs a lone caller.
	answerWait = time.Second
	// maxGap bounds the distance: to be wrong by more would cost a caller more
	// than a refusal.
	maxGap = 15 * time.Second
)

// due is when the next caller may go.
func (r *ramp) due(now time.Duration, alone bool) time.Duration {
	wait := max(answerWait, r.gap)
	switch {
	case r.sent == 0:
		return now
	case r.gap > 0 && r.sent >= r.before:
		wait = r.gap
	case r.sent <= 2*r.passed:
		return now
	}
	if alone {
		wait = min(wait, answerWait)
	}
	return max(now, r.last+wait)
}

// record counts how a caller that was sent has ended.
func (r *ramp) record(o Outcome) {
	switch {
	case o.Refused:
		r.refused++
	case o.Sent:
		r.passed++
		if beyond := r.passed - r.before; beyond > 0 {
			r.gap -= r.gap * time.Duration(min(beyond, 256)) / 512
		}
	default:
		r.sent--
	}
}

// through counts those who got through, answered or not: refusals come quickly.
func (r *ramp) through() int { return r.sent - r.refused }

// next is the ramp after this one, which a refusal has ended.
func (r *ramp) next(now time.Duration) *ramp {
	next := &ramp{opened: now, last: now}
	if r == nil || now <= r.opened {
		return next
	}
	passed := r.through()
	next.before = max(passed, r.before/2) // others may have been quicker this time
	switch {
	case passed <= 0:
		next.gap = min(r.gap*5/4, maxGap)
	default:
		next.gap = min((now-r.opened)/time.Duration(passed), maxGap)
		if r.gap > 0 && passed > r.before {
			next.gap = min(next.gap, r.gap*5/4)
		}
	}
	return next
}

// over reports that all who were sent have been answered, and that everybody who
// waited has had the time to ask.
func (r *ramp) over(now time.Duration) bool {
	return r.sent == r.passed+r.refused && now-max(r.opened, r.last) >= answerWait
}
