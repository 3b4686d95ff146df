package outbox_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/embed"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/examples/outbox"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// In the end, the state of each message agrees with what the agent has received.
func TestStates(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	db, agent := table(t, fake, "waits a minute", "is refused", "loses its reply", "meets a proxy", "finds no agent", "has left when the program ends", "waits a day")
	ctx, stop := context.WithCancel(t.Context())
	fake.Inject(fakeserver.RateLimited("60"), fakeserver.ByText("waits a minute")).Times(1)
	fake.OnMessage(fakeserver.ByText("is refused")).ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return fakeserver.Reply{Status: 400} })
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()), fakeserver.ByText("loses its reply"))
	fake.Inject(fakeserver.RawAnswer(404, "text/plain", "default backend - 404"), fakeserver.ByText("meets a proxy")).Times(1)
	fake.Inject(fakeserver.Answer(404, ""), fakeserver.ByText("finds no agent"))
	fake.Inject(fakeserver.Change("the program ends", stop), fakeserver.ByText("has left when the program ends"))
	fake.Inject(fakeserver.RateLimited("86400"), fakeserver.ByText("waits a day"))

	for _, want := range []error{nil, agentmessaging.ErrBadRequest, agentmessaging.ErrOutcomeUnknown, agentmessaging.ErrNotFound, nil, nil, nil, context.Canceled} {
		require.ErrorIs(t, outbox.SendNext(ctx, db, client), want)
	}
	require.ErrorIs(t, outbox.SendNext(t.Context(), db, client), agentmessaging.ErrRateLimited)
	assert.Equal(t, "sent, refused, in doubt, sent, refused, sent, planned", states(t, db))
	assert.Len(t, fake.Conversation(agent), 4)
}

// While one worker sends a message, other workers that have chosen it leave it alone. If the
// process dies meanwhile, the message is in doubt.
func TestWorkers(t *testing.T) {
	client, fake := agentmessagingtest.New(t)
	db, agent := table(t, fake, "one", "two")
	underWay, first := make(chan bool), make(chan error, 1)
	fake.Inject(fakeserver.Change("a worker sends it", func() {
		underWay <- true
		<-underWay
	}), fakeserver.ByText("one")).Times(1)
	late, err := client.With(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		if _, chosen := event.(agentmessaging.AttemptStart); chosen {
			go func() { first <- outbox.SendNext(t.Context(), db, client) }()
			<-underWay
		}
		return nil
	})))
	require.NoError(t, err)
	assert.NoError(t, outbox.SendNext(t.Context(), db, late))
	assert.NoError(t, outbox.SendNext(t.Context(), db, client))
	assert.Equal(t, "sending, sent", states(t, db))
	assert.NoError(t, outbox.Recover(t.Context(), db, time.Minute))
	assert.Equal(t, "sending, sent", states(t, db), "its process may be alive")
	assert.NoError(t, outbox.Recover(t.Context(), db, 0))
	underWay <- true
	require.ErrorContains(t, <-first, "message 1 is no longer sending")
	assert.Equal(t, "in doubt, sent", states(t, db))
	assert.Len(t, fake.Conversation(agent), 2)
}

func table(t *testing.T, fake *fakeserver.Server, texts ...string) (db *sql.DB, agentID string) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "outbox.db"))
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
