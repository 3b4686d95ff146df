package agentmessaging

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// coolDown parks the callers of a limit after a 429 that names it, until
// Retry-After has passed (interface 8.3), instead of letting each of them be
// refused by the service too. Then it lets them go in turn, since not all of
// them will fit into the limit either.
//
// It holds no timer, so that a client can be shared by several synctest
// bubbles, as long as those that wait for their turn at once are in one.
type coolDown struct {
	clock  Clock // nil: real time, and heard
	heard  atomic.Pointer[func() time.Time]
	random func() float64

	busy     atomic.Int32 // gates that hold anybody up
	mu       sync.Mutex
	gates    gates
	line     line
	openings int // of all gates
}

func newCoolDown(clock Clock, random func() float64) *coolDown {
	return &coolDown{clock: clock, random: random}
}

func (c *coolDown) now() time.Time {
	if c.clock != nil {
		return c.clock.Now()
	}
	if heard := c.heard.Load(); heard != nil {
		return (*heard)()
	}
	return time.Now()
}

func (c *coolDown) sleep(ctx context.Context, d time.Duration) error {
	if c.clock != nil {
		return c.clock.Sleep(ctx, d)
	}
	return realClock{}.Sleep(ctx, d)
}

// follow reads the time from a connection that knows the service's, as those of
// the fake do, so that its Advance is noticed without [WithClock]. The
// connection, not the transport, since that may be wrapped; no 429 comes
// without one.
func (c *coolDown) follow(conn net.Conn) {
	if timed, ok := conn.(interface{ Now() time.Time }); ok && c.clock == nil && c.heard.Load() == nil {
		now := timed.Now
		c.heard.CompareAndSwap(nil, &now)
	}
}

// coolSeat is what a call keeps of the cool-down that let it pass.
type coolSeat struct {
	class   int
	left    int  // attempts of its call after this one
	opening int  // the last one when it was let pass in turn; 0: it was not
	looks   bool // whether a limit that is shut for long is open again
	// Of the cool-down that its 429 began or joined:
	parked  bool
	random  float64
	jitter  time.Duration
	hurried bool // it has no time for all of the jitter
}

// maxClasses is how many classes of attempts can be told apart: two for each
// endpoint, and two for all that the interface does not have.
const maxClasses = 32

// classOf is the class of an attempt, which is what limits cover: an endpoint,
// apart for calls that also spend the BYOK set limit, so that this limit does
// not stop the others.
func classOf(attempt LimitedAttempt) int {
	class := 2 * len(spec.Endpoints)
	if i := slices.Index(spec.Endpoints, spec.Find(attempt.Method, attempt.Path)); i >= 0 {
		class = 2 * i
	}
	if attempt.SetsBYOK {
		class++
	}
	return class
}

// pass waits until the attempt, after which left are left, may be sent, and tells how long it waited, and
// for which limit.
func (c *coolDown) pass(ctx context.Context, attempt LimitedAttempt, left int, seat *coolSeat) (key string, waited time.Duration, err error) {
	hurried := seat.hurried
	*seat = coolSeat{class: classOf(attempt), left: left}
	if c.busy.Load() == 0 {
		return "", 0, nil
	}
	w := &caller{seat: seat, hurried: hurried}
	begin := c.now()
	key, err = c.wait(ctx, w, begin, cmp.Or(attempt.MaxWait, defaultMaxWait))
	if err != nil && c.leave(w) {
		err = nil // let pass at the same moment
	}
	return key, c.now().Sub(begin), err
}

// wait is for the gates to open, and then for the caller's turn. It looks again
// after each wait, since another 429 may have come.
func (c *coolDown) wait(ctx context.Context, w *caller, begin time.Time, maxWait time.Duration) (key string, err error) {
	slept := begin // until when; that time has come even if the clock stands still
	for {
		now := laterOf(c.now(), slept)
		shut, passed := c.look(w, now, slept)
		switch {
		case passed:
			return key, nil
		case shut == nil:
			err = w.turn(ctx)
		default:
			key = shut.key
			left, longest := shut.end.Sub(now), longestWait(ctx, maxWait)
			if left > longest {
				return key, refusal(key, left)
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

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// codeRateLimited is the error member of every documented 429 (interface 7).
const codeRateLimited = "rate_limited"

// refusal is a limiter's own 429.
func refusal(limitKey string, retryAfter time.Duration) *Error {
	return &Error{StatusCode: http.StatusTooManyRequests, Code: codeRateLimited, LimitKey: limitKey, RetryAfter: retryAfter}
}

// look reports whether the caller may pass, and else the gate that is the last
// to open; none is shut where it only has to wait until it is woken.
func (c *coolDown) look(w *caller, now, slept time.Time) (shut *gate, passed bool) {
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
func (c *coolDown) admit(now time.Time) {
	for {
		w := c.line.first(func(class int, last, others bool) bool { return c.gates.allow(class, last, others, now) })
		if w == nil {
			return
		}
		w.seat.opening = c.openings
		c.gates.sent(w.seat)
		c.line.leave(w)
		w.passed = true
		w.lookAgain()
	}
}

// count keeps the way short for callers that no gate holds up.
func (c *coolDown) count() {
	c.busy.Store(c.gates.rest(c.line.anybody))
}

// leave takes out a caller that gives up, or reports that it may pass.
func (c *coolDown) leave(w *caller) (passed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.leave(w)
	return w.passed
}

// done reports whether the outcome began a cool-down or prolonged one by a
// second at least.
func (c *coolDown) done(seat *coolSeat, outcome AttemptOutcome) (news bool) {
	refused := outcome.StatusCode == http.StatusTooManyRequests
	if !refused && seat.opening == 0 && !seat.looks {
		return false
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.count()
	c.gates.settle(seat, outcome, &c.openings)
	if refused {
		var g *gate
		g, news = c.gates.shut(gateKey(outcome.LimitKey), seat.class, now, outcome.RetryAfter, c.random())
		seat.parked, seat.random, seat.jitter = true, g.random, g.jitter()
		if seat.left == 1 {
			g.due++
		}
		c.line.wake() // to sleep until the gate opens
	}
	c.admit(now)
	return news
}

// gateKey is a limit_key as it is kept and shown: foreign text, so one line of
// at most 64 bytes.
func gateKey(limitKey string) string { return oneLine(limitKey, 64) }
