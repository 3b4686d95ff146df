package cooldown

import "time"

// turns lets callers go in turn behind a gate that has opened, so that few
// meet the refusal that shows where the limit is, and none meets it again and
// again. It is sure that as many will pass as when the gate was open last, less
// the number that was refused then, and one at least. So many go at once, last
// attempts of their calls first, and of these a quarter at a time: others may
// have used the limit up. When they have passed, others try: one, and
// two more for each that passes. Once as many were sent as passed when the gate
// was open last, that begins anew, with one: there the limit was. Where turns is
// nil, everybody goes.
type turns struct {
	sure    int  // how many will pass
	misled  bool // by that: a window slides, or others use the key
	before  int  // how many passed when the gate was open last; 0: not known
	sent    int  // since the opening
	passed  int  // of them
	refused int  // of them
	lastOut int  // last attempts that have not been answered
	opened  time.Time
	at      time.Time // of the opening, or when the last one was sent
}

// patience is how long an answer is waited for before the next caller goes
// all the same: services refuse quickly, but replies can take minutes.
const patience = time.Second

// allow reports whether the next caller may go. A last attempt, which a refusal
// would end, only goes where that is sure, unless there are no others to try.
func (t *turns) allow(last, others bool, now time.Time) bool {
	switch {
	case t == nil:
		return true
	case last && others && t.sent >= t.sure:
		return false
	case now.Sub(t.at) >= patience:
		return true
	case last && t.lastOut >= max(1, t.sure/4):
		return false
	case last && others:
		return true
	case t.lastOut > 0 && !last:
		return false
	case t.passed < t.sure || t.misled && last:
		return t.sent < t.sure
	}
	known := t.sure
	if t.sent >= t.before {
		known = max(t.sure, t.before)
	}
	return t.sent <= known+2*(t.passed-known)
}

// next are the turns after these, which a refusal has ended.
func (t *turns) next(now time.Time) *turns {
	next := &turns{sure: 1, opened: now, at: now}
	if t == nil {
		return next
	}
	next.before = max(t.passed, t.before/2) // others may have been quicker this time
	next.misled = t.misled || t.passed < t.sure && t.refused > 1
	if !next.misled {
		next.sure = max(1, t.passed-t.refused)
	}
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
	default:
		t.sent--
	}
}

// over reports that all who were sent have been answered, and that everybody
// has had the time to join the line. All wake when the gate opens, and the first
// of them may have their answers before the others come.
func (t *turns) over(now time.Time) bool {
	return t.sent == t.passed+t.refused && now.Sub(t.opened) >= patience
}
