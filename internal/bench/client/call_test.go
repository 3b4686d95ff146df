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

// three are the clients that are looked at more closely.
var three = []struct {
	name string
	open func(http.RoundTripper, string) service
}{{"net-http-by-hand", floor}, {"go-retryablehttp", retryable}, {"agentmessaging", own}}

var trio = []peer{ours(0), ours(1), ours(2)}

var all = append(trio[:3:3], ownBounded, peer{"oapi-codegen", oapiCodegen})

func ours(i int) peer {
	return peer{three[i].name, func(t http.RoundTripper, baseURL string) calls { return callsOf(three[i].open(t, baseURL)) }}
}

var ownBounded = peer{"agentmessaging-with-a-deadline", func(t http.RoundTripper, baseURL string) calls {
	made := callsOf(own(t, baseURL))
	return calls{bounded(made.post), bounded(made.get)}
}}

// ways are how an answer comes to a client.
var ways = map[string]func(testing.TB) (http.RoundTripper, string){
	"canned": func(testing.TB) (http.RoundTripper, string) { return serviceAnswers, memory },
	"loopback": func(tb testing.TB) (http.RoundTripper, string) {
		server := httptest.NewServer(serviceAnswers)
		tb.Cleanup(server.Close)
		return pooled(tb, &http.Transport{}), server.URL
	},
	"http2": func(tb testing.TB) (http.RoundTripper, string) {
		server := httptest.NewUnstartedServer(serviceAnswers)
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
	if call == "post" {
		return made.post
	}
	return made.get
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

// The server of HTTP/2 speaks it with every client.
func TestHTTP2(t *testing.T) {
	for _, p := range trio {
		var versions []int
		transport, baseURL := ways["http2"](t)
		made := p.open(roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := transport.RoundTrip(req)
			if err == nil {
				versions = append(versions, resp.ProtoMajor)
			}
			return resp, err
		}), baseURL)
		require.NoError(t, made.post(t.Context()), p.name)
		require.NoError(t, made.get(t.Context()), p.name)
		require.Equal(t, []int{2, 2}, versions, p.name)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
