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
// refused by the service too.
//
// It holds no channel and no timer, so that a client can be shared by several
// synctest bubbles: each caller sleeps on a timer of its own.
type coolDown struct {
	clock   Clock // nil: real time, and heard
	heard   atomic.Pointer[func() time.Time]
	minWait time.Duration
	random  func() float64

	closed atomic.Int32 // gates that were closed when last looked at
	mu     sync.Mutex
	gates  gates
}

func newCoolDown(clock Clock, minWait time.Duration, random func() float64) *coolDown {
	return &coolDown{clock: clock, minWait: minWait, random: random}
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
type coolSeat struct{ class int }

// pass waits until the attempt may be sent, and tells how long it waited, and
// for which limit.
func (c *coolDown) pass(ctx context.Context, attempt LimitedAttempt, seat *coolSeat) (key string, waited time.Duration, err error) {
	seat.class = classOf(attempt)
	if c.closed.Load() == 0 {
		return "", 0, nil
	}
	begin := c.now()
	key, err = c.park(ctx, seat.class, cmp.Or(attempt.MaxWait, defaultMaxWait))
	return key, c.now().Sub(begin), err
}

// park waits until no gate of the class is closed. It looks again after each
// wait, since another 429 may have prolonged the cool-down; an end that was
// waited for is over even by a clock that stands still.
func (c *coolDown) park(ctx context.Context, class int, maxWait time.Duration) (key string, err error) {
	var passed time.Time
	for {
		now := c.now()
		end, last := c.latest(class, now, passed)
		if !end.After(passed) {
			return key, nil
		}
		key = last
		left, longest := end.Sub(now), longestWait(ctx, maxWait)
		if left > longest {
			return key, refusal(key, left)
		}
		if err := c.sleep(ctx, left+jitter(left, c.minWait, longest-left, c.random())); err != nil {
			return key, err
		}
		passed = end
	}
}

// codeRateLimited is the error member of every documented 429 (interface 7).
const codeRateLimited = "rate_limited"

// refusal is a limiter's own 429.
func refusal(limitKey string, retryAfter time.Duration) *Error {
	return &Error{StatusCode: http.StatusTooManyRequests, Code: codeRateLimited, LimitKey: limitKey, RetryAfter: retryAfter}
}

func (c *coolDown) latest(class int, now, passed time.Time) (end time.Time, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed.Store(c.gates.closed(now))
	return c.gates.latest(class, now, passed)
}

// done reports whether the outcome began a cool-down or prolonged one by a
// second at least.
func (c *coolDown) done(seat *coolSeat, outcome AttemptOutcome) (news bool) {
	if outcome.StatusCode != http.StatusTooManyRequests {
		return false
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	news = c.gates.shut(gateKey(outcome.LimitKey), seat.class, now, outcome.RetryAfter)
	c.closed.Store(c.gates.closed(now))
	return news
}

// gateKey is a limit_key as it is kept and shown: foreign text, so one line of
// at most 64 bytes.
func gateKey(limitKey string) string { return oneLine(limitKey, 64) }

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

// gates are the limits that have refused something: first maxKeys by their
// limit_key, then one for each class, for 429s that name none. They are made
// at the first 429.
type gates []gate

// maxKeys bounds what is remembered of limit_keys, which the service chooses.
const maxKeys = 64

// gate is one limit. Which classes it covers is learned from where it was
// seen, and kept beyond the end of a cool-down: the interface shows neither the
// values of limit_key nor what each of them covers.
type gate struct {
	key      string
	covers   uint32    // a bit for each class
	begun    time.Time // when the cool-down began
	end      time.Time // when it ends
	reported time.Time // the end that was last called news
}

// otherClock is how far a clock must be behind the begin of a cool-down to be
// another one: that of a synctest bubble, where it says nothing. Goroutines
// that read the same clock and then take the lock in another order are closer.
const otherClock = time.Second

func (g *gate) over(now time.Time) bool {
	return !now.Before(g.end) || g.begun.Sub(now) > otherClock
}

// shut closes the gate of key, or of the class if key is empty, for told from
// now on, but never opens one earlier than it would have opened.
func (gs *gates) shut(key string, class int, now time.Time, told time.Duration) (news bool) {
	g := gs.find(key, class, now)
	g.covers |= 1 << class
	end := now.Add(told)
	switch {
	case told <= 0:
		return false
	case g.over(now):
		g.begun, g.end, g.reported = now, end, end
		return true
	case end.After(g.end):
		g.end = end
	}
	if news = g.end.Sub(g.reported) >= time.Second; news {
		g.reported = g.end
	}
	return news
}

// find returns the gate of key; a new key takes the place of the one that
// ended first. Where all are closed, or key is empty, it is that of the class.
func (gs *gates) find(key string, class int, now time.Time) *gate {
	if *gs == nil {
		*gs = make(gates, maxKeys+maxClasses)
	}
	own := &(*gs)[maxKeys+class]
	if key == "" {
		return own
	}
	var free *gate
	for i := range (*gs)[:maxKeys] {
		g := &(*gs)[i]
		if g.key == key {
			return g
		}
		if g.over(now) && (free == nil || g.end.Before(free.end)) {
			free = g
		}
	}
	if free == nil {
		return own
	}
	*free = gate{key: key}
	return free
}

// latest is the end of the last cool-down of the class to end, if it is after
// passed, and passed otherwise.
func (gs gates) latest(class int, now, passed time.Time) (end time.Time, key string) {
	end = passed
	for i := range gs {
		if g := &gs[i]; g.covers&(1<<class) != 0 && !g.over(now) && g.end.After(end) {
			end, key = g.end, g.key
		}
	}
	return end, key
}

// closed counts the gates that are not over.
func (gs gates) closed(now time.Time) (n int32) {
	for i := range gs {
		if !gs[i].over(now) {
			n++
		}
	}
	return n
}
