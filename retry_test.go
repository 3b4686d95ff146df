package agentmessaging_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// TestRetrySucceedsLater: each attempt sends the whole body, after a wait that
// grows with the jitter.
func TestRetrySucceedsLater(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 7500 * time.Millisecond, 0.5: (500 + 125 + 7000 + 475) * time.Millisecond} {
		made := makeCall(t, post, []answer{notDialed, tooMany("7", ""), okAnswer}, jitter(random))
		require.NoError(t, made.Err, "jitter %v", random)
		assert.Equal(t, 3, made.Info.Attempts, "jitter %v", random)
		assert.Equal(t, want, made.Elapsed, "jitter %v", random)
		assert.Equal(t, want, made.Info.Waited, "jitter %v", random)
		for _, sent := range made.Sent {
			assert.Equal(t, `{"text":"message-canary"}`, sent.Text)
		}
	}
}

// TestPolicyOfExtremes is meant as it says.
func TestPolicyOfExtremes(t *testing.T) {
	for _, policy := range []agentmessaging.RetryPolicy{
		{MaxAttempts: math.MaxInt, MinWait: 1}, {MaxAttempts: 3, MinWait: 90 * time.Second}, {MaxWait: math.MaxInt64}, {MaxWait: time.Millisecond},
	} {
		made := makeCall(t, get, []answer{notDialed, notDialed, okAnswer}, agentmessaging.WithRetry(policy))
		assert.NoError(t, made.Err, "%+v", policy)
	}
	once := makeCall(t, get, []answer{notDialed}, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1, MinWait: time.Hour}))
	assert.Len(t, once.Sent, 1)
}

// TestLeastWaitAfterARefusal is a second where the service does not say how long.
func TestLeastWaitAfterARefusal(t *testing.T) {
	made := makeCall(t, get, []answer{tooMany("", ""), okAnswer}, jitter(0), agentmessaging.WithoutCoolDown())
	require.NoError(t, made.Err)
	assert.Equal(t, time.Second, made.Elapsed)
}

// TestWaitThatWouldPassTheDeadline, or the longest wait of the policy, is not begun. The
// waits after a 429 are those of internal/quota.
func TestWaitThatWouldPassTheDeadline(t *testing.T) {
	busy := answer{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"30"}}}
	for _, tt := range []struct {
		deadline, maxWait time.Duration
		waits             bool
	}{
		{30 * time.Second, time.Minute, false},
		{31 * time.Second, time.Minute, true},
		{time.Hour, 29 * time.Second, false},
		{time.Hour, 30 * time.Second, true},
	} {
		within := func(ctx context.Context, client *agentmessaging.Client) error {
			ctx, cancel := context.WithTimeout(ctx, tt.deadline)
			defer cancel()
			return get(ctx, client)
		}
		made := makeCall(t, within, []answer{busy, okAnswer}, jitter(0.999),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: tt.maxWait}))
		assert.Equal(t, tt.waits, made.Err == nil, "%+v: %v", tt, made.Err)
		assert.Equal(t, tt.waits, made.Elapsed > 0, "%+v", tt)
		asked, _ := agentmessaging.RetryAfter(made.Err)
		assert.Equal(t, !tt.waits, asked == 30*time.Second, "%+v", tt)
	}
	made := makeCall(t, get, []answer{busy, okAnswer}, agentmessaging.WithTimeout(30*time.Second))
	assert.Error(t, made.Err)
	assert.Zero(t, made.Elapsed, "a wait that would use up WithTimeout")
}

func TestDefaultTimeoutAppliesWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left time.Duration
		see := okAnswer
		see.Before = func(r *http.Request) {
			deadline, ok := r.Context().Deadline()
			require.True(t, ok)
			left = time.Until(deadline)
		}
		hour, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		second := options{agentmessaging.WithTimeout(time.Second)}
		for _, tt := range []struct {
			name string
			ctx  context.Context
			opts options
			want time.Duration
		}{
			{"neither", t.Context(), nil, 5 * time.Minute},
			{"WithTimeout", t.Context(), second, time.Second},
			{"WithTimeout and a deadline", hour, second, time.Hour},
		} {
			require.NoError(t, get(tt.ctx, newClient(t, answering(see), tt.opts...)), tt.name)
			assert.Equal(t, tt.want, left, tt.name)
		}
	})
}

// TestTimeoutCountsAttemptsAndPauses, however many attempts there are, and
// whether the clock waits or skips.
func TestTimeoutCountsAttemptsAndPauses(t *testing.T) {
	for name, clock := range map[string]agentmessaging.Option{
		"real": jitter(0), "skipped": agentmessaging.WithClock(stopped{}),
	} {
		slow := answer{Status: 503, Before: func(*http.Request) { time.Sleep(3 * time.Second) }, Header: http.Header{"Retry-After": {"4"}}}
		made := makeCall(t, get, []answer{slow}, clock, agentmessaging.WithTimeout(15*time.Second),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 9}))
		assert.ErrorIs(t, made.Err, agentmessaging.ErrUnavailable, name)
		assert.Len(t, made.Sent, 3, "%s: twice 3 and 4 leave 1 s, which an attempt may use up", name)
	}
}

// TestTimeoutOfTheHTTPClientBoundsOneAttempt, WithTimeout the call; the error is
// that of a deadline, and says which it was.
func TestTimeoutOfTheHTTPClientBoundsOneAttempt(t *testing.T) {
	hang := answer{Before: func(req *http.Request) { <-req.Context().Done() }, Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		attempt, call time.Duration
		requests      int
		elapsed       time.Duration
		says          string
	}{
		{10 * time.Second, time.Hour, 3, 31500 * time.Millisecond, "the Timeout of the http.Client allows 10s (3 attempts)"},
		{0, 7 * time.Second, 1, 7 * time.Second, "WithTimeout allows 7s"},
		{10 * time.Second, 7 * time.Second, 1, 7 * time.Second, "WithTimeout allows 7s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			transport := answering(hang)
			client := clientAt(t, serviceURL, jitter(0), agentmessaging.WithTimeout(tt.call),
				agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Timeout: tt.attempt}))
			begin := time.Now()
			err := get(t.Context(), client)
			assert.Equal(t, tt.elapsed, time.Since(begin), "%+v", tt)
			assert.Len(t, transport.Sent(), tt.requests, "%+v", tt)
			assert.ErrorIs(t, err, context.DeadlineExceeded, "%+v", tt)
			assert.EqualError(t, err, "agentmessaging: GET /v1/agents/{agent_id}: context deadline exceeded: "+tt.says)
		})
	}
}

// TestDeadlineOfOneAttempt that an observer sets costs the call what the attempt
// really took.
func TestDeadlineOfOneAttempt(t *testing.T) {
	short := agentmessaging.ObserverFunc(func(ctx context.Context, event agentmessaging.Event) context.Context {
		if _, ok := event.(agentmessaging.RequestStart); ok {
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			t.Cleanup(cancel)
			return ctx
		}
		return nil
	})
	slow := answer{Status: 503, Before: func(*http.Request) { time.Sleep(time.Second) }}
	made := makeCall(t, get, []answer{slow, slow, okAnswer}, agentmessaging.WithObserver(short), agentmessaging.WithTimeout(10*time.Second))
	assert.NoError(t, made.Err)
	assert.Equal(t, 3500*time.Millisecond, made.Elapsed)
}

func TestRetryAfterOfAnError(t *testing.T) {
	for err, want := range map[error]time.Duration{
		nil: 0, io.EOF: 0,
		&agentmessaging.Error{}:                                                        0,
		&agentmessaging.Error{RetryAfter: 3 * time.Second}:                             3 * time.Second,
		&agentmessaging.ValidationError{}:                                              0,
		fmt.Errorf("x: %w", &agentmessaging.Error{RetryAfter: 1}):                      1,
		&agentmessaging.OutcomeUnknownError{Err: &agentmessaging.Error{RetryAfter: 2}}: 2,
	} {
		wait, ok := agentmessaging.RetryAfter(err)
		assert.Equal(t, want, wait, "%#v", err)
		assert.Equal(t, want > 0, ok, "%#v", err)
	}
}

// TestOutageSpendsLittle: of 300 calls at once that meet 502, few are repeated, and the
// error says why not: ten, and one for each five calls that have succeeded. A caller on
// its own retries as ever; siblings share the budget.
func TestOutageSpendsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests, withheld atomic.Int32
		service := answering(append(slices.Repeat([]answer{okAnswer}, 100), answer{Status: http.StatusBadGateway})...)
		client := newClient(t, tripper(func(req *http.Request) (*http.Response, error) {
			requests.Add(1)
			return service.RoundTrip(req)
		}), jitter(0))
		sibling, err := client.With(agentmessaging.WithTimeout(time.Minute))
		require.NoError(t, err)
		for range 100 {
			require.NoError(t, get(t.Context(), client))
		}
		requests.Store(0)
		var group sync.WaitGroup
		for i := range 300 {
			group.Go(func() {
				err := get(t.Context(), []*agentmessaging.Client{client, sibling}[i%2])
				if strings.Contains(err.Error(), "not retried, since too many calls fail") {
					withheld.Add(1)
				}
			})
		}
		group.Wait()
		assert.GreaterOrEqual(t, requests.Load(), int32(300+10+20))
		assert.Less(t, requests.Load(), int32(300+10+20+5), "two a second come back")
		assert.Greater(t, withheld.Load(), int32(265))
		time.Sleep(5 * time.Second)
		for range 20 {
			requests.Store(0)
			_ = get(t.Context(), client)
			assert.EqualValues(t, 3, requests.Load(), "of a lone caller")
		}
	})
}
