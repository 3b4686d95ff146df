package e2e_test

import (
	"bytes"
	"errors"
	"io"
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
	const calls, callers, each = 480, 8, 60
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
					assert.LessOrEqual(t, info.Attempts, attempts+2, "attempts, of %d allowed", attempts)
					assert.Less(t, info.Waited, time.Hour, "a wait before the renewal")
				}
			})
		}
		group.Wait()
		assert.EqualValues(t, calls, handled.Load(), "none was carried out twice")
	}
}

// TestRenewals: what a connection that had worked turns away is sent again at
// once, twice at most, and not where the next connection, or the service, never
// answered; a POST only after a GOAWAY. A spare connection that net/http may have
// dialed for a GET counts as an old one: TestRecycledConnections has both.
func TestRenewals(t *testing.T) {
	for _, tt := range []struct {
		do       clienttest.Do
		answers  int32 // the service answers so many requests, and turns the others away
		away     act
		requests []int32 // of three calls that try once
		unknown  bool
	}{
		{clienttest.Post, 1, goAwayBelow(noError), []int32{1, 2, 1}, false},
		{clienttest.Post, 0, goAwayBelow(noError), []int32{1, 1, 1}, false},
		{clienttest.Post, 1, reset(refusedStream), []int32{1, 1, 1}, true},
		{clienttest.Get, 1, reset(refusedStream), []int32{1, 3, 3}, false},
		{clienttest.Get, 0, reset(refusedStream), []int32{1, 1, 1}, false},
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
				err := tt.do(agentmessaging.WithCallInfo(t.Context(), &info), client)
				assert.Equal(t, before < tt.answers, err == nil, "call %d: %v", call+1, err)
				assert.Equal(t, tt.unknown && err != nil, errors.Is(err, agentmessaging.ErrOutcomeUnknown), "call %d: %v", call+1, err)
				assert.Equal(t, want, requests.Load()-before, "requests of call %d", call+1)
				assert.EqualValues(t, want, info.Attempts)
				client, err = client.With() // which knows that the service has answered
				assert.NoError(t, err)
			}
		})
	}
}

// TestRenewalsCostNoAttempt: after two of them and a 429, a call that may try twice
// still does.
func TestRenewalsCostNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, acts := new(atomic.Int32), []act{
			answer(200, okBody), reset(refusedStream), reset(refusedStream), answer(429, "{}"), answer(200, okBody),
		}
		next := func(h *http2Peer) error { return acts[requests.Load()-1](h) }
		policy := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 2})
		client := clienttest.New(t, dialsTo(t, requests, overPipe, overHTTP2(forever(request, next))), policy)
		var info agentmessaging.CallInfo
		for range 2 {
			assert.NoError(t, clienttest.Get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		}
		assert.Equal(t, []int{4, 2}, []int{info.Attempts, info.Renewals}, "attempts, of them renewals")
	})
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
		assert.EqualValues(t, 8, requests.Load(), "requests")
	})
}

// renewing is a transport of the caller's that sends again what was answered with
// 401, for instance with another token.
type renewing struct{ http.RoundTripper }

func (r renewing) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	for {
		again := req.Clone(req.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := r.RoundTripper.RoundTrip(again)
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			return resp, err
		}
		resp.Body.Close()
	}
}

// TestTransportThatRepeats what was answered: that is its own affair, but what it
// sends then was sent too.
func TestTransportThatRepeats(t *testing.T) {
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
		client := connect(t, server.URL, clienttest.Through(renewing{transport}))
		assert.NoError(t, clienttest.Get(t.Context(), client))
		assert.NoError(t, clienttest.Post(t.Context(), client))
		broken.Store(true)
		assert.Equal(t, clienttest.Unknown, clienttest.Outcome(clienttest.Post(t.Context(), client)), "HTTP/2 %v", http2)
		assert.EqualValues(t, 6, requests.Load(), "requests over HTTP/2 %v", http2)
	}
}
