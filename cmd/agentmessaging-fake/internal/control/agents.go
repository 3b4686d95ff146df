package control

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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
		LLM: llmView{a.LLM.Mode, a.LLM.Tier, nullable(a.LLM.Model), nullable(a.LLM.Provider),
			nullable(a.LLM.BaseURL), nullable(a.LLM.Label)},
		Exchanges: w.fake.Admin().ExchangeCount(a.ID),
	}
	if a.SMS != nil {
		v.SMS = &smsView{a.SMS.Mode, a.SMS.Status, nullable(a.SMS.PhoneNumber)}
	}
	return v
}

// agent finds the agent of a path.
func (w *world) agent(r *request) (fakeserver.Agent, *refusal) {
	a, found := w.fake.Agent(r.param("agent_id"))
	if !found {
		return a, notFound("no agent of this world has this identifier")
	}
	return a, nil
}

// listAgents is GET agents.
func (w *world) listAgents(r *request) (answer, *refusal) {
	label, only := r.query["key"]
	if only {
		if _, refused := w.keyOf("key", label[0]); refused != nil {
			return answer{}, refused
		}
	}
	limit, refused := r.number("limit", noLimit, 1, noLimit)
	if refused != nil {
		return answer{}, refused
	}
	views, word, total := []agentView{}, strings.ToLower(r.query.Get("search")), 0
	for _, a := range slices.Backward(w.fake.Agents()) {
		if only && a.Key != label[0] || !mentions(a, word) {
			continue
		}
		if total++; total <= limit {
			views = append(views, w.viewOfAgent(a))
		}
	}
	slices.Reverse(views)
	return ok(map[string]any{"agents": views, "total": total})
}

// mentions reports whether a word, in lower case, is in what a person knows an
// agent by.
func mentions(a fakeserver.Agent, word string) bool {
	return slices.ContainsFunc([]string{a.ID, a.CustomerRef, a.SystemPrompt, a.Key}, func(text string) bool {
		return strings.Contains(strings.ToLower(text), word)
	})
}

// getAgent is GET agents/{agent_id}.
func (w *world) getAgent(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	return ok(w.viewOfAgent(a))
}

// removeAgent is DELETE agents/{agent_id}.
func (w *world) removeAgent(r *request) (answer, *refusal) {
	a, refused := w.agent(r)
	if refused != nil {
		return answer{}, refused
	}
	w.fake.RemoveAgent(a.ID)
	w.hub.changed(changedAgents)
	return done()
}

// agentSpec is the body of POST agents.
type agentSpec struct {
	Key          string          `json:"key" check:"required"`
	AgentID      *string         `json:"agent_id"`
	Status       *string         `json:"status"`
	CreatedAt    *time.Time      `json:"created_at"`
	UpdatedAt    *time.Time      `json:"updated_at"`
	SystemPrompt string          `json:"system_prompt"`
	CustomerRef  string          `json:"customer_ref"`
	Metadata     json.RawMessage `json:"metadata"`
	SMS          *smsSpec        `json:"sms"`
	LLM          llmSpec         `json:"llm"`
}

type smsSpec struct {
	Mode        *string `json:"mode"`
	Status      *string `json:"status"`
	PhoneNumber string  `json:"phone_number"`
}

type llmSpec struct {
	Mode     string `json:"mode"`
	Tier     string `json:"tier"`
	Model    string `json:"model"`
	Provider string `json:"provider"`
	BaseURL  string `json:"base_url"`
	Label    string `json:"label"`
}

// Bounds of what interface 2.3 says nothing about.
const (
	maxAgentID = 256
	maxShort   = 64
	maxAgents  = 100_000
)

// flaw checks what fakeserver.AddAgent panics for.
func (b *agentSpec) flaw() *refusal {
	return first(
		characters("agent_id", b.AgentID, maxAgentID), characters("status", b.Status, maxShort),
		inYears("created_at", b.CreatedAt), inYears("updated_at", b.UpdatedAt),
		inField("system_prompt", b.SystemPrompt, spec.SystemPrompt), inField("customer_ref", b.CustomerRef, spec.CustomerRef),
		inField("llm.mode", b.LLM.Mode, spec.LLMMode), inField("llm.tier", b.LLM.Tier, spec.LLMTier),
		inField("llm.model", b.LLM.Model, spec.LLMModel), inField("llm.provider", b.LLM.Provider, spec.LLMProvider),
		inField("llm.base_url", b.LLM.BaseURL, spec.LLMBaseURL), inField("llm.label", b.LLM.Label, spec.LLMLabel),
		b.metadataFlaw(), b.SMS.flaw(),
	)
}

// characters refuses an empty text and one that is too long.
func characters(name string, text *string, most int) *refusal {
	if text != nil && (*text == "" || utf8.RuneCountInString(*text) > most) {
		return badRequest(name, "must be 1 to %d characters", most)
	}
	return nil
}

func (b *agentSpec) metadataFlaw() *refusal {
	var compact bytes.Buffer
	if b.Metadata != nil {
		_ = json.Compact(&compact, b.Metadata) // decode has accepted it
	}
	if utf8.RuneCount(compact.Bytes()) > metadataCap {
		return badRequest("metadata", "at most %d characters of compact JSON", metadataCap)
	}
	return nil
}

func (s *smsSpec) flaw() *refusal {
	switch {
	case s == nil:
		return nil
	case s.Mode == nil && s.Status == nil:
		return badRequest("sms", "needs a mode or a status")
	case s.Mode != nil && oneOf("sms.mode", *s.Mode, spec.SMSModes) != nil:
		return oneOf("sms.mode", *s.Mode, spec.SMSModes)
	case s.Status != nil && oneOf("sms.status", *s.Status, spec.SMSStatuses) != nil:
		return oneOf("sms.status", *s.Status, spec.SMSStatuses)
	}
	return phoneFlaw("sms.phone_number", s.PhoneNumber)
}

func phoneFlaw(name, number string) *refusal {
	if utf8.RuneCountInString(number) > maxShort {
		return badRequest(name, "at most %d characters", maxShort)
	}
	return nil
}

func (b *agentSpec) agent() fakeserver.Agent {
	a := fakeserver.Agent{
		ID: given(b.AgentID), Status: given(b.Status), CreatedAt: given(b.CreatedAt), UpdatedAt: given(b.UpdatedAt),
		SystemPrompt: b.SystemPrompt, CustomerRef: b.CustomerRef, Metadata: b.Metadata,
		LLM: fakeserver.LLM(b.LLM),
	}
	if b.SMS != nil {
		a.SMS = &fakeserver.SMS{Mode: given(b.SMS.Mode), Status: given(b.SMS.Status), PhoneNumber: b.SMS.PhoneNumber}
	}
	return a
}

// addAgent is POST agents.
func (w *world) addAgent(r *request) (answer, *refusal) {
	body, refused := decode[agentSpec](r.body)
	if refused == nil {
		refused = body.flaw()
	}
	if refused != nil {
		return answer{}, refused
	}
	key, refused := w.keyOf("key", body.Key)
	if refused == nil {
		refused = w.roomFor(given(body.AgentID))
	}
	if refused != nil {
		return answer{}, refused
	}
	a, refused := w.add(key, body.agent())
	if refused != nil {
		return answer{}, refused
	}
	w.hub.changed(changedAgents)
	return created(w.viewOfAgent(a))
}

// add puts an agent in place. All but one thing was checked that AddAgent
// panics for: a call of the service may take the identifier meanwhile.
func (w *world) add(key string, a fakeserver.Agent) (added fakeserver.Agent, refused *refusal) {
	defer func() {
		if recover() != nil {
			refused = w.roomFor(a.ID)
		}
	}()
	return w.fake.AddAgent(key, a), nil
}

// roomFor refuses an agent that there cannot be.
func (w *world) roomFor(agentID string) *refusal {
	if _, taken := w.fake.Agent(agentID); taken {
		return conflict("agent_id: there is an agent with this identifier already")
	}
	switch {
	case agentID == "." || agentID == "..":
		return badRequest("agent_id", "no path can name it")
	case w.fake.Admin().AgentCount() >= maxAgents:
		return conflict("there are %d agents already, and no more are added; POST reset forgets them", maxAgents)
	}
	return nil
}
