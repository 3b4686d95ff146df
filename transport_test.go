package agentmessaging_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Transports of the caller's, as tests and gateways have them.

// tripper is a transport.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// TestTransportThatRewritesItsRequest, as RoundTrippers must not and do: the
// next attempt starts anew.
func TestTransportThatRewritesItsRequest(t *testing.T) {
	var came []string
	service := answering(answer{Status: 503}, answer{Status: 503}, okAnswer)
	transport := tripper(func(req *http.Request) (*http.Response, error) {
		came = append(came, strings.Join([]string{req.Method, req.Host, req.URL.Path, req.Header.Get("Cookie")}, " "))
		ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
		defer cancel()
		*req = *req.WithContext(ctx)
		req.URL.Path = "/prefix" + req.URL.Path
		req.Host, req.Method = "other.example", http.MethodHead
		req.Header.Set("Cookie", "a=b")
		return service.RoundTrip(req)
	})
	require.NoError(t, get(t.Context(), newClient(t, transport, quick)))
	const whole = "GET service.example /v1/agents/agent_1 "
	assert.Equal(t, []string{whole, whole, whole}, came)
}

// TestLateHook: a hook of an earlier attempt says nothing of a later one.
func TestLateHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late func()
		sent := 0
		transport := tripper(func(req *http.Request) (*http.Response, error) {
			if sent++; sent == 1 {
				trace := httptrace.ContextClientTrace(req.Context())
				late = func() { trace.GetConn("service.example:443") }
				return answering(tooMany("1", "")).RoundTrip(req)
			}
			late()
			return nil, io.ErrUnexpectedEOF
		})
		assert.ErrorIs(t, post(t.Context(), newClient(t, transport)), agentmessaging.ErrOutcomeUnknown)
		assert.Equal(t, 2, sent)
	})
}

func TestCookieJarIsUsed(t *testing.T) {
	jar := jarOf(t, "gateway", "blue")
	transport := answering(answer{Status: 503}, notDialed, okAnswer)
	client := clientAt(t, serviceURL, quick, agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Jar: jar}))
	require.NoError(t, get(t.Context(), client))
	for i, sent := range transport.Sent() {
		assert.Equal(t, []string{"gateway=blue"}, sent.Header["Cookie"], "attempt %d", 1+i)
	}
}

// TestHeadersOfTheTransport stay as they are, whatever a CallInfo leaves out.
func TestHeadersOfTheTransport(t *testing.T) {
	header := http.Header{"X-Echo": {testKey}}
	client := newClient(t, tripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 401, Header: header, Body: http.NoBody}, nil
	}))
	var info agentmessaging.CallInfo
	assert.Error(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
	assert.Equal(t, http.Header{"X-Echo": {testKey}}, header)
	assert.NotContains(t, info.Header.Get("X-Echo"), testKey)
}

// TestDefaultTransport is what http.Client uses where it has none, as it is when a
// call is made.
func TestDefaultTransport(t *testing.T) {
	standard := http.DefaultTransport
	t.Cleanup(func() { http.DefaultTransport = standard })
	client := clientAt(t, serviceURL, agentmessaging.WithHTTPClient(http.DefaultClient))
	for range 2 {
		replaced := answering(okAnswer)
		http.DefaultTransport = replaced
		assert.NoError(t, get(t.Context(), client))
		assert.Len(t, replaced.Sent(), 1)
	}
}

// TestGivenHTTPClientIsCopied: what its owner changes later changes no call.
func TestGivenHTTPClientIsCopied(t *testing.T) {
	transport := answering(okAnswer)
	hc := &http.Client{Transport: transport}
	client := clientAt(t, serviceURL, agentmessaging.WithHTTPClient(hc))
	hc.Jar = jarOf(t, "gateway", "green")
	require.NoError(t, get(t.Context(), client))
	assert.Empty(t, transport.Sent()[0].Header["Cookie"])
}

func jarOf(t *testing.T, name, value string) http.CookieJar {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	service, err := url.Parse(serviceURL)
	require.NoError(t, err)
	jar.SetCookies(service, []*http.Cookie{{Name: name, Value: value}})
	return jar
}

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestOneConnection is kept across refusals, whose bodies are read to the end,
// and a request's body leaves with its header, in one write.
func TestOneConnection(t *testing.T) {
	var dials, writes, requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%3 != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":"rate_limited"}`)
			return
		}
		io.WriteString(w, anyReply)
	}))
	defer server.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counted{conn, &writes}, err
	}}
	defer transport.CloseIdleConnections()
	client := connect(t, server.URL, through(transport), agentmessaging.WithClock(fakeserver.New(t)))
	for _, do := range []doCall{post, get, post} {
		require.NoError(t, do(t.Context(), client))
	}
	assert.Equal(t, []int32{9, 9, 1}, []int32{requests.Load(), writes.Load(), dials.Load()}, "requests, writes, connections")
}

// TestWarmConnection: on connections that were used before, net/http would send
// a GET again on its own; here the retry policy does, or nobody.
func TestWarmConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		assert.NoError(t, warmThenBroken(t, 3, secure))
		assert.ErrorContains(t, warmThenBroken(t, 1, secure), "ended without an answer")
	}
}

// warmThenBroken opens three connections, and breaks one under a GET.
func warmThenBroken(t *testing.T, attempts int, secure bool) error {
	const warm = 3
	var (
		requests atomic.Int32
		together sync.WaitGroup
	)
	together.Add(warm)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := requests.Add(1); {
		case n <= warm:
			together.Done()
			together.Wait()
		case n == warm+1:
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, anyReply)
	}))
	defer server.Close()
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Microsecond}
	client := connect(t, server.URL, agentmessaging.WithHTTPClient(server.Client()), agentmessaging.WithRetry(policy))
	var group sync.WaitGroup
	for range warm {
		group.Go(func() { assert.NoError(t, get(t.Context(), client)) })
	}
	group.Wait()
	var info agentmessaging.CallInfo
	err := get(agentmessaging.WithCallInfo(t.Context(), &info), client)
	assert.EqualValues(t, info.Attempts, requests.Load()-warm, "what was sent is what is told")
	return err
}
