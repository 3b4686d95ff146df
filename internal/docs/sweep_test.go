package docs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/internal/catalog"
)

// The applications of the pages survive every fault. They stand below, word for
// word as on the pages.
func TestApplicationsOfThePagesSurvive(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // what the applications print is no matter
	require.NoError(t, err)
	shown := os.Stdout
	os.Stdout = null
	t.Cleanup(func() { os.Stdout = shown; null.Close() })
	for _, app := range []struct {
		page, name string
		run        func(env *agentmessagingtest.Env)
	}{
		{"docs/sweep.md", "answer", func(env *agentmessagingtest.Env) {
			env.Reports(answer(env.Context(), env.Client, env.Dir, "customer-7", "Where is my order?"))
		}},
		{"docs/errors.md", "later", func(env *agentmessagingtest.Env) {
			env.Reports(onAgent(env, func(id string) error {
				return later(env.Context(), env.Client, id, "Hello", func(time.Time, string) { env.Logger().Warn("put off") })
			}))
		}},
		{"docs/errors.md", "enableSMS", func(env *agentmessagingtest.Env) {
			env.Reports(onAgent(env, func(id string) error {
				_, err := enableSMS(env.Context(), env.Client, id)
				return err
			}))
		}},
		{"docs/testing.md", "ask", func(env *agentmessagingtest.Env) {
			env.Reports(onAgent(env, func(id string) error {
				w := httptest.NewRecorder()
				if ask(env.Client, id)(w, httptest.NewRequest("GET", "/ask?q=Hello", nil)); w.Code != http.StatusOK {
					return errors.New(w.Body.String())
				}
				return nil
			}))
		}},
	} {
		t.Run(app.name, func(t *testing.T) {
			assert.Contains(t, read(t, app.page), source(t, app.name), "the page has it otherwise")
			agentmessagingtest.Sweep(t, app.run)
		})
	}
}

// The page of the sweep names every fault.
func TestSweepPageNamesEveryFault(t *testing.T) {
	page := read(t, "docs/sweep.md")
	_, names := catalog.Named("")
	for _, name := range append(names, "key_revoked", "plan_ended", "byok_down", "agent_gone", "fails") {
		assert.Contains(t, page, "`"+name+"`")
	}
}

// onAgent calls f with a new agent.
func onAgent(env *agentmessagingtest.Env, f func(id string) error) error {
	agent, err := env.Client.CreateAgent(env.Context(), agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	return f(agent.ID)
}

// source is that of a function of this file.
func source(t *testing.T, name string) string {
	text := read(t, "internal/docs/sweep_test.go")
	_, function, found := strings.Cut(text, "\nfunc "+name+"(")
	require.True(t, found)
	function, _, _ = strings.Cut(function, "\n}\n")
	return "\nfunc " + name + "(" + function + "\n}\n"
}

func answer(ctx context.Context, client *agentmessaging.Client, dir, customer, question string) error {
	file := filepath.Join(dir, customer)
	id, err := agentOf(ctx, client, file, customer)
	if err != nil {
		return err
	}
	reply, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: question})
	if errors.Is(err, agentmessaging.ErrNotFound) { // the agent is gone: the next question gets a new one
		return errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	fmt.Println(reply.Text)
	return nil
}

func agentOf(ctx context.Context, client *agentmessaging.Client, file, customer string) (string, error) {
	if id, err := os.ReadFile(file); err == nil {
		return string(id), nil
	}
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{CustomerRef: customer})
	if err != nil {
		return "", err
	}
	return agent.ID, os.WriteFile(file, []byte(agent.ID), 0o600)
}

func later(ctx context.Context, client *agentmessaging.Client, agentID, text string, queue func(at time.Time, text string)) error {
	_, err := client.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: text})
	var e *agentmessaging.Error
	if errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &e) {
		queue(time.Now().Add(max(e.RetryAfter, time.Second)), text)
		return nil
	}
	return err
}

func enableSMS(ctx context.Context, client *agentmessaging.Client, agentID string) (*agentmessaging.SMS, error) {
	sms, err := client.EnableSMS(ctx, agentID, agentmessaging.SMSModeManaged)
	if !errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		return sms, err
	}
	agent, readErr := client.GetAgent(ctx, agentID)
	if readErr != nil {
		return nil, errors.Join(err, readErr)
	}
	if agent.SMS == nil || agent.SMS.Status == agentmessaging.SMSStatusDisabled {
		return client.EnableSMS(ctx, agentID, agentmessaging.SMSModeManaged) // it was not carried out
	}
	return agent.SMS, nil
}

type messenger interface {
	SendMessage(ctx context.Context, agentID string, params agentmessaging.MessageParams) (*agentmessaging.Reply, error)
}

func ask(m messenger, agentID string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		defer cancel()
		reply, err := m.SendMessage(ctx, agentID, agentmessaging.MessageParams{Text: r.FormValue("q")})
		if err != nil {
			http.Error(w, "no answer", http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, reply.Text)
	}
}
