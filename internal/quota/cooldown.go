package quota

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const (
	// MinClosed is how long a 429 without Retry-After closes a limit. The pacer closes a
	// limit for at least as long after every 429.
	MinClosed = time.Second
	// A service may give one name to several limits. So a class may wait only because its limit
	// has the same name as the limit that refused another class. Such a class sends one call each
	// TrialWait (a trial), until the first answer decides. Package pacer has trials too.
	TrialWait = time.Second
	// While no call gets through a gate when it opens, the gate stays closed longer each time, so
	// that a service that refuses every call is asked less and less often. MaxGateBackoff is the
	// longest time for a lone caller. For n callers it is MaxGateBackoff/n, because a crowd needs
	// more chances. Jitter adds up to a quarter.
	MaxGateBackoff = 64 * time.Second
	// The longest time is at least minBackoff. A caller whose time runs out opens the gate sooner,
	// but not before minBackoff either: in a stream of calls, there always is such a caller.
	minBackoff = 5 * time.Second
	// At a limit that has let a call through, other programs are probably quicker, so at least
	// minCrowd callers count. Without that, 16 lone callers on a leaky bucket, each in a program of
	// its own, lost 22 calls in a thousand.
	minCrowd     = 4
	maxDoublings = 6 // from a second to MaxGateBackoff; more could overflow
	// Callers that were refused when a gate opened get a small part of the jitter, so that they go
	// before the callers of other programs. With an eighth of the jitter, 16 programs on a leaky
	// bucket lost two calls in a thousand.
	starvedJitterDivisor = 32
)

// A CoolDown is the rule of a client without a Pacer. After a 429, the calls of every class
// that the limit has refused wait until Retry-After has passed. Then they go one after
// another, because not all of them will fit into the limit. The engine's lock guards all
// fields but classState.mustAsk.
type CoolDown struct {
	random  func() float64                      // in [0, 1), for jitter
	engine  *Engine                             // knows how many calls wait at a gate
	classes [2 * len(spec.Endpoints)]classState // by Class.ID; see Classify
}

// classState is what the cool-down knows of a class.
type classState struct {
	mustAsk atomic.Bool // the engine must ask about the class; atomic, because Classify reads it without the lock
	gate    *gate       // the gate at which the calls of the class wait; nil: no limit holds them back
	// If the gate closed without a refusal of this class, its limit may only share the name. So
	// one call tries at trialAt, and another one each TrialWait, because an answer may take minutes.
	// Never: the limit has refused the class itself, so no call tries.
	trialAt time.Duration
}

// NewCoolDown returns an engine whose rule is a CoolDown.
func NewCoolDown(random func() float64) *Engine {
	c := &CoolDown{random: random}
	c.engine = NewEngine(c)
	return c.engine
}

// gate is a limit that has refused a call. A refusal closes the gate until Retry-After has
// passed. Then the gate opens, and lets calls go until the next refusal. The time between the two
// is an opening. In a failed opening the service refused every call.
//
// The gate holds back the classes whose 429 had its name. Only refusals show which classes these
// are: the interface lists neither the values of limit_key nor the calls that each of them covers.
type gate struct {
	key          string // the limit_key; may be empty
	class        int    // of the call for whose refusal the gate was made
	closed       bool
	closedAt     time.Duration // when it last closed
	retryAfter   time.Duration // of the refusal that set end
	end          time.Duration // when it opens, by Retry-After
	traceID      string        // the trace_id of the answer that closed it
	random       float64       // for jitter; the same for all callers, so that they keep their order
	refusedSince time.Duration // when a call last got through, or the gate first closed; patience counts from then
	everPassed   bool          // a call has got through
	dueToOpen    time.Duration // when it was last due to open; patience counts until then, because a frozen program opens it later
	ramp         *ramp         // paces the calls since it last opened; nil: it has not opened yet, or holds no call back any more
}

// Classify implements Rule. Each endpoint has two classes. One is for the calls that also spend
// the limit on BYOK sets, so that this limit does not stop the other calls of the endpoint.
func (c *CoolDown) Classify(_ context.Context, w *Waiter) bool {
	w.Class = Class{ID: 2 * slices.Index(spec.Endpoints[:], w.Endpoint)}
	if w.SetsBYOK {
		w.Class.ID |= withKeyBit
	}
	return c.classes[w.Class.ID].mustAsk.Load()
}

// AskLocked implements Rule.
func (c *CoolDown) AskLocked(now time.Duration, first *Waiter, waiting int) Schedule {
	state := &c.classes[first.Class.ID]
	g := cmp.Or(state.gate, new(gate))
	waitHere := c.engine.WaitingLocked(func(class Class) bool { return c.classes[class.ID].gate == g })
	var s Schedule
	if g.closed {
		s = g.closedSchedule(first, waitHere)
	}
	switch {
	case waiting == 0: // a forecast lets no call go, and opens no gate
		return s
	case now < s.Turn:
		if now >= state.trialAt {
			state.trialAt = now + TrialWait
			s.Grants = []Grant{{At: now, ReportSuccess: true}} // a trial belongs to no ramp, so it has no Mark
		}
		s.AskAgain = min(s.Turn, state.trialAt)
		return s
	case g.closed:
		g.open(now, s.Turn)
	}
	s = g.openSchedule(now, waitHere <= 1)
	state.mustAsk.Store(g.ramp != nil)
	return s
}

// closedSchedule says when the closed gate opens, after Retry-After or the backoff, and when it
// lets the next call go, after jitter (interface 8.3). first is the next call of the class that
// asks, and waiting counts the calls of all classes at the gate. Jitter ends before first's
// MaxWait and deadline.
func (g *gate) closedSchedule(first *Waiter, waiting int) Schedule {
	s := Schedule{Opens: g.end, Estimated: true, LimitKey: g.key, TraceID: g.traceID}
	timeLeft := max(0, min(first.deadline, g.closedAt+first.MaxWait)-g.end)
	jitter := Jitter(g.retryAfter, DefaultMinWait, timeLeft, g.random)
	passed, failed := g.ramp.result()
	if failed > 0 { // the gate has opened before, and let nobody through
		s.RefusedSince, s.RefusedUntil = g.refusedSince, g.dueToOpen
		jitter /= starvedJitterDivisor
	}
	if failed > 1 {
		s.Opens = max(g.end, g.backoffEnd(first, waiting, failed))
	}
	s.Turn = max(s.Opens, g.end+jitter)
	if passed > 0 {
		s.Gap = (s.Turn - g.ramp.opened) / time.Duration(passed)
	}
	return s
}

// backoffEnd returns when the gate opens after several failed openings. A backoff above
// minBackoff ends before first's Patience and deadline, so that the call is sent once more before
// it fails.
func (g *gate) backoffEnd(first *Waiter, waiting, failed int) time.Duration {
	if g.everPassed {
		waiting = max(waiting, minCrowd)
	}
	longest := max(minBackoff, MaxGateBackoff/time.Duration(max(1, waiting)))
	backoff := min(max(g.retryAfter, MinClosed)<<min(failed-1, maxDoublings), longest)
	backoff += time.Duration(g.random * float64(backoff) / 4) // several programs must not try at the same moments
	patience := max(g.refusedSince, first.limitedSince) + cmp.Or(first.Patience, Never/2)
	lastChance := max(min(patience, first.deadline-answerWait), g.closedAt+minBackoff)
	return min(g.closedAt+backoff, lastChance)
}

// openSchedule grants the next call at an open gate, or says when it may go; see ramp. It grants
// one call at a time, so that the classes that wait at the gate take turns. alone is true if no
// other call waits there.
//
// The ramp ends once a lone call asks, every earlier call is answered, and none has gone for
// answerWait. By then no other call waits for the limit, so the gate holds no call back any more.
func (g *gate) openSchedule(now time.Duration, alone bool) Schedule {
	r := g.ramp
	if r == nil || alone && r.sent == r.passed+r.refused && now-r.last >= answerWait {
		g.ramp = nil
		return Schedule{Grants: []Grant{{At: now}}, LimitKey: g.key}
	}
	wait := max(answerWait, r.gap)
	switch {
	case r.gap > 0 && r.sent >= max(1, r.lastPassed): // as many as in the last opening have gone: the pace
		wait = r.gap
	case r.sent == 0, r.sent <= 2*r.passed && r.failedBefore == 0: // one, and then two for each that passed
		wait = 0
	case r.sent <= 2*r.passed: // the same, but after a failed opening only one in the first second
		wait = max(0, r.opened+retryAfterUnit-r.last)
	} // otherwise the answers to the calls that have gone come first
	if alone {
		wait = min(wait, answerWait)
	}
	s := Schedule{AskAgain: max(now, r.last+wait), Estimated: true, LimitKey: g.key, TraceID: g.traceID}
	if s.AskAgain > now {
		s.Turn, s.Gap = s.AskAgain, r.gap
		return s
	}
	r.sent, r.last = r.sent+1, now
	s.Grants = []Grant{{At: now, ReportSuccess: true, Mark: r}}
	return s
}

// open opens the gate, which was due to open at the given time, and begins a new ramp. The gap of
// the new ramp follows from the last opening: from the number of calls that passed, and the time
// from that opening to this one.
func (g *gate) open(now, due time.Duration) {
	passed, failed := g.ramp.result()
	last, next := g.ramp, &ramp{opened: now, last: now, failedBefore: failed}
	g.closed, g.dueToOpen, g.ramp = false, due, next
	if last == nil {
		return
	}
	next.lastPassed = max(passed, last.lastPassed/2) // a small number may mean that other programs were quicker this time
	next.gap = last.gap * 5 / 4
	if passed > 0 {
		g.refusedSince = max(g.refusedSince, g.closedAt) // calls without an answer count as passed
		next.gap = (now - last.opened) / time.Duration(passed)
	}
	next.gap = min(next.gap, maxGap)
}

// DoneLocked implements Rule.
func (c *CoolDown) DoneLocked(now time.Duration, w *Waiter, o Outcome) (closedLonger bool) {
	o.Sent = o.Sent && !o.Unanswered // nobody knows whether the call got through: as if it had not been sent
	state, passed := &c.classes[w.Class.ID], o.Sent && !o.Refused
	r, _ := w.Grant.Mark.(*ramp) // of the open gate that let the call go; nil: the call was a trial at a closed gate
	if state.gate != nil && passed {
		state.gate.refusedSince, state.gate.everPassed = now, true // also if the class leaves this gate below: both may share one limit
	}
	if r != nil {
		r.record(o)
	} else if passed && state.trialAt < Never { // the limit has not refused the class itself since the trial began
		state.gate = nil
	}
	return o.Refused && c.refusedLocked(now, w.Class.ID, o)
}

// QueueEmptiedLocked implements Rule.
func (*CoolDown) QueueEmptiedLocked(time.Duration, Class) {}

// withKeyBit is the bit of a class's ID that tells the two classes of an endpoint apart.
const withKeyBit = 1

// refusedLocked closes the gate of the limit that has refused a call of the class, until
// Retry-After has passed. If the gate is closed already, the later end counts. A class that waits
// at another gate stays there if that gate opens later. A creation with a provider key spends
// every limit that a creation without one spends, so the gate holds it back too.
func (c *CoolDown) refusedLocked(now time.Duration, class int, o Outcome) (closedLonger bool) {
	o.RetryAfter = cmp.Or(o.RetryAfter, MinClosed)
	g, withKey := c.gateOfLocked(o.LimitKey, class), class|withKeyBit
	for _, i := range []int{class, withKey} {
		if old := c.classes[i].gate; old == nil || old.end <= now+o.RetryAfter {
			c.classes[i].gate = g
		}
	}
	wasOpen, trial := !g.closed, now+TrialWait
	longer := g.close(now, o, c.random)
	if o.RetryAfter <= TrialWait {
		trial += TrialWait // without a backoff, the gate opens before a trial would be due
	}
	for i := range c.classes {
		state := &c.classes[i]
		switch {
		case state.gate != g:
			continue
		case i == class, i == withKey:
			state.trialAt = Never
		case wasOpen:
			state.trialAt = trial
		}
		state.mustAsk.Store(true)
		closedLonger = longer // stays false if no class waits at g, because their gates open later
	}
	return closedLonger
}

// close closes the gate after a refusal. It reports whether the gate was open, or opens at least a
// second later than before.
func (g *gate) close(now time.Duration, o Outcome, random func() float64) (longer bool) {
	end, before := now+o.RetryAfter, g.end
	if !g.closed {
		if g.ramp == nil {
			g.refusedSince = now
		}
		g.closed, g.closedAt, g.random, before = true, now, random(), 0
	}
	if end > before {
		g.end, g.retryAfter, g.traceID = end, o.RetryAfter, o.TraceID
	}
	return end-before >= time.Second
}

// gateOfLocked returns the gate with the limit_key, or a new gate. Without a limit_key each
// class has its own gate. A new gate goes on with the backoff of the class's last gate, because
// a service may refuse every call, each time with another limit_key.
func (c *CoolDown) gateOfLocked(key string, class int) *gate {
	for i := range c.classes {
		if g := c.classes[i].gate; g != nil && g.key == key && (key != "" || g.class == class) {
			return g
		}
	}
	// The copy shares the ramp, which says how often the old gate opened in vain.
	g := *cmp.Or(c.classes[class].gate, new(gate))
	g.key, g.class, g.closed = key, class, false
	return &g
}

// ramp paces the calls at a gate that has opened, so that few calls are refused when the limit
// is reached. One call goes, then two for each call that has passed, up to the number that
// passed in the last opening. After that, one call goes after each gap, which is the average
// distance between the calls that passed in the last opening.
//
// After a failed opening, only one call goes in the first second. Retry-After is in whole seconds,
// so if several programs were refused in one window, their gates open within a second of each
// other, and in the same order each time. With 16 programs, the first ones took all of each
// window, and up to 5 % of the calls were lost.
//
// The n-th call that passes beyond that number shrinks the gap by n/512, and a long gap by
// more. The program may have had a small share of a limit that it now has for itself. With a
// constant gap it would take minutes to find that out.
//
// For example, 10 calls have passed in the minute of the last opening: lastPassed is 10, and
// gap 6 s. One call goes at once. When it has passed, two more may go, then another two for
// each of those, until 10 have gone. From then on one goes every 6 s. The first of these that
// passes makes the gap 5.8 s, by 16/512, because a gap above longGap shrinks 16 times as fast.
type ramp struct {
	lastPassed   int           // the calls that passed in the last opening, or half of the number before if that is more; 0: not known
	gap          time.Duration // between calls, once lastPassed calls have gone; 0: not known
	sent         int           // calls since the opening
	passed       int           // of the calls sent: accepted by the service
	refused      int           // of the calls sent: refused
	opened       time.Duration
	last         time.Duration // when the last call was sent; at first, opened
	failedBefore int           // failed openings in a row before this one
}

const (
	retryAfterUnit = time.Second // interface 7
	// maxGap bounds the gap. A gap that is too long by mistake would cost a caller more time
	// than a refusal costs.
	maxGap = 15 * time.Second
	// A gap of n seconds shrinks n*n times as fast as a gap of one second, with n up to
	// longGap. With longGap 15, 16 programs on a token bucket met a quarter more refusals.
	longGap = 4.0
)

// record counts how a call ended that the ramp let go.
func (r *ramp) record(o Outcome) {
	switch {
	case o.Refused:
		r.refused++
	case o.Sent:
		r.passed++
		if beyond := r.passed - r.lastPassed; beyond > 0 {
			seconds := min(max(1, r.gap.Seconds()), longGap)
			r.gap -= time.Duration(float64(r.gap) * min(0.5, float64(beyond)*seconds*seconds/512))
		}
	default:
		r.sent--
	}
}

// result counts the calls that have got through since the gate opened. If none has, it counts
// the failed openings in a row, this one included. A call without an answer counts as got
// through, because a refusal would have come quickly.
func (r *ramp) result() (passed, failed int) {
	switch {
	case r == nil:
		return 0, 0
	case r.sent == r.refused:
		return 0, r.failedBefore + 1
	}
	return r.sent - r.refused, 0
}

// Jitter returns a random wait, which spreads out callers that were refused together. It is
// up to half of backoff plus a tenth of retryAfter, and never more than half of timeLeft.
// random is in [0, 1).
func Jitter(retryAfter, backoff, timeLeft time.Duration, random float64) time.Duration {
	return min(time.Duration(random*(float64(retryAfter)/10+float64(backoff)/2)), timeLeft/2)
}
