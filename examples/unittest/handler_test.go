package unittest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// What the application's user sees.
func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, question   string
		prepare          func(*fakeserver.Server)
		code             int
		retryAfter, body string
	}{
		{"answered", "When do you open?", func(f *fakeserver.Server) { f.OnMessage().Reply("We open at nine.") },
			200, "", "We open at nine."},
		{"empty", "", func(*fakeserver.Server) {},
			400, "", "ask a question of 1 to 4000 characters\n"},
		{"day's requests spent", "Hello", func(f *fakeserver.Server) { f.Exhaust(f.Key(), fakeserver.LimitKeyDay) },
			503, "86400", "too many questions at the moment\n"},
		{"key revoked", "Hello", func(f *fakeserver.Server) { f.RevokeKey(f.Key()) },
			502, "", "no answer today\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client, fake := agentmessagingtest.New(t)
			agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
			tt.prepare(fake)
			w := httptest.NewRecorder()
			askHandler(client, agent.ID).ServeHTTP(w, httptest.NewRequest("POST", "/ask", strings.NewReader(tt.question)))
			assert.Equal(t, tt.code, w.Code)
			assert.Equal(t, tt.retryAfter, w.Header().Get("Retry-After"))
			assert.Equal(t, tt.body, w.Body.String())
		})
	}
	w := httptest.NewRecorder()
	refuse(w, &agentmessaging.Error{StatusCode: http.StatusTooManyRequests}) // its deadline passed in line
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
}

// Whatever fails, the user of the application hears of it.
func TestAskSurvives(t *testing.T) {
	sweep.Test(t, func(env *sweep.Env) {
		agent := env.Fake.AddAgent(env.Fake.Key(), fakeserver.Agent{})
		w := httptest.NewRecorder()
		askHandler(env.Client, agent.ID).ServeHTTP(w, httptest.NewRequest("POST", "/ask", strings.NewReader("When do you open?")))
		if w.Code != http.StatusOK {
			env.Reports(errors.New(w.Body.String()))
		}
	})
}
