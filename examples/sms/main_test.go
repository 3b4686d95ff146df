package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
