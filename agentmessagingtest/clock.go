package agentmessagingtest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// clock is a clock whose client waits in every run with the same jitter.
type clock struct {
	agentmessaging.Clock
	mu     sync.Mutex
	random *rand.Rand
}

func (r *run) clock() *clock {
	c := &clock{Clock: r.fake, random: rand.New(rand.NewPCG(r.sweep.seed, 0))}
	if r.sweep.bubble {
		c.Clock = bubbleTime{}
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
