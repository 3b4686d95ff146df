package client

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/service"
)

// BenchmarkLimiter is a call by the limiter that it asks, with nothing limited,
// from one goroutine and from all processors at once.
func BenchmarkLimiter(b *testing.B) {
	pacer, err := agentmessaging.NewPacer([]agentmessaging.Limit{{Max: 1 << 30, Window: time.Second}})
	require.NoError(b, err)
	for _, limiter := range []struct {
		name string
		opts []agentmessaging.Option
	}{
		{"none", []agentmessaging.Option{agentmessaging.WithLimiter(agentmessaging.Unlimited())}},
		{"cool-down", nil},
		{"pacer", []agentmessaging.Option{agentmessaging.WithLimiter(pacer)}},
	} {
		b.Run("limiter="+limiter.name, func(b *testing.B) {
			client, err := agentmessaging.NewClient("https://service.example", service.Key, append(limiter.opts,
				agentmessaging.WithHTTPClient(&http.Client{Transport: peers.Canned(service.Answers)}))...)
			require.NoError(b, err)
			repeat(b, bySDK{client}.read)
		})
	}
}
