package cooldown

import "time"

// turns lets callers go in turn behind a gate that has opened. Few of them then
// meet the refusal that shows where the limit is, and none meets it twice.
//
//   - The first callers go at once, as many as are sure to pass: those that passed
//     last time, less those that were refused then, and at least one.
//   - Until as many have passed as last time, two more go for each that passes.
//   - There the limit was last time. From there on one caller goes after each gap,
//     which is the average distance of last time and shrinks with each that passes.
//   - A last attempt does not take part in this search, since a refusal would end
//     its call. It goes if it is among the sure ones, or if there was time for an
//     interval of every, a gap and an eighth, for each caller that was sent. Once
//     four times as many have passed without a refusal, every shrinks too, slowly.
//
// A nil turns lets everybody go.
type turns struct {
	sure    int           // how many will pass
	before  int           // how many passed when the gate was open last; 0: not known
	every   time.Duration // the distance at which last attempts are sure to pass; 0: not known
	gap     time.Duration // the distance beyond before; 0: not known
	sent    int           // since the opening
	passed  int           // of them
	refused int           // of them
	lastOut int           // last attempts that have not been answered
	opened  time.Time
	paced   time.Time // when the first last attempt was due, at the distance of now
	at      time.Time // of the opening, or when the last one was sent
}

// patience is how long an answer is waited for before the next caller goes
// all the same: services refuse quickly, but replies can take minutes.
const patience = time.Second

// maxGap bounds the distance: to be wrong by more would cost a caller more than a
// refusal.
const maxGap = 15 * time.Second

// allow reports whether the next caller may go. Of last attempts, a quarter at
// a time: others may have used the limit up.
func (t *turns) allow(last bool, now time.Time) bool {
	if t == nil {
		return true
	}
	switch idle := now.Sub(t.at); {
	case last && t.every > 0:
		sure := max(t.sure, 1+int(now.Sub(t.paced)/t.every))
		return t.sent < sure && (t.lastOut < max(1, sure/4) || idle >= patience)
	case idle >= max(patience, t.gap):
		return true
	case t.lastOut > 0:
		return false
	case t.passed < t.sure:
		return t.sent < t.sure
	case t.sent < t.before || t.gap == 0:
		return t.sent <= t.sure+2*(t.passed-t.sure)
	default:
		return idle >= t.gap
	}
}

// wait is how long the head of the line waits until it looks again.
func (t *turns) wait(now time.Time) time.Duration {
	if left := t.gap - now.Sub(t.at); left > 0 {
		return min(left, patience)
	}
	return patience
}

// next are the turns after these, which a refusal has ended; the gate was shut
// for so long. Turns by another clock, or of another day, teach nothing.
func (t *turns) next(now time.Time, shut time.Duration) *turns {
	next := &turns{sure: 1, opened: now, paced: now, at: now}
	if t == nil || now.Sub(t.opened) <= 0 || now.Sub(t.opened) > longestShut {
		return next
	}
	passed := t.sent - t.refused          // replies can take minutes, refusals do not
	next.before = max(passed, t.before/2) // others may have been quicker this time
	next.gap = t.gap
	if passed > 0 {
		took := now.Sub(t.opened)
		next.gap = min(took/time.Duration(passed), maxGap)
		if t.gap > 0 && passed > t.known() {
			next.gap = min(next.gap, t.gap*5/4)
		}
		next.sure = max(1, min(passed-t.refused, int(time.Duration(passed)*shut/took)))
	}
	next.every = next.gap * 9 / 8
	return next
}

// send counts a caller that is let pass.
func (t *turns) send(left int, now time.Time) {
	if left <= 0 {
		t.lastOut++
	}
	t.sent++
	t.at = now
}

// settle counts how it ended.
func (t *turns) settle(left int, outcome Outcome) {
	if left <= 0 {
		t.lastOut--
	}
	switch {
	case outcome.Refused:
		t.refused++
	case outcome.Sent:
		t.passed++
		t.quicken(left)
	default:
		t.sent--
	}
}

// known is how many passed when the gate was open last.
func (t *turns) known() int { return max(t.sure, t.before) }

// quicken shrinks the distances after a call has passed. The gap shrinks where the
// call took part in the search. The distance of last attempts shrinks once so many
// have passed that the limit must be wider than was thought: where all callers are
// on their last attempt, nothing else would find that out.
func (t *turns) quicken(left int) {
	if left > 0 && t.passed > t.known() {
		t.gap -= t.gap / 16
	}
	if t.passed > 4*t.known() {
		t.every -= t.every / 64
		t.paced = t.paced.Add(t.at.Sub(t.paced) / 64) // so that no more are due at once
		t.gap = min(t.gap, 2*t.every)
	}
}

// over reports that all who were sent have been answered, and that everybody
// has had the time to join the line. All wake when the gate opens, and the first
// of them may have their answers before the others come.
func (t *turns) over(now time.Time) bool {
	return t.sent == t.passed+t.refused && now.Sub(t.opened) >= patience
}
