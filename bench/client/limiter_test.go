package client

import (
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/service"
)

// BenchmarkLimiter is a call by the limiter that it asks, with nothing limited:
// of one caller after another, and of 64 at once, who meet in the limiter.
func BenchmarkLimiter(b *testing.B) {
	for _, limiter := range limiters {
		b.Run("limiter="+limiter.name+"/callers=1", func(b *testing.B) {
			repeat(b, limited(b, limiter.new()).read)
		})
		b.Run("limiter="+limiter.name+"/callers=64", func(b *testing.B) {
			client := limited(b, limiter.new())
			b.ReportAllocs()
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := client.read(b.Context()); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// limiters: no option is the cool-down.
var limiters = []struct {
	name string
	new  func() []agentmessaging.Option
}{
	{"none", func() []agentmessaging.Option { return with(agentmessaging.Unlimited()) }},
	{"cool-down", func() []agentmessaging.Option { return nil }},
	{"pacer", func() []agentmessaging.Option {
		pacer, err := agentmessaging.NewPacer([]agentmessaging.Limit{{Max: 1 << 30, Window: time.Second}})
		if err != nil {
			panic(err)
		}
		return with(pacer)
	}},
}

func with(limiter agentmessaging.Limiter) []agentmessaging.Option {
	return []agentmessaging.Option{agentmessaging.WithLimiter(limiter)}
}

func limited(tb testing.TB, opts []agentmessaging.Option) user {
	tb.Helper()
	transport := &http.Client{Transport: peers.Canned(service.Answers)}
	client, err := agentmessaging.NewClient("https://service.example", service.Key, append(opts, agentmessaging.WithHTTPClient(transport))...)
	require.NoError(tb, err)
	return bySDK{client}
}
