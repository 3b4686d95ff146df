// Package pages runs the Go code of the documentation's pages: pages.gen.go is generated
// from the pages, and Survive sweeps their applications.
package pages

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// SurviveNot sweeps the first bot of docs/sweep.md, which has bugs.
func SurviveNot(t *testing.T) { sweepBot(t, firstAnswer) }

func sweepBot(t *testing.T, answer func(_ context.Context, _ *agentmessaging.Client, _ *slog.Logger, file, question string) error) {
	sweep.Test(t, func(env *sweep.Env) {
		file := filepath.Join(env.Dir, "customer-7")
		env.Reports(answer(env.Context(), env.Client, env.Logger(), file, "Where is my order?"))
	}, sweep.InBubble())
}

// sweepHandler sweeps a handler, which reports an error by its status.
func sweepHandler(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		agent := env.Fake.AddAgent(env.Fake.Key(), fakeserver.Agent{})
		w := httptest.NewRecorder()
		askHandler(env.Client, agent.ID).ServeHTTP(w, httptest.NewRequest("GET", "/ask?q=Hello", nil))
		if w.Code != http.StatusOK {
			env.Reports(errors.New(w.Body.String()))
		}
	}, sweep.InBubble())
}

// Survive sweeps the applications of the pages, which must pass.
func Survive(t *testing.T) {
	t.Run("askHandler", sweepHandler)
	t.Run("enableSMS", func(t *testing.T) {
		sweep.Test(t, func(env *sweep.Env) {
			agent, err := env.Client.CreateAgent(env.Context(), agentmessaging.CreateAgentParams{})
			if err == nil {
				_, err = enableSMS(env.Context(), env.Client, agent.ID)
				env.Logger().Info(advice(err))
			}
			env.Reports(err)
		}, sweep.InBubble())
	})
	t.Run("answer", func(t *testing.T) { sweepBot(t, answer) })
}
