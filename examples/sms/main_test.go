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
	assert.Equal(t, `created agent_000001
  agent_000001 has no SMS channel
enabled managed SMS: needs_compliance
  agent_000001: SMS is active at +15550100
`, stdout.String())
}

// Whatever fails, the program says so, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(enable(env.Context(), env.Client, env.Fake, env.Output()))
	})
}
