package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestRun(t *testing.T) {
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^created agent_000001 with sandbox SMS
  agent_000001: SMS is active at \+\d+
created agent_000002 without SMS
  agent_000002 has no SMS channel
enabled managed SMS: needs_compliance
  agent_000002: SMS is active at \+15550100
$`, stdout.String())
}

// Whatever fails, the program tells it, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(enable(env.Context(), env.Client, env.Fake, env.Output()))
	})
}
