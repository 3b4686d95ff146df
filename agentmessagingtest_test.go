package agentmessaging_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
)

// The tests of package agentmessagingtest are here, because a further test binary costs more
// than they do.

// 130 messages are more than two minutes' worth (interface 8.1). They all
// arrive, two minutes later by the fake's clock, at once by ours.
func TestABatchWaitsNoRealTime(t *testing.T) {
	batch := func(t *testing.T) {
		client, fake := agentmessagingtest.New(t)
		agent, err := client.CreateAgent(t.Context(), agentmessaging.CreateAgentParams{})
		require.NoError(t, err)
		began, real := fake.Now(), time.Now()
		for i := range 130 {
			_, err := client.SendMessage(t.Context(), agent.ID, agentmessaging.MessageParams{Text: fmt.Sprint(i)})
			require.NoError(t, err)
		}
		assert.Len(t, fake.Conversation(agent.ID), 130, "the batch arrived")
		assert.GreaterOrEqual(t, fake.Now().Sub(began), 2*time.Minute)
		assert.Less(t, time.Since(real), time.Minute, "of real time")
	}
	t.Run("outside", batch)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, batch) })
}

func TestAnUnusableArgumentPanics(t *testing.T) {
	assert.PanicsWithValue(t, "fakeserver: New needs a test; Open makes a fake outside tests", func() { agentmessagingtest.New(nil) })
	assert.PanicsWithValue(t, "agentmessagingtest: agentmessaging: opts: option 1 is nil", func() { agentmessagingtest.New(t, nil) })
	assert.PanicsWithValue(t, "agentmessagingtest: NewClient needs the *testing.T of a test, and a fake such as fakeserver.New(t)", func() {
		agentmessagingtest.NewClient(t, nil)
	})
}
