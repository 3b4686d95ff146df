package agentmessaging_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// TestWithSharesTheCoolDown and the transport, and nothing that it changes.
func TestWithSharesTheCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: "k"}
		batch := newClient(t, service, jitterOf(0), agentmessaging.WithUserAgent("shop/1"))
		handler, err := batch.With(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Second}))
		require.NoError(t, err)
		alone, err := batch.With(agentmessaging.WithoutCoolDown())
		require.NoError(t, err)
		service.close(20*time.Second, agentPath)
		wantRefused(t, handler, false, get)
		wantRefused(t, alone, false, get)
		begin := time.Now()
		assert.ErrorIs(t, get(t.Context(), handler), agentmessaging.ErrRateLimited)
		assert.Zero(t, time.Since(begin))
		require.NoError(t, get(t.Context(), batch))
		assert.Equal(t, 20*time.Second, time.Since(begin))
	})
}

func TestWithKeepsKeyAndConnections(t *testing.T) {
	first, second := &stub{answers: []answer{{status: 200, body: anyReply}}}, &stub{answers: []answer{{status: 200, body: anyReply}}}
	client := newClient(t, first, agentmessaging.WithUserAgent("shop/1"))
	other, err := client.With(agentmessaging.WithUserAgent("batch/2"), agentmessaging.WithTimeout(time.Hour))
	require.NoError(t, err)
	elsewhere, err := client.With(agentmessaging.WithHTTPClient(&http.Client{Transport: second}))
	require.NoError(t, err)
	for _, c := range []*agentmessaging.Client{client, other, elsewhere} {
		require.NoError(t, get(t.Context(), c))
	}
	require.Len(t, first.sent(), 2)
	require.Len(t, second.sent(), 1)
	assert.Equal(t, "Bearer "+testKey, first.sent()[1].Header.Get("Authorization"))
	assert.Regexp(t, "^shop/1 ", first.sent()[0].UserAgent())
	assert.Regexp(t, "^batch/2 shop/1 ", first.sent()[1].UserAgent())
	assert.Regexp(t, "^shop/1 ", second.sent()[0].UserAgent())

	_, err = client.With(nil)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	_, err = new(agentmessaging.Client).With()
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
}

// TestWithAddsObservers to a client that keeps its own.
func TestWithAddsObservers(t *testing.T) {
	var told [3]int
	observer := func(i int) agentmessaging.Option {
		return agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context {
			told[i]++
			return nil
		}))
	}
	client := newClient(t, &stub{answers: []answer{{status: 200, body: anyReply}}}, observer(0))
	for i := range 2 {
		other, err := client.With(observer(1 + i))
		require.NoError(t, err)
		require.NoError(t, get(t.Context(), other))
	}
	assert.Equal(t, [3]int{10, 5, 5}, told)
}

// TestTimeoutCountsAttemptsAndPauses, of however many attempts.
func TestTimeoutCountsAttemptsAndPauses(t *testing.T) {
	for name, opts := range map[string][]agentmessaging.Option{
		"real":    nil,
		"skipped": {agentmessaging.WithClock(&stopped{})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := answer{status: 503, before: func(*http.Request) { time.Sleep(3 * time.Second) }, header: retryAfter("4")}
				transport := &stub{answers: []answer{slow}}
				client := newClient(t, transport, append(opts, jitterOf(0), agentmessaging.WithTimeout(15*time.Second),
					agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 9}))...)
				assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrUnavailable)
				assert.Len(t, transport.sent(), 3, "twice 3 and 4 leave 1 s, which an attempt may use up")
			})
		})
	}
}

// TestTimeoutEndsAnAttempt and is the error, as a deadline of the caller's is.
func TestTimeoutEndsAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := answer{err: dialError, before: func(req *http.Request) { <-req.Context().Done() }}
		for _, do := range []func(context.Context, *agentmessaging.Client) error{get, post} {
			transport := &stub{answers: []answer{hang}}
			begin := time.Now()
			err := do(t.Context(), newClient(t, transport, agentmessaging.WithTimeout(7*time.Second)))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, 7*time.Second, time.Since(begin))
			assert.Len(t, transport.sent(), 1)
		}
	})
}

// TestLimiterWaitIsNoPartOfTheTimeout: a minute for each of three attempts.
func TestLimiterWaitIsNoPartOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &slowLimiter{}
		transport := &stub{answers: []answer{{err: dialError}, {err: dialError}, {status: 200, body: anyReply}}}
		client := newClient(t, transport, agentmessaging.WithLimiter(limiter), agentmessaging.WithTimeout(10*time.Second))
		var info agentmessaging.CallInfo
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Len(t, transport.sent(), 3)
		assert.Greater(t, info.Waited, 3*time.Minute)
		assert.Equal(t, []bool{false, false, false}, limiter.deadlines)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, get(ctx, client))
		assert.True(t, limiter.deadlines[3], "the caller's own")
	})
}

// TestLimiterIsAskedAfterTheCoolDown, and the cool-down again where the limiter
// made the call wait; its permit goes back if that refuses.
func TestLimiterIsAskedAfterTheCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, limiter := &gateway{key: "k"}, &slowLimiter{}
		client := newClient(t, service, jitterOf(0), agentmessaging.WithLimiter(limiter), once)
		service.close(90*time.Second, agentPath)
		go func() {
			assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited)
		}()
		time.Sleep(10 * time.Second)
		begin := time.Now()
		var info agentmessaging.CallInfo
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Equal(t, 80*time.Second, time.Since(begin), "to the end of the cool-down, not only of the limiter's minute")
		assert.Equal(t, time.Since(begin), info.Waited)

		service.close(time.Hour, agentPath)
		wantRefused(t, client, false, get)
		asked := len(limiter.asked)
		wantRefused(t, client, true, get)
		assert.Len(t, limiter.asked, asked, "the cool-down refuses first")
	})
}

// reporting is a limiter with a cool-down, whose permits report.
type reporting struct{ limiterStub }

func (*reporting) CoolsDown() bool                 { return true }
func (*reporting) Waited() (string, time.Duration) { return "key_minute", time.Minute }
func (*reporting) Closed() (string, time.Duration) { return "key_day", time.Hour }
func (l *reporting) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	_, err := l.limiterStub.Acquire(ctx, attempt)
	return l, err
}

// TestPermitReporterIsBelieved, without a clock and without a cool-down of the
// client's own.
func TestPermitReporterIsBelieved(t *testing.T) {
	limiter, service := &reporting{}, &gateway{}
	service.close(time.Hour, agentPath)
	_, events := eventsOf(func(observer agentmessaging.Option) {
		client := newClient(t, service, agentmessaging.WithLimiter(limiter), observer)
		for range 2 {
			wantRefused(t, client, false, get)
		}
	})
	endpoint := agentmessaging.Endpoint{Name: "GetAgent", Method: "GET", Path: "/v1/agents/{agent_id}"}
	assert.Equal(t, agentmessaging.LimiterWait{Call: 1, AgentID: "agent_1", Endpoint: endpoint, Attempt: 1, LimitKey: "key_minute", Wait: time.Minute}, events[2])
	assert.Equal(t, agentmessaging.CoolDown{Call: 1, AgentID: "agent_1", Endpoint: endpoint, LimitKey: "key_day", Wait: time.Hour}, events[4])
}

// TestWithoutCoolDownARefusalThatTellsNothing is waited out for a second.
func TestWithoutCoolDownARefusalThatTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &stub{answers: []answer{{status: 429}, {status: 200, body: anyReply}}}
		begin := time.Now()
		require.NoError(t, get(t.Context(), newClient(t, transport, jitterOf(0), agentmessaging.WithoutCoolDown())))
		assert.Equal(t, time.Second, time.Since(begin))
	})
}
