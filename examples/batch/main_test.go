package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// Whatever fails, and wherever the process dies, no message is lost or doubled.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		path := filepath.Join(env.Dir, "texts")
		require.NoError(env, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
		if len(env.Fake.Agents()) == 0 { // else the process has died and begins again
			env.Fake.AddAgent(env.Fake.Key(), fakeserver.Agent{ID: "agent_1"})
		}
		env.Reports(run(env.Context(), env.Client, "agent_1", path))
	})
}

// An interrupt while messages wait for a limit sends nothing and leaves no doubt.
func TestInterruptedInLine(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	path := filepath.Join(t.TempDir(), "texts")
	require.NoError(t, os.WriteFile(path, []byte("one\n\ntwo\nthree\n"), 0o600))
	ctx, interrupt := context.WithCancel(t.Context())
	fake.Inject(fakeserver.Change("interrupted", func() {
		assert.ErrorContains(t, run(t.Context(), client, agent, path), "another process works on it")
		fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)
		interrupt()
	}), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Times(1)
	err := run(ctx, client, agent, path)
	require.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, err.Error(), inDoubt)

	require.NoError(t, run(t.Context(), client, agent, path))
	assert.Len(t, fake.Conversation(agent), 3)
}
