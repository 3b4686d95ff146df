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
)

// limiterStub records what it is told and refuses the attempts from refuseAt on.
type limiterStub struct {
	refuseAt int
	refusal  error
	asked    []agentmessaging.LimitedAttempt
	done     []agentmessaging.AttemptOutcome
}

func (l *limiterStub) Acquire(_ context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	l.asked = append(l.asked, attempt)
	if l.refusal != nil && len(l.asked) >= l.refuseAt {
		return nil, l.refusal
	}
	return l, nil
}

func (l *limiterStub) Done(outcome agentmessaging.AttemptOutcome) { l.done = append(l.done, outcome) }

func TestLimiterIsAskedForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{}
		transport := &stub{answers: []answer{
			{err: dialError},
			{status: 429, header: retryAfter("3"), body: `{"error":"rate_limited","limit_key":"key_minute"}`},
			{status: 200, body: `{"agent_id":"a"}`},
		}}
		_, err := newClient(t, transport, agentmessaging.WithLimiter(limiter)).CreateAgent(t.Context(), agentmessaging.CreateAgentParams{
			LLM: agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"},
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

func TestLimiterIsToldWhatSetsBYOK(t *testing.T) {
	limiter := &limiterStub{}
	client := newClient(t, &stub{answers: []answer{{status: 200, body: anyReply}}}, agentmessaging.WithLimiter(limiter))
	require.NoError(t, call(t, client, setBYOK{Provider: "openai", APIKey: "k"}))
	require.NoError(t, call(t, client, create{}))
	assert.True(t, limiter.asked[0].SetsBYOK)
	assert.False(t, limiter.asked[1].SetsBYOK)
}

func TestLimiterRefusalIsLocal(t *testing.T) {
	limiter := &limiterStub{refuseAt: 1, refusal: &agentmessaging.Error{
		StatusCode: 429, Code: "rate_limited", LimitKey: "key_day", RetryAfter: time.Hour,
	}}
	transport := &stub{}
	err := post(t.Context(), newClient(t, transport, agentmessaging.WithLimiter(limiter)))
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	assert.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	assert.True(t, failure.Local)
	assert.Equal(t, "key_day", failure.LimitKey)
	assert.Equal(t, time.Hour, failure.RetryAfter)
	assert.Equal(t, "POST /v1/agents/{agent_id}/messages", failure.Method+" "+failure.Path)
	assert.Zero(t, failure.Attempts)
	assert.Empty(t, transport.sent())
	assert.Empty(t, limiter.done)
}

func TestLimiterFailureKeepsItsCause(t *testing.T) {
	limiter := &limiterStub{refuseAt: 1, refusal: context.DeadlineExceeded}
	err := post(t.Context(), newClient(t, &stub{}, agentmessaging.WithLimiter(limiter)))
	assert.Equal(t, wantError, outcomeOf(t, err))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

// slowLimiter lets every attempt wait.
type slowLimiter struct {
	mu sync.Mutex
	limiterStub
	deadlines []bool // whether ctx had one
}

func (l *slowLimiter) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	_, has := ctx.Deadline()
	time.Sleep(time.Minute)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadlines = append(l.deadlines, has)
	_, err := l.limiterStub.Acquire(ctx, attempt)
	return l, err
}

func (l *slowLimiter) Done(outcome agentmessaging.AttemptOutcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limiterStub.Done(outcome)
}

// TestLimiterWaitIsNoPartOfTheAttemptsTimeout in virtual time.
func TestLimiterWaitIsNoPartOfTheAttemptsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := agentmessaging.NewClient(testURL, testKey, agentmessaging.WithLimiter(&slowLimiter{}),
			agentmessaging.WithHTTPClient(&http.Client{Transport: &stub{answers: []answer{{status: 200, body: anyReply}}}, Timeout: time.Second}))
		require.NoError(t, err)
		assert.NoError(t, get(t.Context(), client))
	})
}

// TestPermitIsGivenBackWhateverTheTransportDoes, panic included.
func TestPermitIsGivenBackWhateverTheTransportDoes(t *testing.T) {
	limiter := &limiterStub{}
	boom := answer{before: func(*http.Request) { panic("boom") }}
	assert.Panics(t, func() {
		_ = get(t.Context(), newClient(t, &stub{answers: []answer{boom}}, agentmessaging.WithLimiter(limiter)))
	})
	assert.Len(t, limiter.done, 1)
}

// generous lets everything pass and forgets the permit.
type generous struct{}

func (generous) Acquire(context.Context, agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	return nil, nil
}

func TestLimiterWithoutPermitIsAnError(t *testing.T) {
	transport := &stub{}
	err := post(t.Context(), newClient(t, transport, agentmessaging.WithLimiter(generous{})))
	assert.Equal(t, wantError, outcomeOf(t, err))
	assert.ErrorContains(t, err, "neither a permit nor an error")
	assert.Empty(t, transport.sent())
}
