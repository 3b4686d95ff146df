// Package pages is the Go of the pages that is run: pages.gen.go is generated from
// them, and Survive sweeps their applications.
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
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// SurviveNot sweeps the first bot of the page, which has bugs.
func SurviveNot(t *testing.T) { sweepBot(t, firstAnswer) }

func sweepBot(t *testing.T, answer func(_ context.Context, _ *agentmessaging.Client, _ *slog.Logger, file, question string) error) {
	sweep.Test(t, func(env *sweep.Env) {
		file := filepath.Join(env.Dir, "customer-7")
		env.Reports(answer(env.Context(), env.Client, env.Logger(), file, "Where is my order?"))
	}, sweep.InBubble())
}

// Survive runs the applications under every fault and every death.
func Survive(t *testing.T) {
	for name, app := range map[string]func(env *sweep.Env, agentID string) error{
		"enableSMS": func(env *sweep.Env, agentID string) error {
			_, err := enableSMS(env.Context(), env.Client, agentID)
			env.Logger().Info(advice(err))
			return err
		},
		"ask": func(env *sweep.Env, agentID string) error {
			w := httptest.NewRecorder()
			if askHandler(env.Client, agentID).ServeHTTP(w, httptest.NewRequest("GET", "/ask?q=Hello", nil)); w.Code != http.StatusOK {
				return errors.New(w.Body.String())
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sweep.Test(t, func(env *sweep.Env) {
				agent, err := env.Client.CreateAgent(env.Context(), agentmessaging.CreateAgentParams{})
				if err == nil {
					err = app(env, agent.ID)
				}
				env.Reports(err)
			}, sweep.InBubble())
		})
	}
	t.Run("answer", func(t *testing.T) {
		t.Parallel()
		sweepBot(t, answer)
	})
}
