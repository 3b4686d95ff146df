package cooldown

import (
	"context"
	"net"
	"time"
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

// Follow reads the time from a connection that knows the service's, as the
// fake's connections do: so the cool-down notices Advance though the client has
// no clock of its own. It asks the connection and not the transport, which may
// be wrapped.
func (c *CoolDown) Follow(conn net.Conn) {
	if timed, ok := conn.(interface{ Now() time.Time }); ok && c != nil && c.clock == (RealClock{}) && c.heard.Load() == nil {
		now := timed.Now
		c.heard.CompareAndSwap(nil, &now)
	}
}

func (c *CoolDown) now() time.Time {
	if heard := c.heard.Load(); heard != nil {
		return (*heard)()
	}
	return c.clock.Now()
}
