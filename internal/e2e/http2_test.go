package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestRecycledConnections: a service that replaces its connections now and
// then costs no call an error or a wait, not even one that tries once; what it
// did not take is sent again.
func TestRecycledConnections(t *testing.T) {
	const calls, callers, each = 1_200, 8, 60
	for _, attempts := range []int{1, 3} {
		var handled, made atomic.Int64
		server, transport := serveTLS(t, true, func(w http.ResponseWriter, _ *http.Request) {
			if handled.Add(1)%each == 0 {
				w.Header().Set("Connection", "close") // GOAWAY
			}
			io.WriteString(w, okBody)
		})
		policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Hour, MaxWait: 2 * time.Hour}
		client := connect(t, server.URL, clienttest.Through(transport), agentmessaging.WithRetry(policy))
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				do := []clienttest.Do{clienttest.Get, clienttest.Post}[caller%2]
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

// TestRenewals: what a connection that had worked turns away is sent again at
// once, twice at most, and not where the next connection, or the service, never
// answered. For a GET net/http may have dialed a spare connection, which counts
// as an old one: TestRecycledConnections has both.
func TestRenewals(t *testing.T) {
	for _, tt := range []struct {
		answers  int32 // the service answers so many requests, and turns the others away
		away     act
		requests []int32 // of three calls that try once
	}{
		{1, goAwayBelow(noError), []int32{1, 2, 1}},
		{1, reset(refusedStream), []int32{1, 3, 3}},
		{0, reset(refusedStream), []int32{1, 1, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := new(atomic.Int32)
			answerOrNot := func(h *http2Peer) error {
				if requests.Load() <= tt.answers {
					return answer(200, okBody)(h)
				}
				return tt.away(h)
			}
			client := clienttest.New(t, dialsTo(t, requests, overPipe, overHTTP2(forever(request, answerOrNot))), clienttest.Once)
			for call, want := range tt.requests {
				var info agentmessaging.CallInfo
				before := requests.Load()
				err := clienttest.Post(agentmessaging.WithCallInfo(t.Context(), &info), client)
				assert.Equal(t, before < tt.answers, err == nil, "call %d: %v", call+1, err)
				assert.NotErrorIs(t, err, agentmessaging.ErrOutcomeUnknown)
				assert.Equal(t, want, requests.Load()-before, "requests of call %d", call+1)
				assert.EqualValues(t, want, info.Attempts)
				client, err = client.With() // which knows that the service has answered
				assert.NoError(t, err)
			}
		})
	}
}

// TestOneStreamAtATime: the service allows each connection one, and callers
// that call at once share no outcome. A call that nobody answers is a deadlock.
func TestOneStreamAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := new(atomic.Int32)
		serve := overHTTP2With(setting(settingStreams, 1), forever(header, answer(200, okBody)))
		client := clienttest.New(t, dialsTo(t, requests, overPipe, serve), clienttest.Once)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() { assert.NoError(t, clienttest.Get(t.Context(), client)) })
		}
		group.Wait()
		assert.EqualValues(t, 8, requests.Load())
	})
}

// TestFlowControlStalls: the service never lets the body come.
func TestFlowControlStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := new(atomic.Int32)
		serve := overHTTP2With(setting(settingWindow, 0), header, stay)
		client := clienttest.New(t, dialsTo(t, requests, overPipe, serve), agentmessaging.WithTimeout(time.Minute))
		assert.Equal(t, clienttest.Unknown, clienttest.Outcome(clienttest.Post(t.Context(), client)))
		assert.EqualValues(t, 1, requests.Load())
	})
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
// second one failed, with hooks or without.
func TestTransportThatRepeats(t *testing.T) {
	baseURL, requests := hangingUp(t)
	dead := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, clienttest.NotDialed.Err }}
	failed := func(_ *http.Response, err error) bool { return err != nil }
	for _, second := range []http.RoundTripper{dead, clienttest.Answering(clienttest.NotDialed)} {
		client := connect(t, baseURL, clienttest.Through(repeating{&http.Transport{}, second, failed}))
		assert.Equal(t, clienttest.Unknown, clienttest.Outcome(clienttest.Post(t.Context(), client)))
		assert.EqualValues(t, 1, requests.Swap(0))
		assert.Equal(t, clienttest.NoAnswer, clienttest.Outcome(clienttest.Get(t.Context(), client)))
		assert.EqualValues(t, 3, requests.Swap(0))
	}
}

// TestTransportThatRepeatsWhatWasAnswered, for instance with another token: that
// is its own affair, but its second try was sent too.
func TestTransportThatRepeatsWhatWasAnswered(t *testing.T) {
	refused := func(resp *http.Response, err error) bool { return err == nil && resp.StatusCode == 401 }
	for _, http2 := range []bool{false, true} {
		var requests atomic.Int32
		var broken atomic.Bool
		server, transport := serveTLS(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusUnauthorized)
			} else if broken.Load() {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, okBody)
		})
		client := connect(t, server.URL, clienttest.Through(repeating{transport, transport, refused}))
		assert.NoError(t, clienttest.Get(t.Context(), client))
		assert.NoError(t, clienttest.Post(t.Context(), client))
		broken.Store(true)
		assert.Equal(t, clienttest.Unknown, clienttest.Outcome(clienttest.Post(t.Context(), client)))
		assert.EqualValues(t, 6, requests.Load())
	}
}

// TestRestart: a service that goes away and comes back, under callers that do
// not stop, carries out each POST once at most, and the client knows which.
func TestRestart(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var (
			handled, succeeded, unknown, failed atomic.Int64
			target                              atomic.Pointer[string]
		)
		underWay := make(chan struct{})
		handler := func(w http.ResponseWriter, _ *http.Request) {
			if handled.Add(1) == 60 {
				close(underWay)
			}
			io.WriteString(w, okBody)
		}
		server, transport := serveTLS(t, http2, handler)
		point := func(address string) { target.Store(&address) }
		point(server.Listener.Addr().String())
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, *target.Load())
		}
		client := connect(t, "https://example.com", clienttest.Through(transport))
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				for range 30 {
					switch err := clienttest.Post(t.Context(), client); {
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
		<-underWay
		again, _ := serveTLS(t, http2, handler)
		point(again.Listener.Addr().String())
		server.CloseClientConnections()
		group.Wait()
		assert.EqualValues(t, 16*30, succeeded.Load()+unknown.Load()+failed.Load())
		assert.GreaterOrEqual(t, handled.Load(), succeeded.Load())
		assert.LessOrEqual(t, handled.Load(), succeeded.Load()+unknown.Load(), "no more than the client knows of")
	}
}
