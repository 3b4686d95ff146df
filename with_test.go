package agentmessaging_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestWithKeepsKeyAndConnections, and changes what it is told to.
func TestWithKeepsKeyAndConnections(t *testing.T) {
	first, second := answering(clienttest.OK), answering(clienttest.OK)
	client := newClient(t, first, agentmessaging.WithUserAgent("shop/1"))
	other, err := client.With(agentmessaging.WithUserAgent("batch/2"), agentmessaging.WithTimeout(time.Hour))
	require.NoError(t, err)
	elsewhere, err := client.With(clienttest.Through(second))
	require.NoError(t, err)
	for _, c := range []*agentmessaging.Client{client, other, elsewhere} {
		require.NoError(t, get(t.Context(), c))
	}
	require.Len(t, first.Sent(), 2)
	require.Len(t, second.Sent(), 1)
	assert.Equal(t, "Bearer "+clienttest.Key, first.Sent()[1].Header.Get("Authorization"))
	assert.Regexp(t, "^shop/1 ", first.Sent()[0].UserAgent())
	assert.Regexp(t, "^batch/2 shop/1 ", first.Sent()[1].UserAgent())
	assert.Regexp(t, "^shop/1 ", second.Sent()[0].UserAgent())

	_, err = client.With(nil)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	_, err = new(agentmessaging.Client).With()
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
}

// TestWithSharesTheCoolDown, but for a client that has none.
func TestWithSharesTheCoolDown(t *testing.T) {
	limited(t, "k", nil, func(t *testing.T, batch *agentmessaging.Client, service *gateway) {
		handler, err := batch.With(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Second}))
		require.NoError(t, err)
		alone, err := batch.With(agentmessaging.WithoutCoolDown())
		require.NoError(t, err)
		service.close(20*time.Second, agentPath)
		wantRefused(t, handler, there, get)
		wantRefused(t, alone, there, get)
		wantRefused(t, handler, here, get)
		wantAfter(t, 20*time.Second, batch, get)
	})
}
