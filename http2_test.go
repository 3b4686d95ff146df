package agentmessaging_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
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
			io.WriteString(w, anyReply)
		})
		policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Hour, MaxWait: 2 * time.Hour}
		client := connect(t, server.URL, through(transport), agentmessaging.WithRetry(policy))
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				do := []doCall{get, post}[caller%2]
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
		do       doCall
		answers  int32 // the service answers so many requests, and turns the others away
		away     act
		requests []int32 // of three calls that try once
		unknown  bool
	}{
		{post, 1, goAwayBelow(noError), []int32{1, 2, 1}, false},
		{post, 0, goAwayBelow(noError), []int32{1, 1, 1}, false},
		{post, 1, reset(refusedStream), []int32{1, 1, 1}, true},
		{get, 1, reset(refusedStream), []int32{1, 3, 3}, false},
		{get, 0, reset(refusedStream), []int32{1, 1, 1}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			requests := new(atomic.Int32)
			answerOrNot := func(h *http2Peer) error {
				if requests.Load() <= tt.answers {
					return reply(200, anyReply)(h)
				}
				return tt.away(h)
			}
			client := newClient(t, dialsTo(t, requests, overPipe, overHTTP2(forever(request, answerOrNot))), once)
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

// TestRenewalsCostNoAttempt: after two of them and a 502, a call that may try twice
// still does.
func TestRenewalsCostNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests, acts := new(atomic.Int32), []act{
			reply(200, anyReply), reset(refusedStream), reset(refusedStream), reply(502, "{}"), reply(200, anyReply),
		}
		next := func(h *http2Peer) error { return acts[requests.Load()-1](h) }
		policy := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 2})
		client := newClient(t, dialsTo(t, requests, overPipe, overHTTP2(forever(request, next))), policy)
		var info agentmessaging.CallInfo
		for range 2 {
			assert.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		}
		assert.Equal(t, []int{4, 2}, []int{info.Attempts, info.Renewals}, "attempts, of them renewals")
	})
}

// TestBurst: a service that allows few streams refuses none of many first calls,
// and is not dialed for each of them.
func TestBurst(t *testing.T) {
	const work, callers = 100 * time.Millisecond, 50
	for _, tt := range []struct {
		streams, connections int
		within               time.Duration
	}{{1, callers, 50 * work}, {4, 25, 25 * work}, {10, 15, 15 * work}, {100, 1, 2 * work}} {
		for _, do := range []doCall{post, get} {
			synctest.Test(t, func(t *testing.T) {
				var dials atomic.Int32
				serve := overHTTP2With(setting(settingStreams, uint32(tt.streams)), allowing(int32(tt.streams), work))
				transport := dialsTo(t, new(atomic.Int32), overPipe, func(p peer) error {
					dials.Add(1)
					return serve(p)
				})
				client := newClient(t, transport, once)
				begin := time.Now()
				var group sync.WaitGroup
				for range callers {
					group.Go(func() { assert.NoError(t, do(t.Context(), client), "%d streams", tt.streams) })
				}
				group.Wait()
				assert.LessOrEqual(t, time.Since(begin), tt.within, "%d streams", tt.streams)
				assert.LessOrEqual(t, int(dials.Load()), tt.connections, "connections for %d streams", tt.streams)
			})
		}
	}
}

// TestBodyIsReadToItsEnd, also where that comes in a frame of its own after the
// announced length. A stream that is closed before counts as abuse with some services.
func TestBodyIsReadToItsEnd(t *testing.T) {
	for _, code := range []int{200, 404} {
		synctest.Test(t, func(t *testing.T) {
			resets := new(atomic.Int32)
			last := func(h *http2Peer) error {
				synctest.Wait() // until the client has read what has come
				return h.write(frameData, flagEndStream, h.stream, nil)
			}
			serve := func(p peer) error {
				return overHTTP2(func(h *http2Peer) error {
					h.resets = resets
					return forever(request, status(code, "content-length", strconv.Itoa(len(anyReply))), body(anyReply, 0), last)(h)
				})(p)
			}
			client := newClient(t, dialsTo(t, new(atomic.Int32), overPipe, serve), once)
			for range 3 {
				assert.Equal(t, code == 200, get(t.Context(), client) == nil)
			}
			synctest.Wait()
			assert.Zero(t, resets.Load(), "RST_STREAM after %d", code)
		})
	}
}

// TestFirstAnswerTakesLong: the others wait for it for 2 s, within their contexts,
// and a POST that has waited in vain was not sent.
func TestFirstAnswerTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := new(atomic.Int32)
		client := newClient(t, dialsTo(t, requests, overPipe, overHTTP2(forever(request))), once)
		var group sync.WaitGroup
		for _, tt := range []struct {
			deadline time.Duration
			want     string
		}{{time.Minute, unknown}, {1900 * time.Millisecond, noAnswer}, {2100 * time.Millisecond, unknown}} {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				assert.Equal(t, tt.want, outcome(post(ctx, client)), tt.deadline)
			})
			synctest.Wait()
		}
		group.Wait()
		assert.EqualValues(t, 2, requests.Load(), "requests")
	})
}

// TestFirstAnswerDoesNotCome: another call is the first then, and has not lost the
// connection.
func TestFirstAnswerDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve := overHTTP2(request, forever(request, reply(200, anyReply)))
		client := newClient(t, dialsTo(t, new(atomic.Int32), overPipe, serve), once)
		begin := time.Now()
		var group sync.WaitGroup
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			assert.Error(t, post(ctx, client))
		})
		synctest.Wait()
		assert.NoError(t, post(t.Context(), client))
		assert.Equal(t, time.Second, time.Since(begin))
		group.Wait()
	})
}

// TestFailingDials: callers take turns only where they may share a connection.
func TestFailingDials(t *testing.T) {
	const callers = 20
	for takes, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Second, 10 * time.Second: 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				time.Sleep(takes)
				return nil, io.ErrUnexpectedEOF
			}}
			client := newClient(t, transport, once)
			begin := time.Now()
			var group sync.WaitGroup
			for range callers {
				group.Go(func() { assert.Error(t, get(t.Context(), client)) })
			}
			group.Wait()
			assert.Equal(t, want, time.Since(begin), "dials that take %v", takes)
		})
	}
}

// TestSlowCalls do not count as a sign of a stalled connection while others on it
// are answered.
func TestSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials, requests atomic.Int32
		client := newClient(t, dialsTo(t, &requests, overPipe, func(p peer) error {
			dials.Add(1)
			return overHTTP2(forever(request, request, request, reply(200, anyReply)))(p)
		}), once)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			var group sync.WaitGroup
			for range 2 {
				group.Go(func() { assert.Error(t, post(ctx, client)) })
			}
			time.Sleep(3 * time.Second)
			assert.NoError(t, post(t.Context(), client))
			group.Wait()
			cancel()
		}
		assert.EqualValues(t, 1, dials.Load(), "connections")
	})
}

// TestStalledConnection: when two calls have ended without a byte, the next ones
// go to a new connection. The old one is closed when its last answer has come.
func TestStalledConnection(t *testing.T) {
	for _, wrap := range []func(http.RoundTripper) http.RoundTripper{
		func(t http.RoundTripper) http.RoundTripper { return t },
		func(t http.RoundTripper) http.RoundTripper {
			return tripper(func(req *http.Request) (*http.Response, error) { return t.RoundTrip(req.Clone(req.Context())) })
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var dials, requests atomic.Int32
			drained := make(chan bool)
			recovered := make(chan bool)
			slow := func(h *http2Peer) error { // answers its first request when it has recovered
				if err := inTurn(request, request, request)(h); err != nil {
					return err
				}
				<-recovered
				h.stream = 1
				defer close(drained)
				return inTurn(reply(200, anyReply), stay)(h)
			}
			client := newClient(t, wrap(dialsTo(t, &requests, overPipe, func(p peer) error {
				if dials.Add(1) == 1 {
					return overHTTP2(slow)(p)
				}
				return overHTTP2(forever(request, reply(200, anyReply)))(p)
			})), once)
			var patient sync.WaitGroup
			patient.Go(func() { assert.NoError(t, post(t.Context(), client)) })
			synctest.Wait()
			for call := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				err := post(ctx, client)
				cancel()
				assert.Equal(t, call >= 2, err == nil, "call %d: %v", call+1, err)
			}
			assert.EqualValues(t, 2, dials.Load(), "connections")
			close(recovered)
			patient.Wait()
			<-drained
		})
	}
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
			io.WriteString(w, anyReply)
		})
		client := connect(t, server.URL, through(renewing{transport}))
		assert.NoError(t, get(t.Context(), client))
		assert.NoError(t, post(t.Context(), client))
		broken.Store(true)
		assert.Equal(t, unknown, outcome(post(t.Context(), client)), "HTTP/2 %v", http2)
		assert.EqualValues(t, 6, requests.Load(), "requests over HTTP/2 %v", http2)
	}
}
