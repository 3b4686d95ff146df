package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestTalk(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	fake.OnMessage().Reply("\x1b[31mWe open\a at nine.")
	var output strings.Builder
	require.NoError(t, talk(t.Context(), client, strings.NewReader("Hello\n\n  \n"+strings.Repeat("a", 4001)+"\nGood bye"), &output))
	assert.Equal(t, `[31mWe open at nine.
agentmessaging: text: must be at most 4000 characters, has 4001
[31mWe open at nine.
`, output.String())
}

// Whatever fails, the program says so, and leaves nothing behind.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(talk(env.Context(), env.Client, strings.NewReader("Hello\nGood bye"), env.Output()))
	})
}
