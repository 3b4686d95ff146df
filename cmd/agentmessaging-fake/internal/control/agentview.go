package control

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

type agentView struct {
	AgentID      string          `json:"agent_id"`
	Status       string          `json:"status"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	Key          string          `json:"key"`
	SystemPrompt *string         `json:"system_prompt"`
	CustomerRef  *string         `json:"customer_ref"`
	Metadata     json.RawMessage `json:"metadata"` // nil is null
	SMS          *smsView        `json:"sms"`
	LLM          llmView         `json:"llm"`
	Exchanges    int             `json:"exchanges"`
}

type smsView struct {
	Mode        string  `json:"mode"`
	Status      string  `json:"status"`
	PhoneNumber *string `json:"phone_number"`
}

type llmView struct {
	Mode     string  `json:"mode"`
	Tier     string  `json:"tier"`
	Model    *string `json:"model"`
	Provider *string `json:"provider"`
	BaseURL  *string `json:"base_url"`
	Label    *string `json:"label"`
}

func (w *world) viewOfAgent(a fakeserver.Agent) agentView {
	v := agentView{
		AgentID: a.ID, Status: a.Status, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Key: a.Key,
		SystemPrompt: nullable(a.SystemPrompt), CustomerRef: nullable(a.CustomerRef), Metadata: a.Metadata,
		LLM: llmView{
			a.LLM.Mode, a.LLM.Tier, nullable(a.LLM.Model), nullable(a.LLM.Provider), nullable(a.LLM.BaseURL), nullable(a.LLM.Label),
		},
		Exchanges: w.fake.Admin().ExchangeCount(a.ID),
	}
	if a.SMS != nil {
		v.SMS = &smsView{a.SMS.Mode, a.SMS.Status, nullable(a.SMS.PhoneNumber)}
	}
	return v
}

// mentions reports whether a word, in lower case, is in what a person knows an
// agent by.
func mentions(a fakeserver.Agent, word string) bool {
	return slices.ContainsFunc([]string{a.ID, a.CustomerRef, a.SystemPrompt, a.Key}, func(text string) bool {
		return strings.Contains(strings.ToLower(text), word)
	})
}

// listAgents is GET agents.
func (w *world) listAgents(r *request) (any, error) {
	label, only := r.given("key")
	if _, err := w.keyOf("key", label); only && err != nil {
		return nil, err
	}
	limit := r.number("limit", noLimit, 1, noLimit)
	if r.flaw != nil {
		return nil, r.flaw
	}
	views, word, total := []agentView{}, strings.ToLower(r.query.Get("search")), 0
	for _, a := range slices.Backward(w.fake.Agents()) {
		if only && a.Key != label || !mentions(a, word) {
			continue
		}
		if total++; total <= limit {
			views = append(views, w.viewOfAgent(a))
		}
	}
	slices.Reverse(views)
	return map[string]any{"agents": views, "total": total}, nil
}
