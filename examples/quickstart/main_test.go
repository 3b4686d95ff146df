package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestRun(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^agent:     agent_000001 \(active\)
reply:     ".+"
trace id:  trace_000002
$`, stdout.String())
}

// Whatever fails, the program says so, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(greet(env.Context(), env.Client, env.Output()))
	})
}
