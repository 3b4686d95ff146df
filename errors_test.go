package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// TestCausesOfAnyType, of a transport and of the caller's context, stay in reach of
// errors.Is and panic nowhere. What errors return can be the key of a map.
func TestCausesOfAnyType(t *testing.T) {
	for _, cause := range []error{list{"a", "b"}, holder{[]string{"a"}}, fmt.Errorf("wrapped: %w", holder{list{"a"}})} {
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := answer{Err: cause, Before: func(*http.Request) { cancel(cause) }}
		_, events := eventsOf(func(observer agentmessaging.Option) {
			err := post(ctx, newClient(t, answering(lost), observer))
			for ; err != nil; err = errors.Unwrap(err) {
				assert.NotPanics(t, func() { _ = map[error]bool{err: true} }, "%T", err)
			}
		})
		assert.ErrorIs(t, events[3].(agentmessaging.AttemptEnd).Err, context.Canceled)
		blocked := agentmessaging.WithBeforeSend(t.Context(), func(context.Context, int) error { return cause })
		assert.ErrorContains(t, post(blocked, newClient(t, answering())), "[a")
	}
}

type list []string

func (l list) Error() string { return fmt.Sprint([]string(l)) }

type holder struct{ any }

func (h holder) Error() string { return fmt.Sprint(h.any) }

// answered makes one call that is always answered with a, in virtual time.
func answered(t *testing.T, a answer, do doCall) (c cell, err error) {
	t.Helper()
	made := makeCall(t, do, []answer{a})
	holdsLaws(t, made.Err, "canary")
	if failure := (*agentmessaging.Error)(nil); errors.As(made.Err, &failure) {
		assert.Len(t, made.Sent, failure.Attempts, "%d: what the error says it took", a.Status)
	}
	return cell{len(made.Sent), outcome(made.Err), made.Elapsed}, made.Err
}
