//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// oneWay is half of the 20 ms there and back.
const oneWay = 10 * time.Millisecond

// BenchmarkNetwork is so many callers who begin at once, on a new client, 20 ms
// away from the service, and make 20 calls each. ns/op is for all of them.
func BenchmarkNetwork(b *testing.B) {
	counts := []int{1, 600}
	if testing.Short() {
		counts = []int{1, 20}
	}
	for _, over := range []string{"http1", "http2"} {
		for _, callers := range counts {
			for _, s := range subjects {
				b.Run(fmt.Sprintf("over=%s/callers=%d/of=%s", over, callers, s.name), func(b *testing.B) {
					away := newRelay(b, over)
					var took []time.Duration
					for b.Loop() {
						took = append(took, begin(b, s.open(b, away.transport(b, s.name), away.url), callers)...)
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
					b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "calls/s")
					b.ReportMetric(float64(away.opened.Load())/float64(b.N), "conns")
				})
			}
		}
	}
}

// begin is what each call of all callers took.
func begin(b *testing.B, s service, callers int) []time.Duration {
	const each = 20
	took := make([]time.Duration, callers*each)
	var wait sync.WaitGroup
	for i := range callers {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for j := range each {
				begun := time.Now()
				if err := s.send(ctx); err != nil {
					b.Error(err)
				}
				took[i*each+j] = time.Since(begun)
			}
		})
	}
	wait.Wait()
	return took
}

// A relay passes bytes on to a server as a network does that takes its time,
// there, back and for the handshake of a connection.
type relay struct {
	url    string
	server *httptest.Server
	opened atomic.Int64
}

func newRelay(b *testing.B, over string) *relay {
	r := new(relay)
	if over == "http2" {
		r.server = newHTTP2(b)
	} else {
		r.server = httptest.NewServer(new(answers))
		b.Cleanup(r.server.Close)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	b.Cleanup(func() { _ = listener.Close() })
	behind := r.server.Listener.Addr().String()
	r.url = strings.Replace(r.server.URL, behind, listener.Addr().String(), 1)
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			r.opened.Add(1)
			far, err := net.Dial("tcp", behind)
			if err != nil {
				panic(err)
			}
			go pass(far, near, 3*oneWay) // the first bytes follow a handshake
			go pass(near, far, oneWay)
		}
	}()
	return r
}

// transport is nil for the client's own, which cannot be given the certificate
// of the test's server over HTTP/2.
func (r *relay) transport(b *testing.B, subject string) http.RoundTripper {
	if r.server.TLS == nil && subject == "client" {
		return nil
	}
	transport := pooled(r.server.Client().Transport.(*http.Transport).Clone())
	b.Cleanup(transport.CloseIdleConnections)
	return transport
}

// pass copies what comes, each piece when its time on the way is over.
func pass(to, from net.Conn, first time.Duration) {
	type piece struct {
		due   time.Time
		bytes []byte
	}
	under, begun := make(chan piece, 1024), time.Now()
	go func() {
		defer to.Close()
		for p := range under {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.bytes) // a connection that is gone is read to its end
		}
	}()
	defer close(under)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		due := time.Now().Add(oneWay)
		if earliest := begun.Add(first); due.Before(earliest) {
			due = earliest
		}
		under <- piece{due, buffer[:n]}
	}
}
