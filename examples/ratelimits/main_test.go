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
	assert.Regexp(t, `^refused after 60 calls
  error:       agentmessaging: GET /v1/agents/\{agent_id\}: 429 rate_limited.*
  status:      429
  code:        rate_limited
  limit key:   key_minute
  retry after: (1m0s|[1-5]?\ds)
  trace id:    trace_000061
waiting (1m0s|[1-5]?\ds)
the next call went through
$`, stdout.String())
}
