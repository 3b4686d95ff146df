package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

var errDown = errors.New("the coordinator is down")

// coordinator keeps the quota's state in memory and can fail as a server does.
type coordinator struct {
	tuning pacing.Tuning

	mu    sync.Mutex
	state *pacing.State // nil after a start and a flush
	steps int
	delay time.Duration // each way
	down  bool          // refuses connections
	stuck chan struct{} // not nil: answers nobody until it is closed
}

const usualDelay = time.Millisecond

func newCoordinator(tuning pacing.Tuning) *coordinator {
	return &coordinator{tuning: tuning, delay: usualDelay}
}

// Do does not heed ctx, as some clients of a store do not.
func (c *coordinator) Do(_ context.Context, step quota.Step) (quota.Answer, error) {
	delay, err := c.arrive()
	if err != nil {
		return quota.Answer{}, err
	}
	time.Sleep(delay)
	got := c.carryOut(step)
	time.Sleep(delay)
	return got, nil
}

func (c *coordinator) arrive() (time.Duration, error) {
	c.mu.Lock()
	stuck := c.stuck
	c.mu.Unlock()
	if stuck != nil {
		<-stuck // what was sent meanwhile is carried out late
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return 0, errDown
	}
	return c.delay, nil
}

func (c *coordinator) carryOut(step quota.Step) quota.Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	if c.state == nil {
		c.state = pacing.New(step.Limits, c.tuning)
	}
	return c.state.Do(clock().Microseconds(), step)
}

func (c *coordinator) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// slow sets how long each way takes.
func (c *coordinator) slow(delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delay = delay
}

// flush loses the state.
func (c *coordinator) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = nil
}

func (c *coordinator) setDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

func (c *coordinator) hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stuck = make(chan struct{})
}

func (c *coordinator) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stuck != nil {
		close(c.stuck)
		c.stuck = nil
	}
}
