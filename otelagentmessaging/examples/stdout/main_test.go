package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which the second takes no time
		var stdout bytes.Buffer
		require.NoError(t, run(t.Context(), &stdout))
		for want, times := range map[string]int{
			`"Name": "create_agent"`:                        1,
			`"Name": "invoke_agent"`:                        1,
			`"Name": "POST /v1/agents/{agent_id}/messages"`: 2,
			`"Name": "agentmessaging.retry"`:                1,
			`"Name": "gen_ai.client.operation.duration"`:    1,
			`"Name": "http.client.request.duration"`:        1,
			`"Name": "agentmessaging.client.retries"`:       1,
			"Be brief.": 0, "Hello": 0, "You wrote": 0, "Bearer": 0,
		} {
			assert.Equal(t, times, strings.Count(stdout.String(), want), want)
		}
	})
}
