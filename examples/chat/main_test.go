package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestPipe(t *testing.T) {
	stdout, stderr := talk(t, "", "Hello\n\n  \n"+strings.Repeat("a", 4001)+"\nGood bye")
	assert.Equal(t, 2, strings.Count(stdout, "\n"), "one line for each message that is sent: %q", stdout)
	assert.Contains(t, stderr, "text: must be at most 4000 characters, has 4001", "which does not end the conversation")
}

func TestTerminal(t *testing.T) {
	stdout, stderr := talk(t, "> ", "Hello\n")
	assert.Regexp(t, "^> .+\n> \n$", stdout)
	assert.Equal(t, "Talking to agent_000001. Ctrl-D ends.\n", stderr)
}

func talk(t *testing.T, prompt, input string) (output, complaints string) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	var stdout, stderr strings.Builder
	c := chat{stdin: strings.NewReader(input), stdout: &stdout, stderr: &stderr, prompt: prompt}
	require.NoError(t, c.run(t.Context(), "Be brief."))
	return stdout.String(), stderr.String()
}

func TestPrintable(t *testing.T) {
	assert.Equal(t, "[31mred]0;title\n\tü", printable("\x1b[31mred\x1b]0;title\a\r\n\tü\u009b"))
}

// Whatever fails, the program tells it, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		c := chat{stdin: strings.NewReader("Hello\nGood bye"), stdout: env.Output(), stderr: env.Output()}
		env.Reports(c.talk(env.Context(), env.Client, "Be brief."))
	})
}
