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
	assert.Regexp(t, `^stored:      \[redacted\] for openai
fingerprint: [0-9a-f]+
updated at:  .+Z
agent:       agent_000001 replies ".+"
cleared:     true
$`, stdout.String())
	assert.NotContains(t, stdout.String(), "sk-example")
}
