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

// errChanged is why a note fails if the message has another state by now.
var errChanged = errors.New("another worker has changed its state")

// SendNext sends the oldest planned message. It returns [sql.ErrNoRows] if there is none,
// and nil also if the message is refused, or if another worker sends it first: any number
// of workers may call it for one table, in any number of processes.
//
// An unknown outcome, an error of the database and the end of the process leave the message
// sending or in doubt. After any other error it is planned, and the next call begins with it.
func SendNext(ctx context.Context, db *sql.DB, client *agentmessaging.Client) error {
	var id int
	var agentID, text string
	row := db.QueryRowContext(ctx, `SELECT id, agent_id, text FROM outbox WHERE state = 'planned' ORDER BY id LIMIT 1`)
	if err := row.Scan(&id, &agentID, &text); err != nil {
		return err
	}
	// note fails if another worker has changed the state: two cannot both send a message.
	// After a note that failed, the worker no longer knows the state, and all others fail
	// too. The end of ctx must not keep a note of what has happened.
	state, failed := "planned", error(nil)
	note := func(next string) error {
		if failed != nil {
			return failed
		}
		result, err := db.ExecContext(context.WithoutCancel(ctx), `UPDATE outbox SET state = ? WHERE id = ? AND state = ?`, next, id, state)
		var rows int64
		if err == nil {
			rows, err = result.RowsAffected()
		}
		if err == nil && rows == 0 {
			err = fmt.Errorf("message %d is no longer %s: %w", id, state, errChanged)
		}
		state, failed = next, err
		return err
	}
	client, err := client.With(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.AttemptEnd); ok && end.Verdict == agentmessaging.VerdictNotDone && state == "sending" {
			_ = note("planned") // before the next wait begins
		}
		return nil
	})))
	if err != nil {
		return err
	}
	before := agentmessaging.WithBeforeSend(ctx, func(context.Context, int) error { return note("sending") })
	_, err = client.SendMessage(before, agentID, agentmessaging.MessageParams{Text: text})
	switch {
	case err == nil:
		return note("sent")
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return errors.Join(err, note("in doubt"))
	case errors.Is(err, agentmessaging.ErrInvalid), errors.Is(err, agentmessaging.ErrBadRequest), errors.Is(err, agentmessaging.ErrNotFound):
		err = nil
		_ = note("refused")
	}
	if errors.Is(failed, errChanged) { // another worker chose the message too, and was first
		return nil
	}
	return errors.Join(err, failed)
}
