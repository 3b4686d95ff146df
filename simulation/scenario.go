package simulation

import (
	"context"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
)

// class of calls, which are measured apart.
type class int

const (
	batch       class = iota
	interactive       // goes first, where the policy knows the difference
	other             // calls of another endpoint
)

// load is one sort of calls. Where perMinute is 0, each worker calls again as
// soon as his last call was accepted; otherwise calls arrive at random, that
// many a minute in the whole fleet.
type load struct {
	class     class
	endpoint  agentmessaging.LimitedAttempt
	workers   []int // of each process
	perMinute float64
}

// scenario is what is simulated: the same seed gives the same draws.
type scenario struct {
	service func() *service
	limits  []limit // as the policy was told
	policy  policy
	tuning  pacing.Tuning // of the coordinator

	workers []int  // of each process, who send messages in a closed loop
	loads   []load // other callers
	foreign float64
	latency latency // zero means the usual one

	starts     time.Duration // time of day
	warm, span time.Duration // the measured span follows the warm time
	seed       uint64
	// meanwhile runs beside, from the start.
	meanwhile func(ctx context.Context, w *world)
}

// limit is what a policy is told of a limit.
type limit struct {
	key    string
	max    int
	window time.Duration
	only   string // the path that spends it; empty means all
}

// minuteLimit is the limit of the preview (interface 8.1).
func minuteLimit() []limit { return []limit{{key: minuteKey, max: 60, window: time.Minute}} }

// saturated is n workers in each of p processes, all of whom always want more.
func saturated(m model, p policy, processes, n int) scenario {
	return scenario{
		service: func() *service { return m.perMinute(60) }, limits: minuteLimit(), policy: p, workers: each(processes, n),
		starts: 15*time.Hour + 20*time.Minute + 17*time.Second,
		warm:   103 * time.Second, span: 10 * time.Minute, // measured from a whole minute on
		seed: uint64(1000*processes + n),
	}
}
