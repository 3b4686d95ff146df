package fakeserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Agent is an agent as the fake keeps it: interface 2.2 and 2.3. The fake keeps
// the provider key of its creation only encrypted, and not here.
type Agent struct {
	ID           string          `json:"agent_id"`
	Status       string          `json:"status"` // active, unless AddAgent was given another
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	Key          string          `json:"key"` // label of the API key that created it, as in Call.Key
	SystemPrompt string          `json:"system_prompt,omitempty"`
	CustomerRef  string          `json:"customer_ref,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"` // compact JSON; nil when not given
	SMS          *SMS            `json:"sms,omitempty"`      // nil until a call or SetSMS makes a channel
	LLM          LLM             `json:"llm"`
}

// LLM is an agent's language-model configuration without the provider key:
// interface 2.3. Mode and Tier hold the documented defaults when not given.
type LLM struct {
	Mode     string `json:"mode"`
	Tier     string `json:"tier"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`
	Label    string `json:"label,omitempty"`
}

type agent struct {
	Agent
	number    int
	owner     *apiKey
	ownKey    bool // its provider key came with its creation, and is not stored for others
	exchanges ring[Exchange]
}

func (a Agent) copied() Agent {
	a.Metadata = slices.Clone(a.Metadata)
	if a.SMS != nil {
		sms := *a.SMS
		a.SMS = &sms
	}
	return a
}

// createAgent is interface 4.6.
func (s *Server) createAgent(req *request) (operation, *failure) {
	if f := s.refuseAgent(req); f != nil {
		return operation{}, f
	}
	_, setsKey := req.members.get(spec.LLMAPIKey)
	return operation{setsBYOK: setsKey, act: func() reply { // rule 2
		if setsKey && s.config.creationStoresKey {
			req.key.byok = s.newBYOK(req, agentFields)
		}
		a := s.addAgent(req)
		req.record.call.Created = a.ID
		a.ownKey = setsKey && !s.config.creationStoresKey
		return &createdReply{AgentID: a.ID, Status: a.Status, SMS: a.channelStatus()}
	}}, nil
}

// refuseAgent checks the rules of creation that need the state or more than one
// field. All are wrong bodies: section 4.6 lists no other status for them.
func (s *Server) refuseAgent(req *request) *failure {
	_, hasKey := req.members.get(spec.LLMAPIKey)
	_, hasProvider := req.members.get(spec.LLMProvider)
	metadata := req.members.text(spec.Metadata)
	switch {
	case req.malformed != nil:
		return req.malformed
	case hasKey && !hasProvider:
		return badRequest(spec.LLMProvider.Path, "is required when llm.api_key is given")
	case s.config.length(metadata) > s.config.metadataCap:
		return badRequest(spec.Metadata.Path, fmt.Sprintf("at most %d characters of compact JSON", s.config.metadataCap))
	case hasKey && req.world.byokUnavailable:
		return byokUnavailable(spec.CreateAgent, spec.LLMAPIKey)
	case req.members.text(spec.LLMMode) == spec.ModeBYOK && !hasKey && req.key.byok == nil:
		return byokNotConfigured(spec.CreateAgent, spec.LLMMode) // rule 1
	}
	return nil
}

func (s *Server) addAgent(req *request) *agent {
	m := req.members
	a := Agent{
		SystemPrompt: m.text(spec.SystemPrompt),
		CustomerRef:  m.text(spec.CustomerRef),
		LLM: LLM{
			Mode: m.text(spec.LLMMode), Tier: m.text(spec.LLMTier), Model: m.text(spec.LLMModel),
			Provider: m.text(spec.LLMProvider), BaseURL: m.text(spec.LLMBaseURL), Label: m.text(spec.LLMLabel),
		},
	}
	if metadata, given := m.get(spec.Metadata); given {
		a.Metadata = json.RawMessage(metadata)
	}
	if mode, given := m.get(spec.AgentSMSMode); given {
		a.SMS = &SMS{Mode: mode}
	}
	return req.world.add(req.key, a, req.now, s.config.smsStatus)
}

// getAgent is interface 4.7.
func (s *Server) getAgent(req *request) (operation, *failure) {
	a, f := s.agentOf(req)
	if f != nil {
		return operation{}, f
	}
	return operation{act: func() reply {
		return &agentReply{
			AgentID:   a.ID,
			Status:    a.Status,
			CreatedAt: s.config.time(a.CreatedAt),
			UpdatedAt: s.config.time(a.UpdatedAt),
			SMS:       a.channel(),
		}
	}}, nil
}

// agentOf finds the agent of a path. Our decision, the interface is silent: a
// key that did not create the agent does not find it.
func (s *Server) agentOf(req *request) (*agent, *failure) {
	a := req.world.agents[req.agentID]
	if a == nil || a.owner != req.key && s.config.hidesAgents() {
		return nil, noSuchAgent
	}
	return a, nil
}

func (s *Server) agentWithBody(req *request) (*agent, *failure) {
	a, unknown := s.agentOf(req)
	if req.malformed != nil && (unknown == nil || s.config.bodyBeforeAgent) {
		return nil, req.malformed
	}
	return a, unknown
}

// Agents returns copies of all agents, of every key, in the order of creation.
func (s *Server) Agents() []Agent {
	return look(s, func(w *world) []Agent {
		all := make([]Agent, 0, len(w.ordered))
		for _, a := range w.ordered {
			all = append(all, a.copied())
		}
		return all
	})
}

// Agent returns a copy of the agent with this identifier, whichever key
// created it, and whether there is one.
func (s *Server) Agent(agentID string) (copied Agent, found bool) {
	found = with(s, func(w *world) *agent { return w.agents[agentID] }, func(a *agent) { copied = a.copied() })
	return copied, found
}

// RemoveAgent makes an agent be gone: every later call to it is answered 404. An
// unknown agent panics.
func (s *Server) RemoveAgent(agentID string) {
	s.withAgent("RemoveAgent", agentID, func(a *agent) {
		delete(s.world.agents, agentID)
		s.world.ordered = without(s.world.ordered, a)
	})
}

// withAgent runs f on the agent under the lock. An unknown agent panics, after
// the lock is released.
func (s *Server) withAgent(method, agentID string, f func(*agent)) {
	if !with(s, func(w *world) *agent { return w.agents[agentID] }, f) {
		misuse(method, "no agent has the identifier %s; Agents lists all", quoteName(agentID))
	}
}
