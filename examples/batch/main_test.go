package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// Whatever fails, and whenever the process dies, no message is lost or doubled.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		path := filepath.Join(env.Dir, "texts")
		require.NoError(env, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
		if len(env.Fake.Agents()) == 0 { // otherwise the process died and starts again
			env.Fake.AddAgent(env.Fake.Key(), fakeserver.Agent{ID: "agent_1"})
		}
		env.Reports(run(env.Context(), env.Client, "agent_1", path))
	})
}

// An interrupt ends the wait for a limit, but not a request that has left: no message is in
// doubt.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(t)))
		require.NoError(t, err)
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
		path := filepath.Join(t.TempDir(), "texts")
		require.NoError(t, os.WriteFile(path, []byte("\ufeffslow\r\n\r\ntwo\r\nthree\r\n"), 0o600))
		require.ErrorIs(t, run(t.Context(), client, "", path), agentmessaging.ErrInvalid) // a wrong agent id leaves every message planned
		fake.Inject(fakeserver.Latency(3*time.Second), fakeserver.ByText("slow"))
		fake.Inject(fakeserver.RateLimited("40"), fakeserver.ByTextContaining("t")).Times(2)

		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, func() {
			assert.ErrorContains(t, run(t.Context(), client, agent, path), "another process works on it")
			interrupt()
		})
		began := time.Now()
		err = run(ctx, client, agent, path)
		require.ErrorIs(t, err, context.Canceled)
		assert.NotContains(t, err.Error(), inDoubt)
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Len(t, fake.Conversation(agent), 1)

		require.NoError(t, run(t.Context(), client, agent, path), "no message is in doubt")
		assert.Len(t, fake.Conversation(agent), 3)
	})
}

// A 400 may have another reason than the message: here the provider key is gone.
func TestStopsAtA400(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{LLM: fakeserver.LLM{Mode: "byok"}}).ID
	path := filepath.Join(t.TempDir(), "texts")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("text\n", 3*workers)), 0o600))
	require.ErrorIs(t, run(t.Context(), client, agent, path), agentmessaging.ErrBadRequest)
	assert.LessOrEqual(t, len(fake.Calls()), workers)
}

// The messages that wait for a decision are named in order. A message whose decision has an
// unknown state is named too: it is not sent, and must not be lost.
func TestUndecided(t *testing.T) {
	j := journal{states: map[int]string{10: inDoubt, 9: refused, 5: "", 4: "Sent", 3: sent, 2: inDoubt, 1: planned}}
	assert.Regexp(t, `^message 2: in doubt; .*\nmessage 4: Sent; .*\nmessage 5: no state; .*\nmessage 9: refused; .*\nmessage 10: in doubt; .*$`, j.undecided().Error())
}
