package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// TestObserversOfSiblings: what With adds hears of its own client's calls alone.
func TestObserversOfSiblings(t *testing.T) {
	client := newClient(t, answering(okAnswer))
	types, _ := eventsOf(func(observer agentmessaging.Option) {
		other, err := client.With(observer)
		require.NoError(t, err)
		_, err = client.With(agentmessaging.WithObserver(&reporter{t: t, reports: new(strings.Builder)})) // takes no place in the other's list
		require.NoError(t, err)
		require.NoError(t, post(t.Context(), other))
		require.NoError(t, post(t.Context(), client))
	})
	assert.Equal(t, "CallStart AttemptStart RequestStart AttemptEnd CallEnd ", types)
}

// TestBeforeSend: its error is the call's, and costs no permit. The scenes show when
// it is asked.
func TestBeforeSend(t *testing.T) {
	limiter, full := &limiterStub{}, errors.New("the journal is full")
	refuse := agentmessaging.WithBeforeSend(t.Context(), func(context.Context, int) error { return full })
	client := newClient(t, answering(okAnswer), agentmessaging.WithLimiter(limiter))
	assert.ErrorIs(t, post(refuse, client), full)
	assert.Equal(t, []agentmessaging.AttemptOutcome{{}}, limiter.done, "not sent")
	assert.NoError(t, post(agentmessaging.WithBeforeSend(refuse, nil), client), "the last one counts")
}

// eventsOf makes a call and returns the events that it told, by type in one
// string and in full.
func eventsOf(do func(agentmessaging.Option)) (types string, events []agentmessaging.Event) {
	do(agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		types += strings.TrimPrefix(fmt.Sprintf("%T ", event), "agentmessaging.")
		events = append(events, event)
		return nil
	})))
	return types, events
}

// TestCallInfoOfARefusal: a call that is refused here leaves no facts of an earlier one.
func TestCallInfoOfARefusal(t *testing.T) {
	old := agentmessaging.CallInfo{Attempts: 7, StatusCode: 200}
	_, err := newClient(t, answering()).SendMessage(agentmessaging.WithCallInfo(t.Context(), &old), "agent_1", message{})
	require.ErrorIs(t, err, agentmessaging.ErrInvalid)
	assert.Zero(t, old)
}

// contextHandler sees each record with its context.
type contextHandler struct {
	slog.Handler
	see func(context.Context, slog.Record)
}

func (contextHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	h.see(ctx, r)
	return nil
}
