package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestRun(t *testing.T) {
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^refused after \d+ calls
  error:       agentmessaging: GET /v1/agents/\{agent_id\}: 429 rate_limited.*
  status:      429
  code:        rate_limited
  limit key:   key_minute
  retry after: (1m0s|[1-5]?\ds)
  trace id:    trace_\d+
waiting (1m0s|[1-5]?\ds)
the next call went through
$`, stdout.String())
}

// Whatever fails, the program tells it, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	agentmessagingtest.Sweep(t, func(env *agentmessagingtest.Env) {
		env.Reports(exceed(env.Context(), env.Client, env.Fake, env.Output()))
	}, agentmessagingtest.InBubble(), agentmessagingtest.Within(30*time.Hour), // it waits for the next day, if it is told to
		agentmessagingtest.WithoutWhere(func(f agentmessagingtest.Finding) bool {
			return strings.HasSuffix(f.Plan, "reply_dripping/from_on") // so slow that no limit is reached
		}),
		agentmessagingtest.FakeOptions(fakeserver.WithLimit(fakeserver.LimitKeyMinute, 4)),
		agentmessagingtest.ClientOptions(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1})))
}
