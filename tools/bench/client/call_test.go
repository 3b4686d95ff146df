// Package client measures what calls cost.
package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const memory = "https://service.example"

// trio are the clients that are looked at more closely.
var trio = []peer{{name: "net-http-by-hand", open: floor}, {name: "go-retryablehttp", open: retryable}, {name: "agentmessaging", open: own}}

var all = append(trio[:3:3],
	peer{name: "agentmessaging-with-a-deadline", open: own, bounded: true}, peer{name: "oapi-codegen", open: oapiCodegen})

// ways are how an answer comes to a client.
var ways = map[string]func(testing.TB) (http.RoundTripper, string){
	"canned": func(testing.TB) (http.RoundTripper, string) { return serviceAnswers, memory },
	"loopback": func(tb testing.TB) (http.RoundTripper, string) {
		server := httptest.NewServer(serviceAnswers)
		tb.Cleanup(server.Close)
		return pooled(tb, &http.Transport{}), server.URL
	},
	"http2": func(tb testing.TB) (http.RoundTripper, string) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				panic("a client does not speak HTTP/2")
			}
			serviceAnswers.ServeHTTP(w, r)
		}))
		server.EnableHTTP2 = true
		server.StartTLS()
		tb.Cleanup(server.Close)
		return pooled(tb, server.Client().Transport.(*http.Transport).Clone()), server.URL
	},
}

// pooled keeps a connection for each of a thousand callers.
func pooled(tb testing.TB, t *http.Transport) *http.Transport {
	t.MaxIdleConnsPerHost = 1000
	tb.Cleanup(t.CloseIdleConnections)
	return t
}

// open returns a peer's POST or GET over one of the ways.
func open(tb testing.TB, p peer, way, call string) func(context.Context) error {
	made := p.open(ways[way](tb))
	run := made.read
	if call == "post" {
		run = func(ctx context.Context) error { return made.send(ctx, text) }
	}
	if p.bounded {
		return bounded(run)
	}
	return run
}

// BenchmarkCall is one call after another.
func BenchmarkCall(b *testing.B) {
	for _, way := range []string{"canned", "loopback"} {
		for _, call := range []string{"post", "get"} {
			for _, p := range all {
				b.Run(fmt.Sprintf("over=%s/call=%s/subject=%s", way, call, p.name), func(b *testing.B) { repeat(b, open(b, p, way, call)) })
			}
		}
	}
}

func repeat(b *testing.B, call func(context.Context) error) {
	ctx := b.Context()
	require.NoError(b, call(ctx))
	b.ReportAllocs()
	for b.Loop() {
		if err := call(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// Unlike times, allocations are the same in every run: at most 1.25 times
// those of bare go-retryablehttp, and no more than those of any other client.
func TestAllocations(t *testing.T) {
	for _, call := range []string{"post", "get"} {
		of := map[string]float64{}
		for _, p := range all {
			run := open(t, p, "canned", call)
			of[p.name] = testing.AllocsPerRun(100, func() { require.NoError(t, run(t.Context()), p.name) })
		}
		assert.LessOrEqual(t, of["agentmessaging"], 1.25*of["go-retryablehttp"], call)
		for _, p := range all[4:] {
			assert.LessOrEqual(t, of["agentmessaging"], of[p.name], "%s %s", call, p.name)
		}
	}
}
