package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers"
	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// wire counts what a client does to its connections.
type wire struct{ conns, writes atomic.Int64 }

func (w *wire) transport(tb testing.TB) *http.Transport {
	transport := pool(tb)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		w.conns.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counted{conn, w}, err
	}
	return transport
}

type counted struct {
	net.Conn
	wire *wire
}

// Write implements net.Conn.
func (c counted) Write(p []byte) (int, error) {
	c.wire.writes.Add(1)
	return c.Conn.Write(p)
}

// refusing is a server that answers every other request with a 429.
func refusing(tb testing.TB) *httptest.Server {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer := service.Answers[r.URL.Path]
		if requests.Add(1)%2 == 1 {
			w.Header().Set("Retry-After", refused.retryAfter)
			w.WriteHeader(refused.status)
			answer = refused.body
		}
		_, _ = io.WriteString(w, answer)
	}))
	tb.Cleanup(server.Close)
	return server
}

// BenchmarkConnection counts what a call, refused once, does to connections.
func BenchmarkConnection(b *testing.B) {
	for _, user := range users {
		b.Run("subject="+user.subject, func(b *testing.B) {
			var wire wire
			client := user.new(b, wire.transport(b), refusing(b).URL)
			calls := 0
			for b.Loop() {
				require.NoError(b, client.send(b.Context(), "Hello"))
				require.NoError(b, client.read(b.Context()))
				calls += 2
			}
			b.ReportMetric(float64(wire.writes.Load())/float64(2*calls), "writes/request")
			b.ReportMetric(float64(wire.conns.Load()), "conns")
		})
	}
}

// TestConnection: each request is one write, and all of them share a
// connection.
func TestConnection(t *testing.T) {
	var wire wire
	client := users[len(users)-1].new(t, wire.transport(t), refusing(t).URL)
	for range 10 {
		require.NoError(t, client.send(t.Context(), "Hello"))
		require.NoError(t, client.read(t.Context()))
	}
	require.EqualValues(t, 40, wire.writes.Load())
	require.EqualValues(t, 1, wire.conns.Load())
}

// TestPool: callers who were all there at once find their connections again.
func TestPool(t *testing.T) {
	var wire wire
	var here sync.WaitGroup // nobody is answered before all have asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here.Done()
		here.Wait()
		peers.Canned(service.Answers).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client := users[len(users)-1].new(t, wire.transport(t), server.URL)
	for range 2 {
		here.Add(20)
		share(t, client, 20, 1)
	}
	require.EqualValues(t, 20, wire.conns.Load())
}
