package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A line for each call, without the key and the text of the message.
func TestLog(t *testing.T) {
	for _, form := range []string{"text", "json", "auto", "off"} {
		r := begin(t, []string{"--log", form, "--key=cnry-service-key"})
		r.service("POST", "/v1/agents", "{}")
		r.service("POST", "/v1/agents/agent_000001/messages", `{"text":"cnry-text"}`)
		r.call("GET", "/v1/status", "", "Authorization: Bearer cnry-other")
		r.stop()
		written := r.stderr.String()
		assert.NotContains(t, written, "cnry", form)
		switch form {
		case "off":
			assert.Empty(t, written)
		case "text":
			assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} trace_000001 POST /v1/agents key_000001: 200\n.*messages key_000001: 200\n.* unknown: 401 `, written)
		default: // a buffer is no terminal
			var last struct {
				Path, Key string
				Status    int
			}
			require.NoError(t, json.Unmarshal([]byte(lastLine(written)), &last))
			assert.Equal(t, "/v1/status unknown 401", fmt.Sprint(last.Path, " ", last.Key, " ", last.Status))
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
