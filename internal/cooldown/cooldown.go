// Package cooldown holds back the calls of a limit that has refused one, until
// it opens again (interface 8.3), and lets them go in turn then.
package cooldown

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A Clock tells the time and waits for it.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// RealClock is the time of this machine, or of the synctest bubble.
type RealClock struct{}

// Now is time.Now.
func (RealClock) Now() time.Time { return time.Now() }

// Sleep waits on a timer.
func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// CoolDown parks the callers of a limit after a 429 that names it, until
// Retry-After has passed (interface 8.3), instead of letting each of them be
// refused by the service too. Then it lets them go in turn, since not all of
// them will fit into the limit either.
//
// It holds no timer, so that a client can be shared by several synctest
// bubbles, as long as those that wait for their turn at once are in one. A nil
// CoolDown holds back nobody.
type CoolDown struct {
	clock  Clock // nil: real time, and heard
	heard  atomic.Pointer[func() time.Time]
	random func() float64

	busy     atomic.Int32 // gates that hold anybody up
	mu       sync.Mutex
	gates    gates
	line     line
	openings int // of all gates
}

// New returns a cool-down by clock, or by real time if it is nil, with random
// values in [0, 1) for jitter.
func New(clock Clock, random func() float64) *CoolDown {
	return &CoolDown{clock: clock, random: random}
}

func (c *CoolDown) now() time.Time {
	if c.clock != nil {
		return c.clock.Now()
	}
	if heard := c.heard.Load(); heard != nil {
		return (*heard)()
	}
	return time.Now()
}

func (c *CoolDown) sleep(ctx context.Context, d time.Duration) error {
	if c.clock != nil {
		return c.clock.Sleep(ctx, d)
	}
	return RealClock{}.Sleep(ctx, d)
}

// Follow reads the time from a connection that knows the service's, as those of
// the fake do, so that its Advance is noticed without [WithClock]. The
// connection, not the transport, since that may be wrapped; no 429 comes
// without one.
func (c *CoolDown) Follow(conn net.Conn) {
	if timed, ok := conn.(interface{ Now() time.Time }); ok && c != nil && c.clock == nil && c.heard.Load() == nil {
		now := timed.Now
		c.heard.CompareAndSwap(nil, &now)
	}
}

// Seat is what a call keeps of the cool-down that let it pass.
type Seat struct {
	class   int
	left    int  // attempts of its call after this one
	opening int  // the last one when it was let pass in turn; 0: it was not
	looks   bool // whether a limit that is shut for long is open again

	// Of the cool-down that its 429 began or joined:
	Parked  bool
	Random  float64       // for the jitter
	jitter  time.Duration // of all that wait for it
	hurried bool          // it has no time for all of that
}

// Waits tells how long the call will wait until it tries again.
func (s *Seat) Waits(told, wait time.Duration) { s.hurried = wait < told+s.jitter }

// Outcome is how an attempt that was let pass has ended.
type Outcome struct {
	Refused    bool // with status 429
	Sent       bool // the service may have seen it
	LimitKey   string
	TraceID    string // of the refusal
	RetryAfter time.Duration
}

// A Refusal is the error where a limit is shut for longer than the call may wait.
type Refusal struct {
	LimitKey   string
	TraceID    string        // of the answer that shut it
	RetryAfter time.Duration // until it opens
}

// Error is for those who do not look.
func (r *Refusal) Error() string {
	return "limit " + r.LimitKey + " is shut for " + r.RetryAfter.String()
}

// maxClasses is how many classes of attempts can be told apart: two for each
// endpoint, and two for all that the interface does not have.
const maxClasses = 32

// classOf is the class of an attempt, which is what limits cover: an endpoint,
// apart for calls that also spend the BYOK set limit, so that this limit does
// not stop the others.
func classOf(endpoint *spec.Endpoint, setsBYOK bool) int {
	class := 2 * len(spec.Endpoints)
	if i := slices.Index(spec.Endpoints, endpoint); i >= 0 {
		class = 2 * i
	}
	if setsBYOK {
		class++
	}
	return class
}

// Attempt is what is to be let pass.
type Attempt struct {
	Endpoint *spec.Endpoint
	SetsBYOK bool
	Left     int           // attempts of its call after this one
	MaxWait  time.Duration // a limit that is shut for longer refuses it
}

// Pass waits until the attempt may be sent, and tells how long it waited, and
// for which limit.
func (c *CoolDown) Pass(ctx context.Context, attempt Attempt, seat *Seat) (key string, waited time.Duration, err error) {
	hurried := seat.hurried
	*seat = Seat{class: classOf(attempt.Endpoint, attempt.SetsBYOK), left: attempt.Left}
	if c == nil || c.busy.Load() == 0 {
		return "", 0, nil
	}
	w := &caller{ctx: ctx, seat: seat, hurried: hurried}
	begin := c.now()
	key, err = c.wait(ctx, w, begin, attempt.MaxWait)
	if err != nil && c.leave(w) {
		err = nil // let pass at the same moment
	}
	return key, c.now().Sub(begin), err
}

// wait is for the gates to open, and then for the caller's turn. It looks again
// after each wait, since another 429 may have come.
func (c *CoolDown) wait(ctx context.Context, w *caller, begin time.Time, maxWait time.Duration) (key string, err error) {
	slept := begin // until when; that time has come even if the clock stands still
	for {
		now := laterOf(c.now(), slept)
		shut, passed := c.look(w, now, slept)
		switch {
		case passed:
			return key, nil
		case shut == nil:
			err = c.turn(w)
			if w.woken.Err() == nil {
				slept = now.Add(patience * time.Duration(w.place))
			}
			w.wake()
		default:
			key = shut.key
			left, longest := shut.end.Sub(now), Longest(ctx, maxWait)
			if left > longest {
				return key, &Refusal{LimitKey: key, TraceID: shut.trace, RetryAfter: left}
			}
			later := min(shut.jitter(), (longest-left)/2)
			w.hurried = later < shut.jitter()
			pause := min(left+later, shut.nextLook.Sub(now))
			err = c.sleep(ctx, pause)
			slept = now.Add(pause)
		}
		if err != nil {
			return key, err
		}
	}
}

// turn waits until the caller is to look again: when it may go, when a gate has
// closed, when it comes to the head, and now and then.
func (c *CoolDown) turn(w *caller) error {
	err := c.sleep(w.woken, patience*time.Duration(w.place))
	if w.ctx.Err() == nil && w.woken.Err() != nil {
		return nil // woken
	}
	return err
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Longest is what the longest wait and the deadline leave for one.
func Longest(ctx context.Context, longest time.Duration) time.Duration {
	if deadline, has := ctx.Deadline(); has {
		longest = min(longest, time.Until(deadline)-1) // until the deadline would be too long
	}
	return longest
}

// look reports whether the caller may pass, and else the gate that is the last
// to open; none is shut where it only has to wait until it is woken.
func (c *CoolDown) look(w *caller, now, slept time.Time) (shut *gate, passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.count()
	c.gates.open(now, &c.openings)
	if w.passed {
		return nil, true
	}
	last := c.gates.last(w.seat.class, now)
	switch {
	case last != nil && w.hurried && !last.end.After(slept): // there is no time for all of the jitter
		c.line.leave(w)
		return nil, true
	case last == nil:
		c.line.join(w)
		c.admit(now)
		if !w.passed {
			c.line.await(w)
		}
		return nil, w.passed
	case !now.Before(last.nextLook):
		last.nextLook, w.seat.looks = now.Add(lookEvery), true
		c.line.leave(w)
		return nil, true
	}
	c.line.join(w)
	found := *last
	return &found, false
}

// admit lets pass who is next, for as long as the gates let anybody pass.
func (c *CoolDown) admit(now time.Time) {
	for {
		w := c.line.first(func(class int, last, others bool) bool { return c.gates.allow(class, last, others, now) })
		if w == nil {
			return
		}
		w.seat.opening = c.openings
		c.gates.sent(w.seat, now)
		c.line.leave(w)
		w.passed = true
		w.lookAgain()
	}
}

// count keeps the way short for callers that no gate holds up.
func (c *CoolDown) count() {
	c.busy.Store(c.gates.rest(c.line.anybody))
}

// leave takes out a caller that gives up, or reports that it may pass.
func (c *CoolDown) leave(w *caller) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.leave(w)
	return w.passed
}

// Done reports whether the outcome began a cool-down or prolonged one by a
// second at least.
func (c *CoolDown) Done(seat *Seat, outcome Outcome) (news bool) {
	if c == nil || !outcome.Refused && seat.opening == 0 && !seat.looks {
		return false
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.count()
	c.gates.settle(seat, outcome, &c.openings, now)
	if outcome.Refused {
		var g *gate
		g, news = c.gates.shut(outcome.LimitKey, seat.class, now, outcome.RetryAfter, c.random())
		seat.Parked, seat.Random, seat.jitter = true, g.random, g.jitter()
		if news {
			g.trace = outcome.TraceID
		}
		if seat.left == 1 {
			g.due++
		}
		c.line.wake() // to sleep until the gate opens
	}
	c.admit(now)
	return news
}
