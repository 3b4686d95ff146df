package agentmessaging

import (
	"context"
	"time"
)

// A Clock tells a client the time and waits for it; see [WithClock]. It is
// used by many goroutines at once.
type Clock interface {
	// Now is the present time. Cool-downs, and the waits that the client
	// reports, are measured by it.
	Now() time.Time
	// Sleep returns nil when Now has moved on by d, and ctx's error as soon as
	// ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// realClock is the time of this machine, or of the synctest bubble.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
