// Package pages runs the Go code of the documentation's pages: pages.gen.go is generated
// from the pages, and Sweep sweeps its applications.
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

// Sweep sweeps one of the scenarios.
func Sweep(t *testing.T, scenario func(*sweep.Env)) { sweep.Test(t, scenario, sweep.InBubble()) }

// FirstBot is the scenario of the first bot of docs/sweep.md, which has bugs.
var FirstBot = bot(firstAnswer)

func bot(answer func(_ context.Context, _ *agentmessaging.Client, _ *slog.Logger, file, question string) error) func(*sweep.Env) {
	return func(env *sweep.Env) {
		file := filepath.Join(env.Dir, "customer-7")
		env.Reports(answer(env.Context(), env.Client, env.Logger(), file, "Where is my order?"))
	}
}

// Applications are the scenarios of the applications that survive a sweep.
var Applications = map[string]func(*sweep.Env){
	"answer": bot(answer),
	"askHandler": func(env *sweep.Env) {
		agent := env.Fake.AddAgent(env.Fake.Key(), fakeserver.Agent{})
		w := httptest.NewRecorder()
		askHandler(env.Client, agent.ID).ServeHTTP(w, httptest.NewRequest("GET", "/ask?q=Hello", nil))
		if w.Code != http.StatusOK {
			env.Reports(errors.New(w.Body.String())) // the handler reports an error by its status
		}
	},
	"enableSMS": func(env *sweep.Env) {
		agent, err := env.Client.CreateAgent(env.Context(), agentmessaging.CreateAgentParams{})
		if err == nil {
			_, err = enableSMS(env.Context(), env.Client, agent.ID)
			env.Logger().Info(advice(err))
		}
		env.Reports(err)
	},
}
