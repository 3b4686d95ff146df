package fakeserver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// hooksOf sends a request and returns the hooks that ran.
func hooksOf(wire http.RoundTripper, req *http.Request) (ran []string) {
	// The wire runs the last on another goroutine, which may be late.
	wrote := make(chan struct{}, 1)
	trace := &httptrace.ClientTrace{
		GetConn: func(hostPort string) { ran = append(ran, "GetConn "+hostPort) },
		GotConn: func(info httptrace.GotConnInfo) {
			ran = append(ran, "GotConn "+info.Conn.LocalAddr().(*net.TCPAddr).IP.String()+" "+info.Conn.RemoteAddr().String())
		},
		WroteHeaders: func() { wrote <- struct{}{} },
	}
	resp, err := wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if len(ran) == 2 {
		<-wrote
		ran = append(ran, "WroteHeaders")
	}
	return ran
}

// A client learns from the hooks whether its request was sent, over Direct as
// over the wire.
func TestDirectRunsHooks(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.CloseEarly(), fakeserver.ByEndpoint(fakeserver.EndpointWarmUp))
	const address = "WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid:443"
	const got = "GotConn 203.0.113.7 " + address
	for name, wire := range transports(t, fake, fakeserver.FromIP("203.0.113.7")) {
		hooks := func(change func(*http.Request)) []string {
			req := c.request("POST", "/v1/agents", emptyBody)
			change(req)
			return hooksOf(wire, req)
		}
		assert.Equal(t, []string{"GetConn " + address, got, "WroteHeaders"}, hooks(func(*http.Request) {}), name)
		assert.Equal(t, []string{"GetConn " + address, got, "WroteHeaders"}, hooks(func(r *http.Request) { r.URL.Path = "/v1/warmup" }), name)
		assert.Equal(t, []string{"GetConn 127.0.0.1:2"}, hooks(func(r *http.Request) { r.URL.Host = "127.0.0.1:2" }), name)
		assert.Empty(t, hooks(func(r *http.Request) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			*r = *r.WithContext(ended)
		}), name)
	}
	require.Equal(t, 2, fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent)))
}

// The connection that a hook is shown has addresses and nothing else.
func TestConnectionOfDirectIsClosed(t *testing.T) {
	fake, c := newFake(t)
	var conn net.Conn
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn = info.Conn }}
	req := c.request("GET", "/v1/status", noBody)
	resp, err := fake.Direct().RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
	require.NoError(t, err)
	read(t, resp).wantOK(t)
	_, err = conn.Read(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
	_, err = conn.Write(make([]byte, 1))
	assert.ErrorIs(t, err, net.ErrClosed)
	for _, set := range []func(time.Time) error{conn.SetDeadline, conn.SetReadDeadline, conn.SetWriteDeadline} {
		assert.ErrorIs(t, set(time.Now()), net.ErrClosed)
	}
	assert.NoError(t, conn.Close())
}
