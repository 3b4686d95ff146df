package agentmessaging_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// get and post call an idempotent endpoint and one that is not.
func get(ctx context.Context, client *agentmessaging.Client) error {
	_, err := client.GetAgent(ctx, "agent_1")
	return err
}

func post(ctx context.Context, client *agentmessaging.Client) error {
	_, err := client.SendMessage(ctx, "agent_1", agentmessaging.MessageParams{Text: "hello"})
	return err
}

func retryAfter(value string) http.Header { return http.Header{"Retry-After": {value}} }

const wantSuccess, wantError, wantUnknown = "success", "error", "outcome unknown"

func outcomeOf(t *testing.T, err error) string {
	t.Helper()
	var (
		failure *agentmessaging.Error
		unknown *agentmessaging.OutcomeUnknownError
	)
	switch {
	case err == nil:
		return wantSuccess
	case errors.As(err, &unknown):
		assert.ErrorIs(t, err, agentmessaging.ErrOutcomeUnknown)
		return wantUnknown
	}
	require.ErrorAs(t, err, &failure)
	return wantError
}

// TestRetryTable states each row of the package documentation's table once
// more, as what the service sees and the caller gets.
func TestRetryTable(t *testing.T) {
	const ok = `{"agent_id":"a","status":"active","reply_text":"hi","trace_id":"t"}`
	cutOff := func() io.Reader { return iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(ok))) }
	certificate := &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
	for _, tt := range []struct {
		name    string
		answer  answer
		gets    int
		getting string
		posts   int
		posting string
		status  int
		kind    error
	}{
		{name: "success", answer: answer{status: 200, body: ok}, gets: 1, getting: wantSuccess, posts: 1, posting: wantSuccess},
		{name: "201", answer: answer{status: 201, body: ok}, gets: 1, getting: wantSuccess, posts: 1, posting: wantSuccess},
		{name: "never sent", answer: answer{err: dialError}, gets: 3, getting: wantError, posts: 3, posting: wantError},
		{name: "answer lost", answer: answer{err: io.ErrUnexpectedEOF}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, kind: io.ErrUnexpectedEOF},
		{name: "cut off", answer: answer{status: 200, reader: cutOff}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200, kind: iotest.ErrTimeout},
		{name: "not JSON", answer: answer{status: 200, body: "<html>"}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "empty", answer: answer{status: 204}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 204},
		{name: "two documents", answer: answer{status: 200, body: ok + ok}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "array", answer: answer{status: 200, body: "[]"}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "other JSON", answer: answer{status: 200, body: `{"a":1}`}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "too large", answer: answer{status: 200, body: `{"pad":"` + strings.Repeat("x", 5<<20) + `",` + ok[1:]}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "endless spaces", answer: answer{status: 200, body: ok + strings.Repeat(" ", 4<<20)}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 200},
		{name: "429", answer: answer{status: 429}, gets: 3, getting: wantError, posts: 3, posting: wantError, status: 429, kind: agentmessaging.ErrRateLimited},
		{name: "502", answer: answer{status: 502}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 502, kind: agentmessaging.ErrServer},
		{name: "503", answer: answer{status: 503}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 503, kind: agentmessaging.ErrUnavailable},
		{name: "504", answer: answer{status: 504}, gets: 3, getting: wantError, posts: 1, posting: wantUnknown, status: 504, kind: agentmessaging.ErrServer},
		{name: "500", answer: answer{status: 500}, gets: 1, getting: wantError, posts: 1, posting: wantUnknown, status: 500, kind: agentmessaging.ErrServer},
		{name: "400", answer: answer{status: 400}, gets: 1, getting: wantError, posts: 1, posting: wantError, status: 400, kind: agentmessaging.ErrBadRequest},
		{name: "408", answer: answer{status: 408}, gets: 1, getting: wantError, posts: 1, posting: wantError, status: 408},
		{name: "redirect", answer: answer{status: 307, header: http.Header{"Location": {"/elsewhere"}}}, gets: 1, getting: wantError, posts: 1, posting: wantError, status: 307},
		{name: "broken redirect", answer: answer{status: 302, header: http.Header{"Location": {"https://a b/%zz"}}}, gets: 1, getting: wantError, posts: 1, posting: wantError, status: 302},
		{name: "certificate", answer: answer{err: certificate}, gets: 1, getting: wantError, posts: 1, posting: wantError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, do := range []struct {
					method  func(context.Context, *agentmessaging.Client) error
					want    string
					request int
				}{{get, tt.getting, tt.gets}, {post, tt.posting, tt.posts}} {
					transport := &stub{answers: []answer{tt.answer}}
					err := do.method(t.Context(), newClient(t, transport))
					assert.Equal(t, do.want, outcomeOf(t, err))
					assert.Len(t, transport.sent(), do.request)
					if tt.kind != nil {
						assert.ErrorIs(t, err, tt.kind)
					}
					var failure *agentmessaging.Error
					if errors.As(err, &failure) {
						assert.Equal(t, tt.status, failure.StatusCode)
						assert.Equal(t, do.request, failure.Attempts)
					}
				}
			})
		})
	}
}

func TestRetrySucceedsLater(t *testing.T) {
	const ok = `{"reply_text":"hi","trace_id":"t"}`
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{err: dialError}, {status: 429, header: retryAfter("7")}, {status: 200, body: ok}}}
		var info agentmessaging.CallInfo
		begin := time.Now()
		reply, err := newClient(t, transport).SendMessage(agentmessaging.WithCallInfo(t.Context(), &info), "agent_1", agentmessaging.MessageParams{Text: "hello"})
		require.NoError(t, err)
		assert.Equal(t, "hi", reply.Text)
		assert.Equal(t, 3, info.Attempts)
		assert.Equal(t, 200, info.StatusCode)
		assert.Equal(t, "t", info.TraceID)
		assert.Equal(t, time.Since(begin), info.Waited)
		for _, sent := range transport.sent() {
			assert.Equal(t, `{"text":"hello"}`, sent.body)
		}
	})
}

// TestWaits pins how long each kind of Retry-After makes a call wait.
func TestWaits(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:00 GMT"
	for _, tt := range []struct {
		value    string
		min, max time.Duration // of the single wait; max 0: the error comes at once
	}{
		{"", time.Second, 1350 * time.Millisecond},
		{"0", time.Second, 1350 * time.Millisecond},
		{"-5", time.Second, 1350 * time.Millisecond},
		{"NaN", time.Second, 1350 * time.Millisecond},
		{"soon", time.Second, 1350 * time.Millisecond},
		{"1", time.Second, 1350 * time.Millisecond},
		{"1.5", 1500 * time.Millisecond, 1900 * time.Millisecond},
		{"60", time.Minute, 66250 * time.Millisecond},
		{"90", 90 * time.Second, 90 * time.Second},
		{"91", 0, 0},
		{"72000", 0, 0},
		{"9223372037", 0, 0},
		{"1e309", 0, 0},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 37 * time.Second, 41 * time.Second},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 37 * time.Second, 41 * time.Second},
		{"Sun Nov  6 08:49:37 1994", 37 * time.Second, 41 * time.Second},
		{"Sun, 06 Nov 1994 08:48:37 GMT", time.Second, 1350 * time.Millisecond},
	} {
		for _, random := range []float64{0, 0.999999} {
			synctest.Test(t, func(t *testing.T) {
				header := http.Header{"Retry-After": {tt.value}, "Date": {date}}
				transport := &stub{answers: []answer{{status: 429, header: header}, {status: 200, body: `{"agent_id":"a"}`}}}
				client := newClient(t, transport, agentmessaging.WithRandom(func() float64 { return random }))
				begin := time.Now()
				err := get(t.Context(), client)
				waited := time.Since(begin)
				if tt.max == 0 {
					var failure *agentmessaging.Error
					require.ErrorAs(t, err, &failure, tt.value)
					assert.Greater(t, failure.RetryAfter, 90*time.Second)
					assert.Zero(t, waited, tt.value)
					return
				}
				require.NoError(t, err, tt.value)
				assert.GreaterOrEqual(t, waited, tt.min, tt.value)
				assert.LessOrEqual(t, waited, tt.max, tt.value)
				assert.Equal(t, random == 0 || tt.min == tt.max, waited == tt.min, "jitter only on top: %s", tt.value)
			})
		}
	}
}

func TestLongestOfSeveralRetryAfterCounts(t *testing.T) {
	for _, header := range []http.Header{
		{"Retry-After": {"1", "7200", "3"}}, {"Retry-After": {"7200", "1"}}, {"retry-after": {"7200"}},
	} {
		var failure *agentmessaging.Error
		require.ErrorAs(t, get(t.Context(), newClient(t, &stub{answers: []answer{{status: 429, header: header}}})), &failure)
		assert.Equal(t, 2*time.Hour, failure.RetryAfter)
	}
}

func TestBackoffDoublesUpToEightSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		observer := agentmessaging.ObserverFunc(func(ctx context.Context, e agentmessaging.Event) context.Context {
			if retry, ok := e.(agentmessaging.Retry); ok {
				waits = append(waits, retry.Wait)
			}
			return nil
		})
		client := newClient(t, &stub{answers: []answer{{status: 503}}}, agentmessaging.WithObserver(observer),
			agentmessaging.WithRandom(func() float64 { return 0 }),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 8}))
		require.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrUnavailable)
		assert.Equal(t, []time.Duration{
			500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second, 8 * time.Second,
		}, waits)
	})
}

func TestWaitNeverBeginsThatWouldPassTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			deadline time.Duration
			requests int
		}{{30 * time.Second, 1}, {29 * time.Second, 1}, {31 * time.Second, 2}} {
			transport := &stub{answers: []answer{{status: 429, header: retryAfter("30")}, {status: 200, body: `{"agent_id":"a"}`}}}
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			begin := time.Now()
			err := get(ctx, newClient(t, transport))
			cancel()
			assert.Len(t, transport.sent(), tt.requests)
			if tt.requests == 2 {
				assert.NoError(t, err)
				continue
			}
			var failure *agentmessaging.Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, 30*time.Second, failure.RetryAfter)
			assert.Zero(t, time.Since(begin))
		}
	})
}

func TestCancelDuringWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{status: 429, header: retryAfter("60"), body: `{"error":"rate_limited","trace_id":"t"}`}}}
		var info agentmessaging.CallInfo
		ctx, cancel := context.WithCancel(agentmessaging.WithCallInfo(t.Context(), &info))
		time.AfterFunc(5*time.Second, cancel)
		begin := time.Now()
		err := post(ctx, newClient(t, transport))
		assert.Equal(t, 5*time.Second, time.Since(begin))
		assert.Equal(t, 5*time.Second, info.Waited)
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, agentmessaging.ErrRateLimited)
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, "rate_limited", failure.Code)
		assert.Equal(t, "t", failure.TraceID)
		assert.Len(t, transport.sent(), 1)
	})
}

func TestDefaultTimeoutAppliesWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		transport := &stub{answers: []answer{{status: 200, body: `{"agent_id":"a"}`, before: func(r *http.Request) {
			deadline, ok := r.Context().Deadline()
			require.True(t, ok)
			left = time.Until(deadline)
		}}}}
		require.NoError(t, get(t.Context(), newClient(t, transport)))
		assert.Equal(t, 5*time.Minute, left)
		require.NoError(t, get(t.Context(), newClient(t, transport, agentmessaging.WithTimeout(time.Second))))
		assert.Equal(t, time.Second, left)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, get(ctx, newClient(t, transport, agentmessaging.WithTimeout(time.Second))))
		assert.Equal(t, time.Hour, left, "the context's own deadline rules")
	})
}

func TestStalledErrorBodyDoesNotHoldUpTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, end := io.Pipe()
		go end.Write([]byte(`{"error":"unauth`))
		transport := &stub{answers: []answer{{status: 401}}}
		hc := &http.Client{Transport: closing{transport, body}}
		client, err := agentmessaging.NewClient(testURL, testKey, agentmessaging.WithHTTPClient(hc))
		require.NoError(t, err)
		begin := time.Now()
		assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrUnauthorized)
		assert.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// closing breaks a response body off when the attempt ends, as a connection does.
type closing struct {
	http.RoundTripper
	pipe *io.PipeReader
}

func (c closing) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = c.pipe
		context.AfterFunc(req.Context(), func() { c.pipe.CloseWithError(context.Canceled) })
	}
	return resp, err
}

func TestHugePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{status: 503, header: retryAfter("3600")}, {status: 200, body: `{"agent_id":"a"}`}}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		assert.NoError(t, get(ctx, newClient(t, transport, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: math.MaxInt64}))))
		assert.Error(t, get(ctx, newClient(t, &stub{answers: []answer{{status: 503}}},
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: math.MaxInt64, MaxWait: math.MaxInt64}))))
	})
}

// TestCauseOfTheContext: both the reason that was given and the context's own
// error stay reachable, whichever the transport returned.
func TestCauseOfTheContext(t *testing.T) {
	reason := errors.New("the user left")
	for _, do := range []func(context.Context, *agentmessaging.Client) error{get, post} {
		for _, returned := range []error{reason, context.Canceled, io.ErrClosedPipe} {
			ctx, cancel := context.WithCancelCause(t.Context())
			transport := &stub{answers: []answer{{err: returned, before: func(*http.Request) { cancel(reason) }}}}
			err := do(ctx, newClient(t, transport))
			assert.ErrorIs(t, err, reason)
			assert.ErrorIs(t, err, context.Canceled)
			assert.ErrorIs(t, err, returned)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(reason)
		err := do(ctx, newClient(t, &stub{}))
		assert.ErrorIs(t, err, reason)
		assert.ErrorIs(t, err, context.Canceled)
	}
}
