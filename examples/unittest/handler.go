// Package unittest is an imaginary application, an HTTP handler that asks an agent,
// and its test on the fake.
package unittest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// messenger is what the application needs of the client. *agentmessaging.Client
// has it, and so has whatever else the application may want to use.
type messenger interface {
	SendMessage(ctx context.Context, agentID string, params agentmessaging.MessageParams) (*agentmessaging.Reply, error)
}

// patience is how long the application's users wait for an answer.
const patience = 20 * time.Second

// askHandler answers a question, the request's body, with an agent's reply.
func askHandler(m messenger, agentID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<10))
		if err != nil {
			http.Error(w, "the question is too long", http.StatusRequestEntityTooLarge)
			return
		}
		// A limit that opens later than this is reported at once, not waited for.
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		reply, err := m.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: string(question)})
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, reply.Text)
	})
}

// refuse tells the application's user what they can do about err.
func refuse(w http.ResponseWriter, err error) {
	var e *agentmessaging.Error
	switch {
	case errors.Is(err, agentmessaging.ErrInvalid):
		http.Error(w, "ask a question of 1 to 4000 characters", http.StatusBadRequest)
	case errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &e):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(max(1, e.RetryAfter.Seconds())))))
		http.Error(w, "too many questions at the moment", http.StatusServiceUnavailable)
	default:
		http.Error(w, "no answer today", http.StatusBadGateway)
	}
}
