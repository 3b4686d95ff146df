//go:build unix

package bench_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// oneWay is the latency of a message: half of 20 ms.
const oneWay = 10 * time.Millisecond

// BenchmarkNetwork measures callers that share a new client, 20 ms away from the service. All
// begin at once, and each makes 20 calls. ns/op is the time for all calls.
func BenchmarkNetwork(b *testing.B) {
	counts := []int{1, 600}
	if testing.Short() {
		counts = []int{1, 20}
	}
	for _, over := range []string{"http1", "http2"} {
		for _, callers := range counts {
			for _, of := range []string{"base", "client"} {
				b.Run(fmt.Sprintf("over=%s/callers=%d/of=%s", over, callers, of), func(b *testing.B) {
					away := new(network)
					transport, url := serve(b, over == "http2", away)
					var took []time.Duration
					for b.Loop() {
						pool := pooled(transport.Clone())
						b.Cleanup(pool.CloseIdleConnections)
						s := byHand(b, pool, url)
						switch {
						case of == "base":
						case over == "http1":
							s = withOptions()(b, nil, url) // the client's own pool
						default: // that pool does not trust the test server's certificate
							s = withOptions()(b, pool, url)
						}
						took = append(took, begin(b, s, callers)...)
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
					b.ReportMetric(float64(away.opened.Load())/float64(b.N), "conns")
				})
			}
		}
	}
}

// begin makes the calls of all callers, and returns how long each call took.
func begin(b *testing.B, s subject, callers int) []time.Duration {
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

// network is a listener on whose connections messages and the handshake take time.
type network struct {
	net.Listener
	opened atomic.Int64
}

func (n *network) Accept() (net.Conn, error) {
	far, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n.opened.Add(1)
	server, near := net.Pipe()
	go pass(far, near)
	go func() {
		time.Sleep(2 * oneWay) // the handshake
		pass(near, far)
	}()
	return server, nil
}

// pass copies each piece after its time on the way.
func pass(to, from net.Conn) {
	type piece struct {
		due   time.Time
		bytes []byte
	}
	underway := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range underway {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.bytes) // go on reading even if the other end is gone
		}
	}()
	defer close(underway)
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		underway <- piece{time.Now().Add(oneWay), buffer[:n]}
	}
}
