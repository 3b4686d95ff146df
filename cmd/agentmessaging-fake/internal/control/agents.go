package control

import (
	"math"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// agentOf finds the agent of a path.
func (s *Server) agentOf(r *jsonapi.Request) (fakeserver.Agent, error) {
	a, found := s.fake.Agent(r.PathValue("agent_id"))
	if !found {
		return a, jsonapi.NotFound("no agent has this identifier")
	}
	return a, nil
}

type agentView struct {
	fakeserver.Agent
	Exchanges int `json:"exchanges"`
}

func (s *Server) viewOfAgent(a fakeserver.Agent) agentView {
	return agentView{a, s.admin().ExchangeCount(a.ID)}
}

// listAgents shows the newest agents.
func (s *Server) listAgents(r *jsonapi.Request) (any, error) {
	limit, all := r.Query.Int("limit", math.MaxInt32, 1, math.MaxInt32), s.fake.Agents()
	views := []agentView{}
	for _, a := range all[max(0, len(all)-limit):] {
		views = append(views, s.viewOfAgent(a))
	}
	return map[string]any{"agents": views, "total": len(all)}, r.Query.Err
}

func (s *Server) getAgent(r *jsonapi.Request) (any, error) {
	a, err := s.agentOf(r)
	return s.viewOfAgent(a), err
}

func (s *Server) removeAgent(r *jsonapi.Request) (any, error) {
	a, err := s.agentOf(r)
	if err == nil {
		s.fake.RemoveAgent(a.ID)
	}
	return nil, err
}

// addAgent takes an agent as the others are shown; its key is a label.
func (s *Server) addAgent(_ *jsonapi.Request, a fakeserver.Agent) (any, error) {
	key, found := s.admin().KeyLabeled(a.Key)
	if !found {
		return nil, jsonapi.BadRequest("key", noSuchKey)
	}
	return s.viewOfAgent(s.fake.AddAgent(key, a)), nil
}

func (s *Server) setSMS(r *jsonapi.Request, body struct {
	Status      string
	PhoneNumber string `json:"phone_number"`
}) (any, error) {
	a, err := s.agentOf(r)
	if err != nil {
		return nil, err
	}
	s.fake.SetSMS(a.ID, body.Status, body.PhoneNumber)
	return s.getAgent(r)
}

// conversation shows the newest exchanges.
func (s *Server) conversation(r *jsonapi.Request) (any, error) {
	a, err := s.agentOf(r)
	if err != nil {
		return nil, err
	}
	limit, all := r.Query.Int("limit", spec.KeptExchanges, 1, spec.KeptExchanges), s.fake.Conversation(a.ID)
	return map[string]any{"exchanges": all[max(0, len(all)-limit):], "total": len(all)}, r.Query.Err
}

func (s *Server) addExchanges(r *jsonapi.Request, body struct{ Exchanges []fakeserver.Exchange }) (any, error) {
	a, err := s.agentOf(r)
	if err != nil {
		return nil, err
	}
	s.fake.AddExchanges(a.ID, body.Exchanges...)
	return map[string]any{"exchanges": s.fake.Conversation(a.ID)}, nil
}
