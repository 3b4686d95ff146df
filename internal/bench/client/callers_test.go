package client

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// BenchmarkCallers is a call where many callers share a client. Answered in
// memory it shows whether they wait for each other in the client; over loopback
// it is what they see of it. The processor's time, over loopback of client and
// server together, tells what a call costs, and the time by the clock how well
// the processors are kept busy.
func BenchmarkCallers(b *testing.B) {
	for _, way := range ways {
		for _, callers := range []int{1, 8, 64, 1000} {
			for _, user := range users {
				b.Run(fmt.Sprintf("over=%s/callers=%d/subject=%s", way.name, callers, user.subject), func(b *testing.B) {
					transport, baseURL := way.open(b, peers.Peer{Answers: service.Answers})
					shared(b, user.new(b, transport, baseURL), callers)
				})
			}
		}
	}
}

func shared(b *testing.B, client user, callers int) {
	share(b, client, callers, 1)  // opens the connections
	each := max(40, 2000/callers) // so that starting a caller takes less than 1 % of what its calls take
	calls, begun := 0, processorTime()
	for b.Loop() {
		share(b, client, callers, each)
		calls += callers * each
	}
	b.ReportMetric(perCall(b.Elapsed(), calls), "ns/call")
	if spent := processorTime() - begun; spent > 0 {
		b.ReportMetric(perCall(spent, calls), "cpu-ns/call")
	}
	b.ReportMetric(0, "ns/op")
}

func perCall(d time.Duration, calls int) float64 { return float64(d) / float64(calls) }

// share lets callers make calls at once, each as many as the others and under a
// context of its own: one for all would be a lock that they share.
func share(tb testing.TB, client user, callers, each int) {
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			for range each {
				if err := client.send(ctx, service.Text); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// sends counts messages, and sends none.
type sends struct {
	user
	n atomic.Int64
}

func (s *sends) send(context.Context, string) error {
	s.n.Add(1)
	return nil
}

func TestShare(t *testing.T) {
	var client sends
	share(t, &client, 3, 4)
	require.EqualValues(t, 12, client.n.Load())
}

// TestShared: the time of all calls is divided by what was sent in it.
func TestShared(t *testing.T) {
	once(t)
	var client sends
	result := testing.Benchmark(func(b *testing.B) { shared(b, &client, 4) })
	require.EqualValues(t, 2004, client.n.Load(), "2,000 in one loop, and the 4 that open the connections")
	assert.Equal(t, float64(result.T)/2000, result.Extra["ns/call"])
}

// once has the benchmarks of a test make one loop.
func once(t *testing.T) {
	t.Helper()
	benchtime := flag.Lookup("test.benchtime").Value
	before := benchtime.String()
	require.NoError(t, benchtime.Set("1x"))
	t.Cleanup(func() { assert.NoError(t, benchtime.Set(before)) })
}

// TestProcessorTime: it goes on while work is done.
func TestProcessorTime(t *testing.T) {
	begun := processorTime()
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
	}
	if runtime.GOOS == "windows" {
		t.Skip("not told on Windows")
	}
	require.Greater(t, processorTime(), begun)
}
