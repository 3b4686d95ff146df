package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestCoolDownParksCallers: none of them is sent before Retry-After has
// passed, all of them are behind it, and jitter is only later.
func TestCoolDownParksCallers(t *testing.T) {
	for random, last := range map[float64]time.Duration{0: 20 * time.Second, 0.999: 22*time.Second + 250*time.Millisecond} {
		limited(t, "key_minute", options{clienttest.Jitter(random)}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
			service.close(20*time.Second, agentPath)
			begin := time.Now()
			assert.Equal(t, 20*time.Second, wantRefused(t, client, there, get).RetryAfter)
			var group sync.WaitGroup
			for range 50 {
				group.Go(func() {
					var info agentmessaging.CallInfo
					assert.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
					assert.Equal(t, time.Since(begin), info.Waited)
					assert.GreaterOrEqual(t, info.Waited, 20*time.Second)
					assert.LessOrEqual(t, info.Waited, last, "jitter %v", random)
					assert.Equal(t, random == 0, info.Waited == 20*time.Second, "jitter %v: %v", random, info.Waited)
				})
			}
			group.Wait()
			assert.Equal(t, 1+50, service.count(), "each was sent once")
		})
	}
}

// TestCoolDownOfBYOKSetsLeavesPlainCreation alone.
func TestCoolDownOfBYOKSetsLeavesPlainCreation(t *testing.T) {
	withKey := sending(create{LLM: llm{Provider: "openai", APIKey: "provider-canary"}})
	limited(t, "byok_set_key_hour", nil, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(time.Hour, "/v1/agents")
		wantRefused(t, client, there, withKey)
		wantRefused(t, client, here, withKey)
		wantRefused(t, client, there, sending(create{}))
	})
}

// TestCoolDownRefusesAtOnce where the wait would be longer than the policy or
// the deadline allows, says so, and which answer is behind it. Nothing is sent.
// Jitter takes half of the room that is left.
func TestCoolDownRefusesAtOnce(t *testing.T) {
	const refusal = "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited%s" +
		" (refused here by the cool-down, limit key_day, retry after %s, trace trace_1)"
	for _, tt := range []struct {
		maxWait, deadline, turn time.Duration
		says, retryAfter        string        // "": it succeeds
		after                   time.Duration // then
	}{
		{time.Minute, time.Hour, time.Minute + 1, ": the longest wait that the RetryPolicy allows is 1m0s, its turn in 1m0s", "1m0s", 0},
		{time.Minute, time.Hour, time.Minute, "", "", time.Minute},
		{time.Hour, 299 * time.Second, 7 * time.Minute, ": the call's deadline is in 4m59s, its turn in 7m0s", "7m0s", 0},
		{time.Hour, time.Minute, time.Minute, "", "1m0s", 0},
		{time.Hour, time.Minute + 1, time.Minute, "", "", time.Minute},
		{time.Hour, time.Minute + 1 + 2*time.Second, time.Minute, "", "", time.Minute + time.Second},
	} {
		policy := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: tt.maxWait})
		limited(t, "key_day", options{policy, clienttest.Jitter(0.999)}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
			service.close(tt.turn, agentPath)
			wantRefused(t, client, there, get)
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer cancel()
			begin := time.Now()
			err := get(ctx, client)
			assert.Equal(t, tt.after, time.Since(begin), "%+v", tt)
			if tt.retryAfter == "" {
				require.NoError(t, err, "%+v", tt)
				return
			}
			assert.EqualError(t, err, fmt.Sprintf(refusal, tt.says, tt.retryAfter), "%+v", tt)
			assert.Equal(t, 1, service.count(), "%+v", tt)
		})
	}
}

// TestCoolDownPassesOverALimitersRefusal: who may go in turn and is held up by
// the limiter leaves its turn to the next.
func TestCoolDownPassesOverALimitersRefusal(t *testing.T) {
	limiter := &limiterStub{}
	limited(t, "k", options{agentmessaging.WithLimiter(limiter)}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(20*time.Second, agentPath)
		wantRefused(t, client, there, get)
		limiter.refusal = errors.New("not this one")
		assert.ErrorIs(t, get(t.Context(), client), limiter.refusal)
		limiter.refusal = nil
		begin := time.Now()
		require.NoError(t, get(t.Context(), client))
		assert.Zero(t, time.Since(begin))
	})
}

// TestCoolDownIsCancelled: a caller that leaves is not kept.
func TestCoolDownIsCancelled(t *testing.T) {
	limited(t, "", nil, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(time.Minute, messagesPath)
		wantRefused(t, client, there, post)
		reason := errors.New("the user left")
		var info agentmessaging.CallInfo
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { cancel(reason) })
		go func() { assert.ErrorIs(t, post(ctx, client), reason, "who leaves at the same moment") }()
		err := post(agentmessaging.WithCallInfo(ctx, &info), client)
		assert.Equal(t, clienttest.NoAnswer, clienttest.Outcome(err), "nothing was sent")
		assert.ErrorContains(t, err, "in line for a limit: context canceled")
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, reason)
		assert.Equal(t, agentmessaging.CallInfo{Waited: 3 * time.Second}, info)
		assert.Equal(t, 1, service.count())
	})
}

// TestCoolDownIsTold once, and each wait to its call. A limit_key is foreign
// text: it is shown on one line of 64 bytes, without the key.
func TestCoolDownIsTold(t *testing.T) {
	var events []agentmessaging.Event
	limited(t, clienttest.Key+`\n`+strings.Repeat("k", 100), nil, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		_, events = eventsOf(func(observer agentmessaging.Option) {
			client, err := client.With(observer)
			require.NoError(t, err)
			service.close(20*time.Second, agentPath, messagesPath)
			wantRefused(t, client, there, get)
			wantRefused(t, client, there, post) // the same end: no news
			assert.NotContains(t, wantRefused(t, client, here, post).Error(), clienttest.Key)
			wantAfter(t, 20*time.Second, client, post)
		})
	})
	var told []string
	for _, event := range events {
		switch e := event.(type) {
		case agentmessaging.CoolDown:
			told = append(told, fmt.Sprint(e.Endpoint.Name, " cools ", e.Wait, e.LimitKey))
		case agentmessaging.LimiterWait:
			told = append(told, fmt.Sprint(e.Endpoint.Name, " waits ", e.Wait, e.LimitKey))
		}
	}
	key := "[redacted] " + strings.Repeat("k", 50) + "..."
	assert.Equal(t, []string{"GetAgent cools 20s" + key, "SendMessage waits 20s" + key}, told)
}
