package redisquota_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestFleet runs a fleet for three minutes of real time, with the limits of
// the preview, on a real Redis and a fake behind a socket. What it asserts is
// about the second and the third minute, as the first begins with a burst.
func TestFleet(t *testing.T) {
	if os.Getenv("REDISQUOTA_FLEET") == "" {
		t.Skip("takes three minutes; REDISQUOTA_FLEET=1 runs it")
	}
	for name, opts := range map[string][]fakeserver.Option{
		"fixed windows":   nil,
		"sliding windows": {fakeserver.WithSlidingWindows()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFleet(t, fakeserver.New(t, opts...))
		})
	}
}

func testFleet(t *testing.T, fake *fakeserver.Server) {
	server := newServer(t)
	socket := httptest.NewServer(fake)
	defer socket.Close()
	agentID := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	begin := time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), begin.Add(3*time.Minute))
	defer cancel()

	processes := make([]process, 4)
	var group sync.WaitGroup
	for i := range processes {
		p := &processes[i]
		p.client = newFleetClient(t, server, socket.URL, fake.Key())
		for range []int{32, 4, 4, 4}[i] {
			group.Go(func() { p.call(ctx, agentID, begin.Add(time.Minute)) })
		}
	}
	group.Wait()

	var accepted, refused int
	for i := range processes {
		p := &processes[i]
		t.Logf("process %d: %d accepted, %d refused, %d errors", i+1, p.accepted, p.refused, p.failed)
		assert.Zero(t, p.failed)
		accepted, refused = accepted+p.accepted, refused+p.refused
	}
	t.Logf("%.1f %% of the quota of two minutes; %s steps in all three", 100*float64(accepted)/120, steps(t, server))
	assert.GreaterOrEqual(t, accepted, 116)
	assert.LessOrEqual(t, refused, 1)
	for i := range processes {
		assert.InDelta(t, accepted/4, processes[i].accepted, 3, "process %d", i+1)
	}
}

// steps is how often Redis was asked.
func steps(t *testing.T, server *server) string {
	t.Helper()
	stats := server.client(t).Info(t.Context(), "commandstats").Val()
	found := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(stats)
	require.NotNil(t, found)
	return found[1]
}

// process is one of the fleet, with connections and a pacer of its own.
type process struct {
	client *agentmessaging.Client

	mu                        sync.Mutex
	accepted, refused, failed int // since the first minute is over; refused ones always
}

func newFleetClient(t *testing.T, server *server, url, key string) *agentmessaging.Client {
	t.Helper()
	pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits(), agentmessaging.WithCoordinator(server.coordinator(t, key)))
	require.NoError(t, err)
	client, err := agentmessaging.NewClient(url, key, agentmessaging.WithLimiter(pacer),
		agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	require.NoError(t, err)
	return client
}

func (p *process) call(ctx context.Context, agentID string, count time.Time) {
	for ctx.Err() == nil {
		_, err := p.client.GetAgent(ctx, agentID)
		var e *agentmessaging.Error
		if ctx.Err() != nil || errors.As(err, &e) && e.Local {
			return
		}
		p.note(err, time.Now().After(count))
	}
}

func (p *process) note(err error, counts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, agentmessaging.ErrRateLimited):
		p.refused++
	case err != nil:
		p.failed++
	case counts:
		p.accepted++
	}
}
