// Package cooldown holds back the calls of a limit that has refused one, until
// it opens again (interface 8.3), and lets them go in turn then.
//
// A gate is a limit that has refused something: gates.go says when it is shut
// and what it covers, turns.go how many go through it when it has opened. The
// line holds the callers that wait. This file is what a call does with them:
// Pass before each attempt, Done after it.
package cooldown

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// CoolDown parks the callers of a limit after a 429 that names it, until
// Retry-After has passed (interface 8.3), instead of letting each of them be
// refused by the service too. Then it lets them go in turn, since not all of
// them will fit into the limit either.
//
// It holds no timer, so that several synctest bubbles can share a client, as long
// as the callers that wait at the same time are in one bubble. A nil CoolDown
// holds back nobody.
type CoolDown struct {
	clock  Clock
	random func() float64

	busy  atomic.Int32 // gates that hold anybody up
	mu    sync.Mutex   // guards what follows, and what the line keeps in its callers
	gates gates
	line  line
}

// New returns a cool-down by clock, or by real time if it is nil, with random
// values in [0, 1) for jitter.
func New(clock Clock, random func() float64) *CoolDown {
	if clock == nil {
		clock = RealClock{}
	}
	return &CoolDown{clock: clock, random: random}
}

// Pass waits until the attempt may be sent, and tells how long it waited, and
// for which limit.
func (c *CoolDown) Pass(ctx context.Context, attempt Attempt, seat *Seat) (key string, waited time.Duration, err error) {
	hurried := seat.hurried
	*seat = Seat{class: classOf(attempt.Endpoint, attempt.SetsBYOK), left: attempt.Left}
	if c == nil || c.busy.Load() == 0 {
		return "", 0, nil
	}
	begin := c.now()
	w := &caller{ctx: ctx, alarm: ctx, seat: seat, maxWait: attempt.MaxWait, hurried: hurried, slept: begin}
	err = c.wait(w)
	if err != nil && c.leave(w) {
		err = nil // let pass at the same moment
	}
	return w.key, c.now().Sub(begin), err
}

// wait waits for the gates to open, and then for the caller's turn. It looks again
// after each pause, since another 429 may have come.
func (c *CoolDown) wait(w *caller) error {
	for now := w.slept; ; now = c.now() {
		if now.Before(w.slept) {
			now = w.slept
		}
		pause, passed, err := c.look(w, now)
		if passed || err != nil {
			return err
		}
		if err := c.rest(w, now, pause); err != nil {
			return err
		}
	}
}

// look reports whether the caller may pass, and if not, when it is to look
// again.
func (c *CoolDown) look(w *caller, now time.Time) (pause time.Duration, passed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.count(now)
	c.gates.open(now)
	shut := c.gates.last(w.seat.class, now)
	switch {
	case w.passed:
		return 0, true, nil
	case shut == nil:
		c.line.join(w)
		c.admit(now)
		if w.passed {
			return 0, true, nil
		}
		return c.line.await(w, c.gates.wait(w.seat.class, now)), false, nil
	case w.hurried && !shut.end.After(w.slept): // there is no time for all of the jitter
		c.line.leave(w)
		return 0, true, nil
	case !now.Before(shut.nextLook):
		shut.nextLook, w.seat.looks = now.Add(lookEvery), true
		c.line.leave(w)
		return 0, true, nil
	}
	c.line.join(w)
	pause, err = w.pauseAt(shut, now)
	return pause, false, err
}

// rest waits for the pause, or until the caller is woken. A pause that nobody
// cut short has passed even if the clock stands still.
func (c *CoolDown) rest(w *caller, now time.Time, pause time.Duration) error {
	err := c.clock.Sleep(w.alarm, pause)
	woken := w.alarm.Err() != nil && w.ctx.Err() == nil
	w.lookAgain() // its context is not needed any more
	w.alarm = w.ctx
	if woken {
		return nil
	}
	w.slept = now.Add(pause)
	return err
}

// admit lets pass who is next, for as long as the gates let anybody pass. The
// count before it ends turns that would hold up a lone caller.
func (c *CoolDown) admit(now time.Time) {
	c.count(now)
	for {
		w := c.line.first(func(class int, last bool) bool { return c.gates.allow(class, last, now) })
		if w == nil {
			return
		}
		c.gates.send(w.seat, now)
		c.line.leave(w)
		w.passed = true
		w.lookAgain()
	}
}

// count keeps the way short for callers that no gate holds up.
func (c *CoolDown) count(now time.Time) { c.busy.Store(c.gates.busy(now, c.line.several)) }

// leave takes out a caller that gives up, or reports that it may pass.
func (c *CoolDown) leave(w *caller) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.leave(w)
	return w.passed
}

// Done takes the outcome of an attempt that was let pass, and lets others pass or
// shuts a gate. It reports whether the outcome began a cool-down, or prolonged one
// by at least a second.
func (c *CoolDown) Done(seat *Seat, outcome Outcome) (news bool) {
	if c == nil || !outcome.Refused && seat.turns == nil && !seat.looks {
		return false
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.count(now)
	for _, t := range seat.turns {
		t.settle(seat.left, outcome)
	}
	if seat.looks && outcome.Sent && !outcome.Refused {
		c.gates.found(seat.class, now)
	}
	if outcome.Refused {
		var g *gate
		g, news = c.gates.shut(outcome.LimitKey, seat.class, now, outcome.RetryAfter, c.random())
		seat.Parked, seat.Random, seat.jitter = true, g.random, g.jitter()
		if news {
			g.trace = outcome.TraceID
		}
		c.line.wake() // to sleep until the gate opens
	}
	c.admit(now)
	return news
}
