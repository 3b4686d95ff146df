// Package outbox sends the messages of a SQL table. It loses no message, whenever its
// process is killed. The application inserts a message, in the state planned, in the same
// transaction as the data that the message belongs to.
package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// Schema makes the table. The states are planned, sending, sent, refused and in doubt.
const Schema = `CREATE TABLE outbox (
	id       INTEGER PRIMARY KEY,
	agent_id TEXT NOT NULL,
	text     TEXT NOT NULL,
	state    TEXT NOT NULL DEFAULT 'planned',
	since    INTEGER NOT NULL DEFAULT 0)` // seconds since 1970

// Recover marks messages as in doubt that have been in the state sending for at least age: a
// crash has left them in this state. A program that sends alone calls Recover when it starts,
// with an age of 0. If several processes send, each calls it every few minutes, with an age
// longer than the time of a request (WithTimeout: 5 minutes) and the difference of their clocks
// together.
func Recover(ctx context.Context, db *sql.DB, age time.Duration) error {
	_, err := db.ExecContext(ctx, `UPDATE outbox SET state = 'in doubt' WHERE state = 'sending' AND since <= ?`, time.Now().Add(-age).Unix())
	return err
}

// errChanged is the error of note if another worker has changed the state of the message.
var errChanged = errors.New("another worker has changed its state")

// SendNext sends the oldest planned message. It returns [sql.ErrNoRows] if there is none. It
// also returns nil if the client or the service refuses the message, or if another worker sends
// it first. The exception is a 400: SendNext returns ErrBadRequest, because the reason may be a
// missing provider key, and not this message. Any number of workers, in any number of
// processes, may call it for one table.
//
// If the outcome is unknown, the database fails or the process dies, the message stays in the
// state sending or in doubt. After an ErrBadRequest its state is refused. After any other error
// its state is planned, and the next call begins with it. The end of ctx ends a wait, but not a
// request that has left. So a program that cancels ctx on SIGTERM and waits for SendNext leaves
// nothing in doubt.
func SendNext(ctx context.Context, db *sql.DB, client *agentmessaging.Client) error {
	m, err := oldestPlanned(ctx, db)
	if err != nil {
		return err
	}
	client, err = client.With(agentmessaging.WithObserver(agentmessaging.ObserverFunc(m.observe)))
	if err != nil {
		return err
	}
	before := agentmessaging.WithBeforeSend(ctx, func(ctx context.Context, _ int) error { return m.note(ctx, "sending") })
	_, err = client.SendMessage(before, m.agentID, agentmessaging.MessageParams{Text: m.text})
	var answer *agentmessaging.Error
	switch {
	case err == nil:
		return m.note(ctx, "sent")
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return errors.Join(err, m.note(ctx, "in doubt"))
	case errors.Is(err, agentmessaging.ErrInvalid),
		errors.Is(err, agentmessaging.ErrNotFound) && errors.As(err, &answer) && answer.Code != "": // an answer without a code comes from a proxy
		err = nil
		_ = m.note(ctx, "refused")
	case errors.Is(err, agentmessaging.ErrBadRequest): // if the reason is not this message, the next ones are refused too: stop
		_ = m.note(ctx, "refused")
	}
	if errors.Is(m.failed, errChanged) { // another worker chose the message too, and was first
		return nil
	}
	return errors.Join(err, m.failed)
}

// message is a row of the table that this worker has chosen.
type message struct {
	db            *sql.DB
	id            int
	agentID, text string
	state         string // the row's state, as far as this worker knows
	failed        error  // the error of the first note that failed; nil: none has failed
}

func oldestPlanned(ctx context.Context, db *sql.DB) (*message, error) {
	m := &message{db: db, state: "planned"}
	row := db.QueryRowContext(ctx, `SELECT id, agent_id, text FROM outbox WHERE state = 'planned' ORDER BY id LIMIT 1`)
	return m, row.Scan(&m.id, &m.agentID, &m.text)
}

// note writes the next state. It fails if another worker has changed the state, so that two
// workers never both send a message. After a note that failed, this worker does not know the
// state, so later notes fail too. A note is written even if ctx has ended, because it records
// what has happened.
func (m *message) note(ctx context.Context, next string) error {
	if m.failed != nil {
		return m.failed
	}
	result, err := m.db.ExecContext(context.WithoutCancel(ctx), `UPDATE outbox SET state = ?, since = ? WHERE id = ? AND state = ?`,
		next, time.Now().Unix(), m.id, m.state)
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	if err == nil && rows == 0 {
		err = fmt.Errorf("message %d is no longer %s: %w", m.id, m.state, errChanged)
	}
	m.state, m.failed = next, err
	return err
}

// observe lets a request that has left finish after the end of ctx. If the service has not
// carried an attempt out, observe notes that before the wait for the next one begins.
func (m *message) observe(ctx context.Context, event agentmessaging.Event) context.Context {
	switch e := event.(type) {
	case agentmessaging.RequestStart:
		return context.WithoutCancel(ctx)
	case agentmessaging.AttemptEnd:
		if e.Verdict == agentmessaging.VerdictNotDone && m.state == "sending" {
			_ = m.note(ctx, "planned")
		}
	}
	return nil
}
