package fakeserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A body that the fake does not read to its end hides from net/http that the
// client has left: a hang must end all the same.
func TestFaultsWithEndlessBodies(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.Hang())
	for name, wire := range ways(t, fake) {
		ctx, cancel := context.WithCancel(t.Context())
		done := fake.Admin().TotalCalls() + 1
		go func() {
			_, _ = fake.AwaitCalls(ctx, done)
			cancel()
		}()
		got := seen(wire, c.request("POST", "/v1/warmup", strings.Repeat(" ", 3<<20)).WithContext(ctx))
		assert.Equal(t, "Canceled", got, name)
	}
}

// The way below TLS is cut, not closed politely.
func TestFaultsOverTLS(t *testing.T) {
	fake, c := newFake(t)
	server := httptest.NewTLSServer(fake)
	defer server.Close()
	wire := socket{server.Client().Transport, "https", server.Listener.Addr().String()}
	for _, fault := range []fakeserver.Fault{fakeserver.ResetConnection(), fakeserver.LoseReply(fakeserver.ResetConnection())} {
		injection := fake.Inject(fault).Times(1)
		assert.Equal(t, "ECONNRESET", seen(wire, c.request("POST", "/v1/warmup", emptyBody)))
		assert.Equal(t, 1, injection.Hits())
	}
}

// Behind GoAway the next calls take another connection, and none is lost.
func TestGoAway(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	for name, wire := range map[string]http.RoundTripper{"wire": fake.HTTPClient(t).Transport, "HTTP/2": overHTTP2(t, fake)} {
		call := func() (reused bool) {
			trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
			req := c.request("POST", "/v1/agents", emptyBody)
			assert.Contains(t, seen(wire, req.WithContext(httptrace.WithClientTrace(t.Context(), trace))), "200", name)
			return reused
		}
		call()
		require.True(t, call(), "the connection is kept")
		before := len(fake.Agents())
		leaving := fake.Inject(fakeserver.GoAway()).Times(1)
		calls := 1
		require.True(t, call(), "the answer still comes over it")
		eventually(t, func() bool { calls++; return !call() }) // the GOAWAY may come behind the answer
		assert.Equal(t, 1, leaving.Hits(), name)
		assert.Len(t, fake.Agents(), before+calls, name)
	}
}

// A writer that cannot be hijacked or flushed, as a recorder, is aborted.
func TestResetWithoutConnection(t *testing.T) {
	fake, _ := newFake(t)
	fake.Inject(fakeserver.ResetConnection())
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/status", http.NoBody))
	})
}

func TestHEADWithFaults(t *testing.T) {
	for _, fault := range []fakeserver.Fault{fakeserver.TruncateReply(3), fakeserver.DripReply(2, 0), fakeserver.Answer(500, "")} {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes())
		fake.Inject(fault)
		var all []string
		for _, wire := range ways(t, fake) {
			all = append(all, seen(wire, c.request("HEAD", "/v1/status", noBody)))
		}
		assert.Equal(t, slices.Repeat(all[:1], 4), all, fault)
	}
}
