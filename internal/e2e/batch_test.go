package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestBatchLosesNothing: 500 messages to 20 agents under the preview limits,
// which allow 60 a minute, by a client without any option that concerns limits.
// Of a window that slides the client can only guess what is free: now and then a
// message meets three refusals.
func TestBatchLosesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		workers, runs, lost int
		near                bool // answers take no time, as in a test of an application
		opts                []fakeserver.Option
	}{
		"at once":        {workers: 500, runs: 4},
		"64 workers":     {workers: 64, runs: 3},
		"near":           {workers: 500, runs: 3, near: true},
		"near, sliding":  {workers: 500, runs: 3, near: true, opts: []fakeserver.Option{fakeserver.WithDecision("windows", "sliding")}},
		"sliding window": {workers: 500, runs: 3, lost: 15, opts: []fakeserver.Option{fakeserver.WithDecision("windows", "sliding")}},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.near && raceDetector() {
				t.Skip("500 timers of one moment end the race detector of Go 1.26 in a bubble, by SIGSEGV")
			}
			t.Parallel()
			for seed := range uint64(tt.runs) {
				synctest.Test(t, func(t *testing.T) {
					assert.GreaterOrEqual(t, sendBatch(t, seed, tt.workers, tt.near, tt.opts), 500-tt.lost, "seed %d", seed)
				})
			}
		})
	}
}

// raceDetector reports whether the test was built with -race.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// sendBatch returns how many of 500 messages arrived.
func sendBatch(t *testing.T, seed uint64, workers int, near bool, opts []fakeserver.Option) (arrived int) {
	random := seeded(seed)
	fake := fakeserver.New(t, opts...)
	client := clientBy(t, fake, func(*testing.T, *fakeserver.Server) (string, http.RoundTripper) {
		if near {
			return fake.BaseURL(), fake.Direct()
		}
		return fake.BaseURL(), distant{fake.Direct(), random}
	}, clienttest.Random(random))
	var agents []string
	for range 20 {
		agents = append(agents, fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID)
	}
	var group sync.WaitGroup
	var next atomic.Int64
	for range workers {
		group.Go(func() {
			for i := next.Add(1); i <= 500; i = next.Add(1) {
				_, _ = client.SendMessage(t.Context(), agents[i%20], agentmessaging.MessageParams{Text: fmt.Sprint("message ", i)})
			}
		})
	}
	group.Wait()
	for _, agent := range agents {
		arrived += len(fake.Conversation(agent))
	}
	return arrived
}

func seeded(seed uint64) func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}

// distant is a way of up to 100 ms to the service, and of up to 3 s back.
type distant struct {
	http.RoundTripper
	random func() float64
}

func (d distant) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(d.random() * float64(100*time.Millisecond)))
	resp, err := d.RoundTripper.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusOK {
		time.Sleep(time.Duration(d.random() * float64(3*time.Second)))
	}
	return resp, err
}
