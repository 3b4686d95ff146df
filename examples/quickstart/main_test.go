package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/examples/internal/connect"
)

func TestRun(t *testing.T) {
	connect.OnFake(t)
	var stdout bytes.Buffer
	require.NoError(t, run(t.Context(), &stdout))
	assert.Regexp(t, `^talked to: a fake inside this program
agent:     agent_000001 \(active\)
reply:     ".+"
trace id:  trace_000002
$`, stdout.String())
}
