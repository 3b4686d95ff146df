package agentmessaging_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// limiterStub records what it is told, after a wait, and refuses if it has a
// refusal.
type limiterStub struct {
	wait      time.Duration
	refusal   error
	mu        sync.Mutex
	asked     []agentmessaging.LimitedAttempt
	done      []agentmessaging.AttemptOutcome
	deadlines []bool // whether ctx had one
}

func (l *limiterStub) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	time.Sleep(l.wait)
	_, has := ctx.Deadline()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked, l.deadlines = append(l.asked, attempt), append(l.deadlines, has)
	if l.refusal != nil {
		return nil, l.refusal
	}
	return l, nil
}

func (l *limiterStub) Done(outcome agentmessaging.AttemptOutcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, outcome)
}

func TestLimiterIsAskedForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{}
		transport := answering(clienttest.NotDialed, clienttest.Limited("3", "key_minute"), clienttest.OK)
		_, err := newClient(t, transport, agentmessaging.WithLimiter(limiter)).CreateAgent(t.Context(), create{
			LLM: llm{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"},
		})
		require.NoError(t, err)
		attempt := agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents", Number: 1, SetsBYOK: true, MaxWait: 90 * time.Second}
		second, third := attempt, attempt
		second.Number, third.Number = 2, 3
		assert.Equal(t, []agentmessaging.LimitedAttempt{attempt, second, third}, limiter.asked)
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{},
			{StatusCode: 429, Sent: true, LimitKey: "key_minute", RetryAfter: 3 * time.Second},
			{StatusCode: 200, Sent: true},
		}, limiter.done)
	})
}

// TestLimiterIsToldWhatSetsBYOK: SetBYOK, and CreateAgent with a key only.
func TestLimiterIsToldWhatSetsBYOK(t *testing.T) {
	limiter := &limiterStub{}
	client := newClient(t, answering(clienttest.OK), agentmessaging.WithLimiter(limiter))
	for i, call := range clienttest.Calls {
		require.NoError(t, call.Do(t.Context(), client), call.Name)
		assert.Equal(t, call.Name == "SetBYOK", limiter.asked[i].SetsBYOK, call.Name)
	}
}

// TestLimiterRefusalIsLocal: observers hear of no request, and where an argument
// is refused, of nothing.
func TestLimiterRefusalIsLocal(t *testing.T) {
	limiter := &limiterStub{refusal: &agentmessaging.Error{StatusCode: 429, Code: "rate_limited", LimitKey: "key_day", RetryAfter: time.Hour}}
	types, events := eventsOf(func(observer agentmessaging.Option) {
		made := clienttest.Make(t, post, nil, agentmessaging.WithLimiter(limiter), observer)
		assert.ErrorIs(t, made.Err, agentmessaging.ErrRateLimited)
		assert.EqualError(t, made.Err, "agentmessaging: POST /v1/agents/{agent_id}/messages: 429 rate_limited: the next attempt is due in 1h0m0s,"+
			" later than the RetryPolicy waits (1m30s) (refused here by the limiter, limit key_day, retry after 1h0m0s)")
		assert.Zero(t, made.Info)
		assert.Empty(t, made.Sent)
		assert.Empty(t, limiter.done)
		require.ErrorIs(t, sending(message{})(t.Context(), newClient(t, answering(), observer)), agentmessaging.ErrInvalid)
	})
	require.Equal(t, "CallStart AttemptStart AttemptEnd CallEnd ", types)
	assert.Error(t, events[2].(agentmessaging.AttemptEnd).Err)
}

// TestLimiterWaitIsNoPartOfTheTimeout, neither of the call's nor of the
// attempt's: here a minute for each of three attempts.
func TestLimiterWaitIsNoPartOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{wait: time.Minute}
		transport := answering(clienttest.NotDialed, clienttest.NotDialed, clienttest.OK)
		client := clienttest.At(t, clienttest.URL, agentmessaging.WithLimiter(limiter), agentmessaging.WithTimeout(10*time.Second),
			agentmessaging.WithHTTPClient(&http.Client{Transport: transport, Timeout: time.Second}))
		var info agentmessaging.CallInfo
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Len(t, transport.Sent(), 3)
		assert.Greater(t, info.Waited, 3*time.Minute)
		assert.Equal(t, []bool{false, false, false}, limiter.deadlines)

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, get(ctx, client))
		assert.True(t, limiter.deadlines[3], "the caller's own")
	})
}

// TestADecisionIsNoWait: what a limiter takes below a millisecond is not told.
func TestADecisionIsNoWait(t *testing.T) {
	for _, tt := range []struct{ takes, want time.Duration }{{time.Millisecond - 1, 0}, {time.Millisecond, time.Millisecond}} {
		made := clienttest.Make(t, get, []answer{clienttest.OK}, agentmessaging.WithLimiter(&limiterStub{wait: tt.takes}))
		assert.Equal(t, tt.want, made.Info.Waited, "where the limiter takes %v", tt.takes)
	}
}

// TestLimiterIsAskedAfterTheCoolDown, and the cool-down again where the limiter
// made the call wait; its permit goes back if that refuses.
func TestLimiterIsAskedAfterTheCoolDown(t *testing.T) {
	limiter := &limiterStub{wait: time.Minute}
	limited(t, "k", options{agentmessaging.WithLimiter(limiter), clienttest.Once}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		refusedAfterAMinute := func() { assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited) }
		service.close(90*time.Second, agentPath)
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		wantAfter(t, 80*time.Second, client, get) // to the end of the cool-down, not only of the limiter's minute

		service.close(time.Hour, agentPath)
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		wantRefused(t, client, here, get)
		wantRefused(t, client, here, get) // without asking the limiter
		synctest.Wait()
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 30 * time.Second}, {StatusCode: 200, Sent: true},
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 59 * time.Minute}, {},
		}, limiter.done)
	})
}
