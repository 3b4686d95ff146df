package fakeserver_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// transports are the two in-memory ways to a fake.
func transports(t testing.TB, fake *fakeserver.Server, opts ...fakeserver.ClientOption) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"wire": fake.HTTPClient(t, opts...).Transport, "direct": fake.Direct(opts...)}
}

func TestClientsReachNothingElse(t *testing.T) {
	outside := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(outside.Close)
	t.Setenv("HTTP_PROXY", outside.URL)
	fake, _ := newFake(t)
	assert.Equal(t, fakeURL, fake.BaseURL())
	for name, wire := range transports(t, fake) {
		for _, url := range []string{outside.URL, "http://example.com/v1/status", "https://example.com/v1/status", strings.Replace(fakeURL, "https", "http", 1) + "/v1/status"} {
			_, err := (&http.Client{Transport: wire}).Get(url) //nolint:bodyclose // there is none
			require.Error(t, err, name)
			host := strings.TrimSuffix(url, "/v1/status")
			assert.Contains(t, err.Error(), "reaches only the fake at "+fakeURL, name)
			assert.Contains(t, err.Error(), host, name)
		}
	}
}

// A client that was not given HTTPClient is told so, at once and without a name
// server.
func TestBaseURLNamesWhatIsMissing(t *testing.T) {
	fake, _ := newFake(t)
	_, err := (&http.Client{Transport: new(http.Transport)}).Get(fake.BaseURL()) //nolint:bodyclose // there is none
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	assert.True(t, missing.IsNotFound)
	assert.ErrorContains(t, err, "WithHTTPClient(fake.HTTPClient(t)).is-missing")
}

func TestFromIP(t *testing.T) {
	fake, c := newFake(t)
	for name, wire := range transports(t, fake, fakeserver.FromIP("2001:db8::7")) {
		c.wire = wire
		c.call("GET", "/v1/status", noBody).wantOK(t)
		calls := fake.Calls()
		assert.Equal(t, "2001:db8::7", calls[len(calls)-1].Address, name)
	}
}

// What the fake sees, and what the caller gets, is the same on both ways.
func TestDirectIsShapedAsTheWire(t *testing.T) {
	fake, c := newFake(t, append(unlimited(), frozen(), fakeserver.WithUnknownRoutes())...)
	c.agent(emptyBody)
	for _, call := range [][3]string{
		{"GET", "/v1/status", ""},
		{"GET", "/v1/status?a=b", ""},
		{"HEAD", "/v1/status", ""},
		{"POST", "/v1/agents", `{"customer_ref":"x"}`},
		{"POST", "/v1/agents/agent_000001/messages", `{"text":"hello"}`},
		{"GET", "/v1/agents/a%2Fb", ""},
		{"POST", "/v1/warmup", "{"},
		{"DELETE", "/v1/byok", ""},
	} {
		var seen []fakeserver.Call
		var got []*http.Response
		for _, wire := range []http.RoundTripper{fake.HTTPClient(t).Transport, fake.Direct()} {
			resp, err := wire.RoundTrip(c.request(call[0], call[1], call[2]))
			require.NoError(t, err)
			_, err = io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			calls := fake.Calls()
			last := calls[len(calls)-1]
			last.Seq, last.TraceID, last.ReplyBody, last.Sent.Body = 0, "", "", ""
			seen = append(seen, last)
			got = append(got, resp)
		}
		assert.Equal(t, seen[0], seen[1], call)
		assert.Equal(t, got[0].Header, got[1].Header, call)
		assert.Equal(t, got[0].Status, got[1].Status, call)
		assert.Equal(t, got[0].ContentLength, got[1].ContentLength, call)
		assert.Equal(t, got[0].Proto, got[1].Proto, call)
	}
}

func TestDirectWithOddRequests(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	roundTrip := func(change func(*http.Request)) (*http.Response, error) {
		req := c.request("POST", "/v1/warmup", "{}")
		change(req)
		return fake.Direct().RoundTrip(req)
	}
	_, err := roundTrip(func(r *http.Request) { r.URL = nil }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "nil Request.URL")
	_, err = roundTrip(func(r *http.Request) { r.URL.Scheme = "http" }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "not http://")
	_, err = roundTrip(func(r *http.Request) { r.ContentLength = 3 }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "ContentLength=3 with Body length 2")
	resp, err := roundTrip(func(r *http.Request) { r.Method, r.Header, r.Body, r.Host = "", http.Header{}, nil, "example.com" })
	require.NoError(t, err)
	read(t, resp).wantError(t, 405, "method_not_allowed")
	resp, err = roundTrip(func(r *http.Request) { r.Method, r.URL.Path = "OPTIONS", "*" })
	require.NoError(t, err)
	read(t, resp).wantError(t, 404, "not_found")
	assert.Equal(t, "GET", fake.Calls()[0].Method)
}

type brokenReader struct{ closed bool }

var errBroken = errors.New("broken")

func (b *brokenReader) Read([]byte) (int, error) { return 0, errBroken }
func (b *brokenReader) Close() error             { b.closed = true; return nil }

func TestBodyThatCannotBeRead(t *testing.T) {
	fake, c := newFake(t)
	for name, wire := range transports(t, fake) {
		body := new(brokenReader)
		req := c.request("POST", "/v1/warmup", "{}")
		req.Body, req.ContentLength = body, -1
		_, err := wire.RoundTrip(req) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, errBroken, name)
		assert.True(t, body.closed, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, wire := range transports(t, fake) {
		_, err := wire.RoundTrip(c.request("GET", "/v1/status", noBody).WithContext(ended)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, context.Canceled, name)
	}
}

// A call whose context has ended never yields a reply.
func TestDeadlinesAreTrue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			time.Sleep(30 * time.Second)
			return fakeserver.Reply{}
		})
		c := caller{t, fake.Direct(), fake.Key()}
		agent := c.agent(emptyBody)
		for name, wire := range transports(t, fake) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err := wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)) //nolint:bodyclose // there is none
			assert.ErrorIs(t, err, context.DeadlineExceeded, name)
			cancel()
		}
	})
}

func TestTruncatedBodyOnTheWire(t *testing.T) {
	fake, c := newFake(t)
	c.wire = fake.HTTPClient(t).Transport
	req := c.request("POST", "/v1/warmup", "{}")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("{")), 2
	_, err := c.wire.RoundTrip(req) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "ContentLength=2 with Body length 1")
}

func TestConnectionsAreReused(t *testing.T) {
	fake, c := newFake(t)
	client := fake.HTTPClient(t)
	c.wire = client.Transport
	var wait sync.WaitGroup
	for range 40 {
		wait.Go(func() { c.call("GET", "/v1/status", noBody) })
	}
	wait.Wait()
	for range 40 {
		c.call("GET", "/v1/status", noBody)
	}
	assert.Equal(t, 80, fake.CallCount())
}

// In a bubble, a goroutine that is left behind fails the test by itself; this
// is for the outside.
func TestNoGoroutineIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	watch := new(spy)
	fake := fakeserver.New(watch)
	block := make(chan struct{})
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { <-block; return fakeserver.Reply{} })
	assert.LessOrEqual(t, runtime.NumGoroutine(), before, "a fake has none")
	c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
	agent := c.agent(emptyBody)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody).WithContext(ctx)) //nolint:bodyclose // left open on purpose
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	done := make(chan error)
	go func() {
		_, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx)) //nolint:bodyclose // there is none
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	close(block)
	watch.finish()
	eventually(t, func() bool { return runtime.NumGoroutine() <= before }) // those of net/http's client end by themselves
	_, err = c.wire.RoundTrip(c.request("GET", "/v1/status", noBody))      //nolint:bodyclose // there is none
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// Raw HTTP over a dialled connection: what the http.Server does with it is
// its own business, but it must be reached.
func TestMalformedHTTPOnTheWire(t *testing.T) {
	fake, _ := newFake(t)
	transport := fake.HTTPClient(t).Transport.(*http.Transport)
	conn, err := transport.DialTLSContext(t.Context(), "tcp", strings.TrimPrefix(fakeURL, "https://")+":443")
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/%zz HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	r := bufio.NewReader(conn)
	for _, want := range []int{401, 400} {
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, want, resp.StatusCode)
	}
	require.NoError(t, conn.Close())
}
