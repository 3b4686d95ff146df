package agentmessaging_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
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

// TestCookieJarIsUsed in each attempt: that of the http.Client as it was given.
func TestCookieJarIsUsed(t *testing.T) {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	jar.SetCookies(must(url.Parse(serviceURL)), []*http.Cookie{{Name: "gateway", Value: "blue"}})
	transport := answering(answer{Status: 503}, notDialed, okAnswer)
	hc := &http.Client{Transport: transport, Jar: jar}
	client := clientAt(t, serviceURL, quick, agentmessaging.WithHTTPClient(hc))
	hc.Jar = nil // its owner may change it: it was copied
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
	synctest.Test(t, func(t *testing.T) {
		var dials, writes, requests atomic.Int32
		connect := func() (net.Conn, peer) {
			dials.Add(1)
			client, service := overPipe()
			return counted{client, &writes}, service
		}
		refuse := respond("429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 2", "{}")
		transport := dialsTo(t, &requests, connect, func(p peer) (err error) {
			for err == nil {
				err = errors.Join(refuse(p), respond("200 OK\r\n"+length, anyReply)(p))
			}
			return err
		})
		client := clientAt(t, "http://127.0.0.1:1", through(transport))
		for _, do := range []doCall{post, get, post} {
			require.NoError(t, do(t.Context(), client))
		}
		assert.Equal(t, []int32{6, 6, 1}, []int32{requests.Load(), writes.Load(), dials.Load()}, "requests, writes, connections")
	})
}

// TestWarmConnection: on a connection that was used before, net/http would send a GET
// again on its own; here the retry policy does, or nobody.
func TestWarmConnection(t *testing.T) {
	thenCloses := func(p peer) error { return errors.Join(respond("200 OK\r\n"+length, anyReply)(p), p.readRequest()) }
	for baseURL, serve := range map[string]func(peer) error{
		"http://127.0.0.1:1": thenCloses,
		"https://example.com:1": func(p peer) error {
			p.Conn = tls.Server(p.Conn, &tls.Config{Certificates: []tls.Certificate{certificate()}})
			return thenCloses(p)
		},
	} {
		for attempts, want := range map[int]string{1: "", 3: success} {
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int32
				client := clientAt(t, baseURL, through(dialsTo(t, &requests, overPipe, serve)),
					agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: attempts}))
				require.NoError(t, get(t.Context(), client))
				var info agentmessaging.CallInfo
				err := get(agentmessaging.WithCallInfo(t.Context(), &info), client)
				if assert.Equal(t, want == success, err == nil, err); err != nil {
					assert.ErrorContains(t, err, "ended without an answer")
				}
				assert.EqualValues(t, 1+info.Attempts, requests.Load(), "what was sent is an attempt")
			})
		}
	}
}
