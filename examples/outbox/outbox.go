// Package outbox sends the messages of a SQL table and loses none, wherever its
// process is killed. A transaction of the application inserts a message together
// with what it belongs to, in the state planned.
package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// Schema makes the table. The states are planned, sending, sent, refused and in doubt.
const Schema = `CREATE TABLE outbox (
	id       INTEGER PRIMARY KEY,
	agent_id TEXT NOT NULL,
	text     TEXT NOT NULL,
	state    TEXT NOT NULL DEFAULT 'planned')`

// Recover marks what a death left open as in doubt. Call it when the program starts,
// before SendNext, and only where no other process sends from the table.
func Recover(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, `UPDATE outbox SET state = 'in doubt' WHERE state = 'sending'`)
	return err
}

// SendNext sends the oldest planned message. It returns [sql.ErrNoRows] when there is
// none. After any other error but an unknown outcome the message is still planned.
func SendNext(ctx context.Context, db *sql.DB, client *agentmessaging.Client) error {
	var id int
	var agentID, text string
	row := db.QueryRowContext(ctx, `SELECT id, agent_id, text FROM outbox WHERE state = 'planned' ORDER BY id LIMIT 1`)
	if err := row.Scan(&id, &agentID, &text); err != nil {
		return err
	}
	// note succeeds only from the expected state, so that two processes cannot both
	// send a message. The end of ctx must not keep a note of what has happened.
	note := func(from, to string) error {
		result, err := db.ExecContext(context.WithoutCancel(ctx), `UPDATE outbox SET state = ? WHERE id = ? AND state = ?`, to, id, from)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			err = fmt.Errorf("message %d is not %s any more", id, from)
		}
		return err
	}
	client, err := client.With(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.AttemptEnd); ok && end.Verdict == agentmessaging.VerdictNotDone {
			_ = note("sending", "planned") // before the next wait begins; if it fails, the message stays in doubt
		}
		return nil
	})))
	if err != nil {
		return err
	}
	before := agentmessaging.WithBeforeSend(ctx, func(context.Context, int) error { return note("planned", "sending") })
	_, err = client.SendMessage(before, agentID, agentmessaging.MessageParams{Text: text})
	switch {
	case err == nil:
		return note("sending", "sent")
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return errors.Join(err, note("sending", "in doubt"))
	case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest):
		return note("planned", "refused")
	}
	return err
}
