package agentmessaging_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// tripper is a transport.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// TestObserverThatStartsAttemptsFromTheCall: whatever context an observer gives
// an attempt, it is known whether its request was sent.
func TestObserverThatStartsAttemptsFromTheCall(t *testing.T) {
	address, requests := listen(t, func(conn net.Conn) { conn.Close() })
	type key struct{}
	var call context.Context
	observer := agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
		switch event.(type) {
		case agentmessaging.CallStart:
			call = context.WithValue(ctx, key{}, "call")
			return call
		case agentmessaging.AttemptStart, agentmessaging.RequestStart:
			return context.WithValue(call, key{}, "attempt")
		}
		return nil
	})
	err := post(t.Context(), connect(t, "http://"+address, agentmessaging.WithObserver(observer)))
	assert.Equal(t, wantUnknown, outcomeOf(t, err))
	assert.EqualValues(t, 1, requests.Load())
}

// TestTransportThatRewritesItsRequest, as RoundTrippers must not and do: the
// next attempt starts anew.
func TestTransportThatRewritesItsRequest(t *testing.T) {
	var paths, hosts, methods []string
	transport := tripper(func(req *http.Request) (*http.Response, error) {
		paths, hosts, methods = append(paths, req.URL.Path), append(hosts, req.Host), append(methods, req.Method)
		ctx, cancel := context.WithTimeout(req.Context(), time.Minute)
		defer cancel()
		*req = *req.WithContext(ctx)
		target := *req.URL
		target.Path = "/prefix" + target.Path
		req.URL, req.Host, req.Method = &target, "other.example", http.MethodHead
		req.Header.Set("Cookie", "a=b")
		if len(paths) < 3 {
			return response(http.StatusServiceUnavailable, "{}"), nil
		}
		assert.Equal(t, []string{"a=b"}, req.Header["Cookie"])
		return response(http.StatusOK, `{"agent_id":"a"}`), nil
	})
	client := connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	_, err := client.GetAgent(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, []string{"/v1/agents/a", "/v1/agents/a", "/v1/agents/a"}, paths)
	assert.Equal(t, []string{"service.example", "service.example", "service.example"}, hosts)
	assert.Equal(t, []string{"GET", "GET", "GET"}, methods)
}

// TestLateHook: a hook of an earlier attempt says nothing of a later one.
func TestLateHook(t *testing.T) {
	sent := 0
	var late func()
	transport := tripper(func(req *http.Request) (*http.Response, error) {
		if sent++; sent == 1 {
			trace := httptrace.ContextClientTrace(req.Context())
			late = func() { trace.GetConn("service.example:443") }
			resp := response(http.StatusTooManyRequests, "{}")
			resp.Header.Set("Retry-After", "0.001")
			return resp, nil
		}
		late()
		return nil, io.ErrUnexpectedEOF
	})
	err := post(t.Context(), connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport})))
	assert.Equal(t, wantUnknown, outcomeOf(t, err))
	assert.Equal(t, 2, sent)
}
