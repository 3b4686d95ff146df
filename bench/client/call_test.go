// Package client measures what a call costs.
package client

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/bench/peers/all"
)

// ways are how an answer comes to a client.
var ways = []struct {
	name string
	open func(testing.TB, peers.Peer) (transport http.RoundTripper, baseURL string)
}{
	{"canned", func(_ testing.TB, p peers.Peer) (http.RoundTripper, string) {
		return peers.Canned(p.Answers), "https://service.example"
	}},
	{"loopback", func(tb testing.TB, p peers.Peer) (http.RoundTripper, string) {
		server := httptest.NewServer(peers.Canned(p.Answers))
		tb.Cleanup(server.Close)
		transport := &http.Transport{MaxIdleConnsPerHost: 1000}
		tb.Cleanup(transport.CloseIdleConnections)
		return transport, server.URL
	}},
}

// BenchmarkCall is one call after another.
func BenchmarkCall(b *testing.B) {
	for _, way := range ways {
		for _, kind := range []string{"post", "get"} {
			for _, peer := range all.Peers {
				b.Run("over="+way.name+"/call="+kind+"/subject="+subject(peer), func(b *testing.B) {
					call := open(b, way.open, peer, kind)
					b.ReportAllocs()
					for b.Loop() {
						if err := call(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func open(tb testing.TB, way func(testing.TB, peers.Peer) (http.RoundTripper, string), peer peers.Peer, kind string) func(context.Context) error {
	calls, err := peer.New(way(tb, peer))
	if err != nil {
		tb.Fatal(err)
	}
	if kind == "post" {
		return calls.Post
	}
	return calls.Get
}

// subject is a peer's name without what would end it in a benchmark's.
func subject(p peers.Peer) string { return strings.NewReplacer(" ", "-", "/", "-").Replace(p.Name) }
