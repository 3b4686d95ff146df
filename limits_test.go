package agentmessaging_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// limiterStub records what it is told, after a wait, and refuses if it has a
// refusal.
type limiterStub struct {
	wait    time.Duration
	refusal error
	mu      sync.Mutex
	asked   []agentmessaging.LimitedAttempt
	done    []agentmessaging.AttemptOutcome
}

func (l *limiterStub) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := (quota.RealClock{}).Sleep(ctx, l.wait); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, attempt)
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

// out is how many permits have not come back.
func (l *limiterStub) out() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked) - len(l.done)
}

func TestLimiterIsAskedForEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{}
		transport := answering(notDialed, tooMany("3", "key_minute"), okAnswer)
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
	client := newClient(t, answering(okAnswer), agentmessaging.WithLimiter(limiter))
	for i, call := range endpoints {
		require.NoError(t, call.call(t.Context(), client), call.name)
		assert.Equal(t, call.name == "SetBYOK", limiter.asked[i].SetsBYOK, call.name)
	}
}

// TestLimiterIsAskedAfterTheCoolDown, and the cool-down again where the limiter
// made the call wait; its permit goes back if that refuses.
func TestLimiterIsAskedAfterTheCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{wait: time.Minute}
		service := answering(tooMany("30", "k"), okAnswer, tooMany("3540", "k"))
		client := newClient(t, service, jitter(0), once, agentmessaging.WithLimiter(limiter))
		refusedAfterAMinute := func() { assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited) }
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		begin := time.Now()
		require.NoError(t, get(t.Context(), client))
		assert.Equal(t, 80*time.Second, time.Since(begin), "to the end of the cool-down, not only of the limiter's minute")

		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		for range 2 { // the second one without asking the limiter
			assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited)
		}
		synctest.Wait()
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 30 * time.Second}, {StatusCode: 200, Sent: true},
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 59 * time.Minute}, {},
		}, limiter.done)
	})
}
