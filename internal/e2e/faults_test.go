package e2e_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// fault is a way for a connection to go wrong: a row of the matrix.
type fault struct {
	name        string
	dial        error            // instead of a connection
	tls         bool             // the client speaks TLS
	http2       bool             // and trusts the certificate: serve speaks HTTP/2
	serve       func(peer) error // what the service does on each connection
	deadline    time.Duration    // of the caller; 0: none
	unprocessed bool             // the service says that it did nothing: a POST is sent again
	race        bool             // the client may notice before or after it has written a POST's header
}

// methods are a GET, a PUT, a DELETE and a POST. A connection knows no other difference
// between endpoints.
var methods = slices.DeleteFunc(slices.Clone(clienttest.Calls), func(call clienttest.Call) bool {
	return !slices.Contains([]string{"GetAgent", "SetBYOK", "ClearBYOK", "SendMessage"}, call.Name)
})

// TestFaultMatrix makes the calls over connections with every fault, and holds
// docs/faults.md to what comes of it.
func TestFaultMatrix(t *testing.T) {
	log.SetOutput(io.Discard) // net/http tells of answers that are longer than announced
	defer log.SetOutput(os.Stderr)
	for table, faults := range map[string][]fault{"connections": http1Faults, "http2": http2Faults} {
		page := newPage("How an attempt goes wrong", "GET, PUT, DELETE", "POST")
		for _, f := range faults {
			f.http2 = table == "http2"
			f.tls = f.tls || f.http2
			row := columns(t, f.name, methods, f.unprocessed, func(call clienttest.Call, first bool) cell {
				return f.everywhere(t, call, first)
			})
			page.row(f.name, row[0], row[1])
		}
		page.hold(t, table)
	}
}

// everywhere makes a call in memory and virtual time and, where others are
// asked for, through a proxy and over TCP. All end alike.
func (f fault) everywhere(t *testing.T, call clienttest.Call, others bool) (virtual cell) {
	synctest.Test(t, func(t *testing.T) { virtual = f.run(t, call, network{connect: overPipe}) })
	if others && f.http2 {
		synctest.Test(t, func(t *testing.T) {
			assert.Equal(t, virtual, f.run(t, call, network{connect: overPipe, proxy: true}), "%s: through a proxy", f.name)
		})
	}
	if others && f.dial == nil && f.deadline == 0 && virtual.elapsed < 5*time.Second { // more than the clock is involved
		real := f.run(t, call, network{connect: overTCP, retry: agentmessaging.RetryPolicy{MinWait: time.Microsecond}})
		real.elapsed = virtual.elapsed
		assert.Equal(t, virtual, real, "%s, %s: over TCP", call.Name, f.name)
	}
	return virtual
}

// network is a way to the service.
type network struct {
	connect func() (client net.Conn, service peer)
	proxy   bool // by CONNECT
	retry   agentmessaging.RetryPolicy
}

// run makes one call over connections that go wrong.
func (f fault) run(t *testing.T, call clienttest.Call, over network) cell {
	t.Helper()
	requests := new(atomic.Int32)
	transport := f.transport(t, over, requests)
	guard := &poolGuard{RoundTripper: transport}
	baseURL := "http://127.0.0.1:1"
	if f.tls {
		baseURL = "https://service.example:1"
	}
	client := clienttest.At(t, baseURL, clienttest.Through(guard), agentmessaging.WithRetry(over.retry), clienttest.Jitter(0),
		agentmessaging.WithObserver(&wayward{}))
	var info agentmessaging.CallInfo
	ctx := agentmessaging.WithCallInfo(t.Context(), &info)
	if f.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.deadline)
		defer cancel()
	}
	begin := time.Now()
	err := call.Do(ctx, client)
	c := cell{int(requests.Load()), clienttest.Outcome(err), time.Since(begin)}
	transport.CloseIdleConnections()
	assert.LessOrEqual(t, c.requests, info.Attempts, "%s: what is sent is an attempt", f.name)
	assert.Zero(t, guard.closed.Load(), "the caller's pool is left alone")
	clienttest.HoldsLaws(t, err, "canary")
	if f.race && call.IsPost() {
		c.outcome, c.elapsed = eitherWay, 0
	}
	return c
}

// wayward is an observer that starts attempts from the context of the call.
// Whatever it gives an attempt, the client knows whether its request was sent.
type wayward struct{ call context.Context }

func (w *wayward) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	switch event.(type) {
	case agentmessaging.CallStart:
		w.call = ctx
	case agentmessaging.AttemptStart, agentmessaging.RequestStart:
		return w.call
	}
	return nil
}

// transport makes a connection for each attempt: whether one that brought more
// than it announced is noticed before it is used again is a race.
// TestWarmConnection has the others.
func (f fault) transport(t *testing.T, over network, requests *atomic.Int32) *http.Transport {
	transport := dialsTo(t, requests, over.connect, func(service peer) error {
		if over.proxy {
			if err := service.answerConnect(); err != nil {
				return err
			}
		}
		return f.serve(service)
	})
	transport.DisableKeepAlives, transport.MaxResponseHeaderBytes = true, 256<<10
	if !f.http2 {
		transport.TLSClientConfig = nil // trusts nobody whom the machine does not trust
	}
	if over.proxy {
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:3128"})
	}
	if f.dial != nil {
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, f.dial }
	}
	return transport
}

// dialsTo is a transport for whose connections serve speaks.
func dialsTo(t *testing.T, requests *atomic.Int32, connect func() (net.Conn, peer), serve func(peer) error) *http.Transport {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: roots(), ServerName: "example.com", CurvePreferences: []tls.CurveID{tls.CurveP256}, // the fastest
	}}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, service := connect()
		t.Cleanup(func() { client.Close() }) // net/http may dial for a request that has ended meanwhile
		service.requests = requests
		go func() {
			_ = serve(service)
			_ = service.Close()
		}()
		return client, nil
	}
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// poolGuard is the caller's transport; closing its idle connections is not
// the client's business.
type poolGuard struct {
	http.RoundTripper
	closed atomic.Int32
}

func (g *poolGuard) CloseIdleConnections() { g.closed.Add(1) }

// TestMemoryIsBounded: a body that unpacks without end costs a call little,
// all its attempts together.
func TestMemoryIsBounded(t *testing.T) {
	get := clienttest.Call{Method: http.MethodGet, Do: clienttest.Get}
	for _, f := range http1Faults {
		endless := strings.Contains(f.name, "without end") || strings.Contains(f.name, "packed")
		if !endless || f.deadline > 0 { // with a deadline nothing comes to be unpacked
			continue
		}
		packed()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f.run(t, get, network{connect: overTCP, retry: agentmessaging.RetryPolicy{MinWait: time.Microsecond}})
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20), f.name) // io.ReadAll of Go 1.25 takes 18 MiB
	}
}
