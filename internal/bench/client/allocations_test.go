package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/agentmessaging"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/all"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/nethttp"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/retryablehttp"
)

// TestAllocations: a call allocates at most 1.25 times as often as with bare
// go-retryablehttp, and less often than with any other SDK. Unlike times, these
// counts are the same in every run.
func TestAllocations(t *testing.T) {
	for _, kind := range []string{"post", "get"} {
		own := allocations(t, agentmessaging.Peer, kind)
		for _, peer := range all.Peers {
			switch peer.Name {
			case nethttp.Peer.Name, agentmessaging.Peer.Name:
			case retryablehttp.Peer.Name:
				assert.LessOrEqual(t, own, 1.25*allocations(t, peer, kind), kind)
			default:
				assert.Less(t, own, allocations(t, peer, kind), "%s, %s", kind, peer.Name)
			}
		}
	}
}

func allocations(t *testing.T, peer peers.Peer, kind string) float64 {
	t.Helper()
	call := callOf(t, ways[0].open, peer, kind)
	return testing.AllocsPerRun(200, func() { require.NoError(t, call(t.Context())) })
}
