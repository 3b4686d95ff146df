package outbox_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/examples/outbox"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Each message ends in the state that fits what the agent has.
func TestStates(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	db, agent := table(t, fake, "arrives", "is refused", "loses its reply", "waits a minute")
	fake.OnMessage(fakeserver.ByText("is refused")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Status: 400} })
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()), fakeserver.ByText("loses its reply"))
	fake.Inject(fakeserver.RateLimited("60"), fakeserver.ByText("waits a minute")).Times(1)

	require.NoError(t, outbox.SendNext(t.Context(), db, client))
	require.NoError(t, outbox.SendNext(t.Context(), db, client))
	require.ErrorIs(t, outbox.SendNext(t.Context(), db, client), agentmessaging.ErrOutcomeUnknown)
	require.NoError(t, outbox.SendNext(t.Context(), db, client))
	require.ErrorIs(t, outbox.SendNext(t.Context(), db, client), sql.ErrNoRows)
	assert.Equal(t, "sent, refused, in doubt, sent", states(t, db))
	assert.Len(t, fake.Conversation(agent), 3)
}

// What the table says at each moment is what a killed process leaves.
func TestKilled(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	db, _ := table(t, fake, "under way")
	fake.Inject(fakeserver.Change("the process dies", func() {
		assert.Equal(t, "sending", states(t, db))
		require.NoError(t, outbox.Recover(t.Context(), db))
	}))
	assert.ErrorContains(t, outbox.SendNext(t.Context(), db, client), "message 1 is not sending any more")
	assert.Equal(t, "in doubt", states(t, db))
	require.ErrorIs(t, outbox.SendNext(t.Context(), db, client), sql.ErrNoRows, "nothing sends it again")
}

// An interrupt while the message waits for a limit leaves it planned.
func TestInterruptedInLine(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	db, _ := table(t, fake, "waits")
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // shorter than the wait
	defer cancel()
	require.ErrorIs(t, outbox.SendNext(ctx, db, client), agentmessaging.ErrRateLimited)
	assert.Equal(t, "planned", states(t, db))
}

func table(t *testing.T, fake *fakeserver.Server, texts ...string) (db *sql.DB, agentID string) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "outbox.db"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	_, err = db.Exec(outbox.Schema)
	require.NoError(t, err)
	agentID = fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	for _, text := range texts {
		_, err := db.Exec(`INSERT INTO outbox (agent_id, text) VALUES (?, ?)`, agentID, text)
		require.NoError(t, err)
	}
	return db, agentID
}

func states(t *testing.T, db *sql.DB) (states string) {
	require.NoError(t, db.QueryRow(`SELECT group_concat(state, ', ' ORDER BY id) FROM outbox`).Scan(&states))
	return states
}
