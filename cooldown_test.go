package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestCoolDownRefusesAtOnce where the wait would be longer than the policy or the
// deadline allows, says so, and which answer was before it. Nothing is sent.
func TestCoolDownRefusesAtOnce(t *testing.T) {
	const refusal = "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: %s (refused here by the cool-down, limit key_day, retry after 7m0s, trace trace_1)"
	for maxWait, says := range map[time.Duration]string{
		time.Minute: "the next attempt is due in 7m0s, later than the RetryPolicy waits (1m0s)",
		time.Hour:   "the next attempt is due in 7m0s, after the call's deadline (4m59s)",
	} {
		policy := agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: maxWait})
		limited(t, "key_day", options{policy}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
			service.close(7*time.Minute, agentPath)
			wantRefused(t, client, there, get)
			ctx, cancel := context.WithTimeout(t.Context(), 299*time.Second)
			defer cancel()
			begin := time.Now()
			assert.EqualError(t, get(ctx, client), fmt.Sprintf(refusal, says))
			assert.Zero(t, time.Since(begin))
			assert.Equal(t, 1, service.count())
		})
	}
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
