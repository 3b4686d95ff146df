package control

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const maxAgents = 100_000

type agent struct {
	*Server
	fakeserver.Agent
}

// ofAgent finds the agent of a path for an act.
func ofAgent(act func(agent, *request) (any, error)) handler {
	return locked(func(s *Server, r *request) (any, error) {
		a, found := s.fake.Agent(r.param("agent_id"))
		if !found {
			return nil, notFound("no agent has this identifier")
		}
		return act(agent{s, a}, r)
	})
}

type agentView struct {
	fakeserver.Agent
	Exchanges int `json:"exchanges"`
}

func (s *Server) viewOfAgent(a fakeserver.Agent) agentView {
	return agentView{a, s.admin().ExchangeCount(a.ID)}
}

// mentions reports whether a word, in lower case, is in what a person knows an
// agent by.
func mentions(a fakeserver.Agent, word string) bool {
	return slices.ContainsFunc([]string{a.ID, a.CustomerRef, a.SystemPrompt, a.Key}, func(text string) bool {
		return strings.Contains(strings.ToLower(text), word)
	})
}

// listAgents is GET agents.
func (s *Server) listAgents(r *request) (any, error) {
	label, only := r.given("key")
	if _, err := s.keyOf("key", label); only && err != nil {
		return nil, err
	}
	limit := r.number("limit", noLimit, 1, noLimit)
	if r.flaw != nil {
		return nil, r.flaw
	}
	views, word, total := []agentView{}, strings.ToLower(r.query.Get("search")), 0
	for _, a := range slices.Backward(s.fake.Agents()) {
		if only && a.Key != label || !mentions(a, word) {
			continue
		}
		if total++; total <= limit {
			views = append(views, s.viewOfAgent(a))
		}
	}
	slices.Reverse(views)
	return map[string]any{"agents": views, "total": total}, nil
}

// get is GET agents/{agent_id}.
func (a agent) get(*request) (any, error) { return a.viewOfAgent(a.Agent), nil }

// remove is DELETE agents/{agent_id}.
func (a agent) remove(*request) (any, error) {
	a.fake.RemoveAgent(a.ID)
	return nil, nil
}

// newAgent is the body of POST agents.
type newAgent struct {
	Key          string          `json:"key" check:"required"`
	AgentID      string          `json:"agent_id" check:"agent_id"`
	Status       string          `json:"status" check:"short"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	SystemPrompt string          `json:"system_prompt" check:"system_prompt"`
	CustomerRef  string          `json:"customer_ref" check:"customer_ref"`
	Metadata     json.RawMessage `json:"metadata" check:"metadata"`
	SMS          *newSMS         `json:"sms"`
	LLM          newLLM          `json:"llm"`
}

type newSMS struct {
	Mode        string `json:"mode" check:"sms_mode"`
	Status      string `json:"status" check:"sms_status"`
	PhoneNumber string `json:"phone_number" check:"phone"`
}

type newLLM struct {
	Mode     string `json:"mode" check:"llm.mode"`
	Tier     string `json:"tier" check:"llm.tier"`
	Model    string `json:"model" check:"llm.model"`
	Provider string `json:"provider" check:"llm.provider"`
	BaseURL  string `json:"base_url" check:"llm.base_url"`
	Label    string `json:"label" check:"llm.label"`
}

func (b newAgent) flaw() error {
	switch {
	case b.SMS != nil && b.SMS.Mode == "" && b.SMS.Status == "":
		return badRequest("sms", "needs a mode or a status")
	case b.AgentID == "." || b.AgentID == "..":
		return badRequest("agent_id", "no path can name it")
	}
	return nil
}

// addAgent is POST agents.
func (s *Server) addAgent(body newAgent) (any, error) {
	key, err := s.keyOf("key", body.Key)
	if err != nil {
		return nil, err
	}
	if err := s.roomFor(body.AgentID); err != nil {
		return nil, err
	}
	return s.add(key, fakeserver.Agent{
		ID: body.AgentID, Status: body.Status, CreatedAt: body.CreatedAt, UpdatedAt: body.UpdatedAt,
		SystemPrompt: body.SystemPrompt, CustomerRef: body.CustomerRef, Metadata: body.Metadata,
		SMS: (*fakeserver.SMS)(body.SMS), LLM: fakeserver.LLM(body.LLM),
	})
}

// add puts an agent in place. All but one thing was checked that AddAgent
// panics for: a call of the service may take the identifier meanwhile.
func (s *Server) add(key string, a fakeserver.Agent) (_ any, err error) {
	defer func() {
		if recover() != nil {
			err = s.roomFor(a.ID)
		}
	}()
	return s.viewOfAgent(s.fake.AddAgent(key, a)), nil
}

// roomFor refuses an agent that there cannot be.
func (s *Server) roomFor(agentID string) error {
	if _, taken := s.fake.Agent(agentID); taken {
		return conflict("agent_id: there is an agent with this identifier already")
	}
	if s.admin().AgentCount() >= maxAgents {
		return conflict("there are %d agents already, and no more are added; POST reset forgets them", maxAgents)
	}
	return nil
}

type smsState struct {
	Status      string `json:"status" check:"required sms_status"`
	PhoneNumber string `json:"phone_number" check:"phone"`
}

// setSMS is PUT agents/{agent_id}/sms.
func (a agent) setSMS(body smsState) (any, error) {
	a.fake.SetSMS(a.ID, body.Status, body.PhoneNumber)
	changed, _ := a.fake.Agent(a.ID)
	return a.viewOfAgent(changed), nil
}
