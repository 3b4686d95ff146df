package simulation

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
)

// latency is how long a message travels: log-normal, as between data centres,
// where most are quick and a few are late.
type latency struct {
	median time.Duration
	sigma  float64
}

var usualLatency = latency{median: 40 * time.Millisecond, sigma: 0.6}

func (l latency) draw(random *rand.Rand) time.Duration {
	return time.Duration(float64(l.median) * math.Exp(l.sigma*random.NormFloat64()))
}

// midnight is when the clock of a bubble starts.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time since midnight of the first day.
func clock() time.Duration { return time.Since(midnight) }

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	return cooldown.RealClock{}.Sleep(ctx, d) == nil
}

// source is a random source of its own for each who draws.
func source(seed uint64, who ...int) *rand.Rand {
	second := uint64(0)
	for _, n := range who {
		second = second*1_000_003 + uint64(n) + 1
	}
	return rand.New(rand.NewPCG(seed, second))
}
