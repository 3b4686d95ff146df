package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestPipe(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	var stdout, stderr bytes.Buffer
	c := chat{stdin: strings.NewReader("Hello\n\n  \nGood bye"), stdout: &stdout, stderr: &stderr}
	require.NoError(t, c.run(t.Context(), "Be brief."))
	assert.Len(t, strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n"), 2, "one line for each message: %q", stdout.String())
	assert.Empty(t, stderr.String())
}

func TestTerminal(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	var stdout, stderr bytes.Buffer
	c := chat{stdin: strings.NewReader("Hello\n"), stdout: &stdout, stderr: &stderr, prompt: "> "}
	require.NoError(t, c.run(t.Context(), ""))
	assert.Regexp(t, "^> .+\n> \n$", stdout.String())
	assert.Equal(t, "Talking to agent_000001. Ctrl-D ends.\n", stderr.String())
}

func TestRefusedMessageDoesNotEndTheConversation(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	var stdout, stderr bytes.Buffer
	c := chat{stdin: strings.NewReader(strings.Repeat("a", 4001) + "\nHello\n"), stdout: &stdout, stderr: &stderr}
	require.NoError(t, c.run(t.Context(), ""))
	assert.Contains(t, stderr.String(), "text: must be at most 4000 characters, has 4001")
	assert.Equal(t, 1, strings.Count(stdout.String(), "\n"))
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
