package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"golang.org/x/time/rate"
)

// policy is a way of coping with limits.
type policy struct {
	name string
	// limiter makes the one of a process.
	limiter func(w *world, process int) agentmessaging.Limiter
	// pauses is true where a caller who was refused waits by himself, as he
	// does whose limiter does not do it for him.
	pauses bool
}

// noLimiter lets everything pass.
type noLimiter struct{}

func (noLimiter) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	return noLimiter{}, ctx.Err()
}

func (noLimiter) Done(agentmessaging.AttemptOutcome) {}

// naive asks and, refused, waits as long as the service said and a jitter.
var naive = policy{
	name: "retry alone", pauses: true,
	limiter: func(*world, int) agentmessaging.Limiter { return noLimiter{} },
}

// pause is that of the client's retries (RetryPolicy), which never gives up.
func pause(random *rand.Rand, attempt int, told time.Duration) time.Duration {
	backoff := min(500*time.Millisecond<<min(attempt-1, 4), 8*time.Second)
	return max(told, backoff) + time.Duration(random.Float64()*float64(told/10+backoff/2))
}

// gated is what the client does by default: when one caller is refused, a gate
// closes for all of the process.
var gated = policy{
	name: "cool-down per process", pauses: true,
	limiter: func(w *world, process int) agentmessaging.Limiter {
		return &gate{random: source(w.seed, process, 1)}
	},
}

type gate struct {
	mu     sync.Mutex
	random *rand.Rand
	opens  time.Duration
	jitter time.Duration
}

func (g *gate) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	for closed := g.closed(); closed > 0; closed = g.closed() {
		if !sleep(ctx, closed) {
			return nil, ctx.Err()
		}
	}
	return g, ctx.Err()
}

// closed is how long a caller stays away; each comes back at another time.
func (g *gate) closed() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.opens - clock()
	if left <= 0 {
		return 0
	}
	return left + time.Duration(g.random.Float64()*float64(g.jitter))
}

func (g *gate) Done(o agentmessaging.AttemptOutcome) {
	if o.StatusCode != tooMany {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if opens := clock() + o.RetryAfter; opens > g.opens {
		g.opens, g.jitter = opens, o.RetryAfter/10+250*time.Millisecond
	}
}

// divided gives each process its part of the limit, spread evenly.
var divided = policy{
	name: "x/time/rate, limit/P", pauses: true,
	limiter: func(w *world, _ int) agentmessaging.Limiter {
		per := time.Minute / time.Duration(w.limits[0].max) * time.Duration(len(w.workers))
		return evenRate{rate.NewLimiter(rate.Every(per), 1)}
	},
}

type evenRate struct{ limiter *rate.Limiter }

func (e evenRate) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := e.limiter.Wait(ctx); err != nil {
		return nil, err
	}
	return noLimiter{}, nil
}
