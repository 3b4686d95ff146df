package agentmessagingtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// clock is a clock whose client waits in every run with the same jitter.
type clock struct {
	agentmessaging.Clock
	mu     sync.Mutex
	random *rand.Rand
}

func (r *run) clock() *clock {
	c := &clock{random: rand.New(rand.NewPCG(r.sweep.seed, 0))}
	switch {
	case r.sweep.bubble:
		c.Clock = bubbleTime{}
	case r.sweep.single:
		c.Clock = alone{r.fake}
	default:
		c.Clock = r.fake
	}
	return c
}

// Random is asked by the client; see agentmessaging.WithClock.
func (c *clock) Random() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Float64()
}

// bubbleTime waits as a synctest bubble does.
type bubbleTime struct{}

func (bubbleTime) Now() time.Time { return time.Now() }

func (bubbleTime) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// alone is the clock of a scenario whose calls come from one goroutine: nobody
// else has to come to rest before the time moves on.
type alone struct{ *fakeserver.Server }

func (a alone) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		a.Advance(d)
	}
	return ctx.Err()
}
