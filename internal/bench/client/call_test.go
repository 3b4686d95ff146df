// Package client measures what calls cost.
package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
)

// ways are how an answer comes to a client.
var ways = []struct {
	name string
	open func(testing.TB, peers.Peer) (transport http.RoundTripper, baseURL string)
}{
	{"canned", func(_ testing.TB, p peers.Peer) (http.RoundTripper, string) {
		return peers.Canned(p.Answers), "https://service.example"
	}},
	{"loopback", loopback},
}

func loopback(tb testing.TB, p peers.Peer) (http.RoundTripper, string) {
	server := httptest.NewServer(peers.Canned(p.Answers))
	tb.Cleanup(server.Close)
	return pool(tb), server.URL
}

// pool keeps a connection for each of a thousand callers, for every client.
func pool(tb testing.TB) *http.Transport {
	transport := &http.Transport{MaxIdleConnsPerHost: 1000}
	tb.Cleanup(transport.CloseIdleConnections)
	return transport
}

// BenchmarkCall is one call after another.
func BenchmarkCall(b *testing.B) {
	for _, way := range ways {
		for _, kind := range []string{"post", "get"} {
			for _, peer := range subjects(b) {
				b.Run("over="+way.name+"/call="+kind+"/subject="+peer.Subject(), func(b *testing.B) {
					repeat(b, callOf(b, way.open, peer, kind))
				})
			}
		}
	}
}

func repeat(b *testing.B, call func(context.Context) error) {
	require.NoError(b, call(b.Context()))
	b.ReportAllocs()
	for b.Loop() {
		if err := call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func callOf(tb testing.TB, way func(testing.TB, peers.Peer) (http.RoundTripper, string), peer peers.Peer, kind string) func(context.Context) error {
	calls, err := peer.New(way(tb, peer))
	require.NoError(tb, err)
	if kind == "post" {
		return calls.Post
	}
	return calls.Get
}
