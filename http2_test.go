package agentmessaging_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// serveTLSOn starts a server that speaks HTTP/2, or HTTP/1.1 only, and returns
// it with a transport that trusts it.
func serveTLSOn(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, *http.Transport) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = discardLog
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, server.Client().Transport.(*http.Transport)
}

// dialsHTTP2 is a transport whose connections serve speaks for.
func dialsHTTP2(t *testing.T, requests *atomic.Int32, connect func() (net.Conn, peer), serve func(peer) error) *http.Transport {
	t.Helper()
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted(), ServerName: "example.com"}}
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, service := connect()
		t.Cleanup(func() { client.Close() }) // a spare one, too
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

// TestRecycledConnections: a service that replaces its connections now and
// then costs no call an error or a wait, not even one that tries once; what it
// did not take is sent again.
func TestRecycledConnections(t *testing.T) {
	const calls, callers, each = 1_500, 8, 150
	for _, attempts := range []int{1, 3} {
		var handled, made atomic.Int64
		server, transport := serveTLSOn(t, true, func(w http.ResponseWriter, _ *http.Request) {
			if handled.Add(1)%each == 0 {
				w.Header().Set("Connection", "close") // GOAWAY
			}
			io.WriteString(w, anyReply)
		})
		policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Hour, MaxWait: 2 * time.Hour}
		client := connect(t, server.URL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), agentmessaging.WithRetry(policy))
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				do := []func(context.Context, *agentmessaging.Client) error{get, post}[caller%2]
				for made.Add(1) <= calls {
					var info agentmessaging.CallInfo
					assert.NoError(t, do(agentmessaging.WithCallInfo(t.Context(), &info), client))
					assert.LessOrEqual(t, info.Attempts, attempts+2)
					assert.Less(t, info.Waited, time.Hour)
				}
			})
		}
		group.Wait()
		assert.EqualValues(t, calls, handled.Load(), "none was carried out twice")
	}
}

// TestRenewedOnce: only one repeat is made at once, and only where the
// connection had worked before.
func TestRenewedOnce(t *testing.T) {
	for _, do := range []func(context.Context, *agentmessaging.Client) error{get, post} {
		requests := new(atomic.Int32)
		transport := dialsHTTP2(t, requests, overTCP(t), overHTTP2(func(h *http2Peer) error {
			for {
				if err := h.readRequest(); err != nil {
					return err
				}
				if requests.Load() == 1 {
					_ = h.answer(200, anyReply)
					continue
				}
				_ = h.goAway(max(h.stream, 2)-2, noError)
			}
		}))
		client := connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), once)
		require.NoError(t, do(t.Context(), client))
		var info agentmessaging.CallInfo
		assert.Equal(t, wantError, outcomeOf(t, do(agentmessaging.WithCallInfo(t.Context(), &info), client)))
		assert.EqualValues(t, 3, requests.Load())
		assert.Equal(t, 2, info.Attempts, "a connection that never worked is not replaced")
		assert.Equal(t, wantError, outcomeOf(t, do(t.Context(), client)))
		assert.EqualValues(t, 4, requests.Load())
	}
}

// repeating is a transport of the caller's that makes two tries of one.
type repeating struct {
	first, second http.RoundTripper
	when          func(*http.Response, error) bool
}

func (r repeating) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	try := func(transport http.RoundTripper) (*http.Response, error) {
		clone := req.Clone(req.Context())
		if body != nil {
			clone.Body = io.NopCloser(bytes.NewReader(body))
		}
		return transport.RoundTrip(clone)
	}
	resp, err := try(r.first)
	if r.when(resp, err) {
		if err == nil {
			resp.Body.Close()
		}
		return try(r.second)
	}
	return resp, err
}

// TestTransportThatRepeats: what its first try has sent was sent, however the
// second one failed; a repeat of what was answered is its own affair.
func TestTransportThatRepeats(t *testing.T) {
	address, requests := listen(t, func(conn net.Conn) { conn.Close() })
	dead := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, dialError }}
	failed := func(_ *http.Response, err error) bool { return err != nil }
	client := connect(t, "http://"+address, agentmessaging.WithHTTPClient(&http.Client{Transport: repeating{&http.Transport{}, dead, failed}}))
	assert.Equal(t, wantUnknown, outcomeOf(t, post(t.Context(), client)))
	assert.EqualValues(t, 1, requests.Swap(0))
	assert.Equal(t, wantError, outcomeOf(t, get(t.Context(), client)))
	assert.EqualValues(t, 3, requests.Load())

	for _, http2 := range []bool{false, true} {
		n := 0
		server, transport := serveTLSOn(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n%2 == 1 {
				w.WriteHeader(http.StatusUnauthorized)
			}
			io.WriteString(w, anyReply)
		})
		refused := func(resp *http.Response, err error) bool { return err == nil && resp.StatusCode == 401 }
		client := connect(t, server.URL, agentmessaging.WithHTTPClient(&http.Client{Transport: repeating{transport, transport, refused}}))
		assert.NoError(t, get(t.Context(), client))
		assert.NoError(t, post(t.Context(), client))
	}
}

// TestOneStreamAtATime: the service allows each connection one, and callers
// that call at once share no outcome. A call that nobody answers is a deadlock.
func TestOneStreamAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := new(atomic.Int32)
		transport := dialsHTTP2(t, requests, overPipe, overHTTP2(func(h *http2Peer) error {
			for {
				if err := h.readHeader(); err != nil {
					return err
				}
				if err := h.answer(200, anyReply); err != nil {
					return err
				}
			}
		}, setting(settingStreams, 1)...))
		client := connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), once)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { assert.NoError(t, get(t.Context(), client)) })
		}
		group.Wait()
		assert.EqualValues(t, 8, requests.Load())
	})
}

// TestFlowControlStalls: the service never lets the body come.
func TestFlowControlStalls(t *testing.T) {
	requests := new(atomic.Int32)
	ctx, cancel := context.WithCancel(t.Context())
	transport := dialsHTTP2(t, requests, overTCP(t), overHTTP2(func(h *http2Peer) error {
		if err := h.readHeader(); err != nil {
			return err
		}
		cancel()
		return h.drain()
	}, setting(settingWindow, 0)...))
	client := connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
	assert.Equal(t, wantUnknown, outcomeOf(t, post(ctx, client)))
	assert.EqualValues(t, 1, requests.Load())
}

// TestGetIsAGet: over HTTP/2 a request without a body is a header that ends it.
func TestGetIsAGet(t *testing.T) {
	var ended []bool
	transport := dialsHTTP2(t, new(atomic.Int32), overTCP(t), overHTTP2(func(h *http2Peer) error {
		for {
			if err := h.readHeader(); err != nil {
				return err
			}
			ended = append(ended, h.ended)
			if err := h.answer(200, anyReply); err != nil {
				return err
			}
		}
	}))
	client := connect(t, testURL, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}), once)
	require.NoError(t, get(t.Context(), client))
	require.NoError(t, client.ClearBYOK(t.Context()))
	_, err := client.WarmUp(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, post(t.Context(), client))
	assert.Equal(t, []bool{true, true, true, false}, ended)
}

func addressOf(server *httptest.Server) *string {
	address := server.Listener.Addr().String()
	return &address
}

// TestRestart: a service that goes away and comes back, under callers that do
// not stop, carries out each POST once at most, and the client knows which.
func TestRestart(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var (
			handled, succeeded, unknown, failed atomic.Int64
			target                              atomic.Pointer[string]
		)
		hundred := make(chan struct{})
		handler := func(w http.ResponseWriter, _ *http.Request) {
			if handled.Add(1) == 100 {
				close(hundred)
			}
			io.WriteString(w, anyReply)
		}
		server, transport := serveTLSOn(t, http2, handler)
		target.Store(addressOf(server))
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, *target.Load())
		}
		client := connect(t, "https://example.com", agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for range 50 {
					switch err := post(t.Context(), client); {
					case err == nil:
						succeeded.Add(1)
					case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
						unknown.Add(1)
					default:
						failed.Add(1)
					}
				}
			})
		}
		<-hundred
		again, _ := serveTLSOn(t, http2, handler)
		target.Store(addressOf(again))
		server.CloseClientConnections()
		group.Wait()
		assert.EqualValues(t, 16*50, succeeded.Load()+unknown.Load()+failed.Load())
		assert.GreaterOrEqual(t, handled.Load(), succeeded.Load())
		assert.LessOrEqual(t, handled.Load(), succeeded.Load()+unknown.Load(), "no more than the client knows of")
	}
}
