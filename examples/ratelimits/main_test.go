package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func TestRun(t *testing.T) {
	t.Setenv("AGENT_MESSAGING_BASE_URL", "")
	t.Setenv("AGENT_MESSAGING_API_KEY", "")
	file := filepath.Join(t.TempDir(), "journal")
	var stdout strings.Builder
	require.NoError(t, run(t.Context(), file, &stdout))
	assert.Equal(t, "0 of 100 messages were sent before, says "+file+"\n100 of 100 messages are sent\n", stdout.String())
}

// A lost reply does not stop it. Stopped by a signal, and then by the limit of
// the day, it sends the rest on the day after.
func TestGoesOn(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	file := filepath.Join(t.TempDir(), "journal")
	ctx, kill := context.WithCancel(t.Context())
	send := fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()), send).Nth(2)
	fake.Inject(fakeserver.Change("a signal arrives", kill), send).Nth(4)
	fake.Inject(fakeserver.Change("the day is spent", func() { fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay) }), send).Nth(7)

	var stdout strings.Builder
	require.ErrorIs(t, batch(ctx, client, file, 70, &stdout), context.Canceled)
	fake.Advance(time.Hour)
	require.Error(t, batch(t.Context(), client, file, 70, &stdout))
	fake.Advance(24 * time.Hour)
	require.NoError(t, batch(t.Context(), client, file, 70, &stdout))
	assert.Contains(t, stdout.String(), "limit key_day is spent: start again in 2")
	assert.Contains(t, stdout.String(), "70 of 70 messages are sent")
	sent := map[string]int{}
	for _, exchange := range fake.Conversation(fake.Agents()[0].ID) {
		sent[exchange.Text]++
	}
	assert.Len(t, sent, 70)
	assert.Equal(t, 2, sent["2: summarize this ticket."], "its reply was lost")
	delete(sent, "2: summarize this ticket.")
	delete(sent, "3: summarize this ticket.") // was under way at the signal, and may be there twice
	for text, times := range sent {
		assert.Equal(t, 1, times, text)
	}
}

// Whatever fails, the program tells it, and leaves nothing behind. It notes what it has sent, not what it is about to send:
// where its process dies in between, it sends a message again.
func TestSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(batch(env.Context(), env.Client, filepath.Join(env.Dir, "journal"), 2, env.Output()))
	}, sweep.FakeOptions(fakeserver.WithLimit(fakeserver.LimitKeyMinute, 2)), sweep.Without(sweep.Doubled), sweep.Without(sweep.LostAgent))
}
