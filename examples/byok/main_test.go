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
	assert.Regexp(t, `^stored:      \[redacted\] for openai
fingerprint: [0-9a-f]+
updated at:  .+Z
agent:       agent_000001
reply:       ".+"
cleared:     true
$`, stdout.String())
	assert.NotContains(t, stdout.String(), "sk-example")
}

// Whatever fails, the program says so, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(use(env.Context(), env.Client, env.Output()))
	})
}
