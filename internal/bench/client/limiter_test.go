package client

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// BenchmarkLimiter is what asking a limiter costs a call that it lets go at once:
// with one caller, and with 64 of them, who meet in the limiter. The 64 are
// goroutines on as many processors as there are, and fewer where these do not
// divide 64.
func BenchmarkLimiter(b *testing.B) {
	for _, limiter := range limiters {
		b.Run("limiter="+limiter.name+"/callers=1", func(b *testing.B) {
			repeat(b, limited(b, limiter.new(), peers.Canned(service.Answers)).read)
		})
		b.Run("limiter="+limiter.name+"/callers=64", func(b *testing.B) {
			client := limited(b, limiter.new(), peers.Canned(service.Answers))
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

// limiters: the cool-down is that of a client which was given none. The pacer's
// limit is one that no benchmark reaches.
var limiters = []struct {
	name string
	new  func() agentmessaging.Option
}{
	{"none", agentmessaging.WithoutCoolDown},
	{"cool-down", func() agentmessaging.Option { return nil }},
	{"pacer", func() agentmessaging.Option {
		pacer, err := agentmessaging.NewPacer([]agentmessaging.Limit{{Max: 1 << 30, Window: time.Second}})
		if err != nil {
			panic(err)
		}
		return agentmessaging.WithLimiter(pacer)
	}},
}

// limited is a client with limiter; nil leaves it the one that it has by itself.
func limited(tb testing.TB, limiter agentmessaging.Option, transport http.RoundTripper) user {
	tb.Helper()
	opts := []agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: transport})}
	if limiter != nil {
		opts = append(opts, limiter)
	}
	client, err := agentmessaging.NewClient("https://service.example", service.Key, opts...)
	require.NoError(tb, err)
	return bySDK{client}
}

// TestLimiters: each is what its name says, by what becomes of a call that
// comes after a 429 and cannot wait for its Retry-After of a minute.
func TestLimiters(t *testing.T) {
	full := refused
	full.retryAfter = "60"
	for i, want := range []struct {
		name     string
		local    bool // the second call is refused in the client
		requests int  // of both calls
	}{
		{"none", false, 2},
		{"cool-down", true, 1},
		{"pacer", true, 1},
	} {
		require.Equal(t, want.name, limiters[i].name)
		synctest.Test(t, func(t *testing.T) {
			transport := &script{answers: []scripted{full}}
			client := limited(t, limiters[i].new(), transport)
			assert.False(t, hurried(t, client).Local, want.name)
			assert.Equal(t, want.local, hurried(t, client).Local, want.name)
			assert.Equal(t, want.requests, transport.next, want.name)
		})
	}
}

// hurried is the refusal of a call that has a second.
func hurried(t *testing.T, client user) (refusal *agentmessaging.Error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorAs(t, client.read(ctx), &refusal)
	require.Equal(t, 429, refusal.StatusCode)
	return refusal
}
