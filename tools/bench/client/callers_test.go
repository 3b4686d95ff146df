//go:build unix

package client

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkCallers is a POST where many share a client. The processor's time,
// over loopback of client and server together, tells what a call costs, and
// the time by the clock how well the processors are kept busy.
func BenchmarkCallers(b *testing.B) {
	for _, way := range []string{"canned", "loopback"} {
		for _, callers := range []int{1, 8, 64, 1000} {
			for _, p := range trio {
				b.Run(fmt.Sprintf("over=%s/callers=%d/subject=%s", way, callers, p.name), func(b *testing.B) {
					shared(b, open(b, p, way, "post"), callers)
				})
			}
		}
	}
}

// BenchmarkHTTP2 is a call over HTTP/2 and TLS on loopback, on one connection.
func BenchmarkHTTP2(b *testing.B) {
	for _, call := range []string{"post", "get"} {
		for _, callers := range []int{1, 64} {
			for _, p := range trio {
				b.Run(fmt.Sprintf("call=%s/callers=%d/subject=%s", call, callers, p.name), func(b *testing.B) {
					shared(b, open(b, p, "http2", call), callers)
				})
			}
		}
	}
}

func shared(b *testing.B, call func(context.Context) error, callers int) {
	require.NoError(b, call(b.Context()))
	share(b, call, callers, 1)    // opens the connections
	each := max(40, 2000/callers) // so that starting a caller takes less than 1 % of what its calls take
	calls, begun := 0, processorTime()
	for b.Loop() {
		share(b, call, callers, each)
		calls += callers * each
	}
	b.ReportMetric(float64(b.Elapsed())/float64(calls), "ns/call")
	b.ReportMetric(float64(processorTime()-begun)/float64(calls), "cpu-ns/call")
	b.ReportMetric(0, "ns/op")
}

// share gives each caller a context of its own: one for all would be a lock.
func share(tb testing.TB, call func(context.Context) error, callers, each int) {
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(tb.Context())
			defer cancel()
			for range each {
				if err := call(ctx); err != nil {
					tb.Error(err)
				}
			}
		})
	}
	wait.Wait()
}

// processorTime is what this process has used so far, of all its threads.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
