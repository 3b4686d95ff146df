package control

import (
	"math"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

type agentView struct {
	fakeserver.Agent
	Exchanges int `json:"exchanges"`
}

func (s *Server) viewOfAgent(a fakeserver.Agent) agentView {
	return agentView{a, s.admin.ExchangeCount(a.ID)}
}

// listAgents shows the newest agents.
func (s *Server) listAgents(r *request) (any, error) {
	limit, all := r.Query.Int("limit", math.MaxInt32, 1, math.MaxInt32), s.fake.Agents()
	views := []agentView{}
	for _, a := range all[max(0, len(all)-limit):] {
		views = append(views, s.viewOfAgent(a))
	}
	return map[string]any{"agents": views, "total": len(all)}, nil
}

func (s *Server) getAgent(r *request) (any, error) {
	return s.viewOfAgent(r.agent), nil
}

func (s *Server) removeAgent(r *request) (any, error) {
	s.fake.RemoveAgent(r.agent.ID)
	return nil, nil
}

// addAgent takes an agent as the others are shown; its key is a label.
func (s *Server) addAgent(_ *request, a fakeserver.Agent) (any, error) {
	key, found := s.admin.KeyLabeled(a.Key)
	if !found {
		return nil, jsonapi.BadRequest("key", noSuchKey)
	}
	return s.viewOfAgent(s.fake.AddAgent(key, a)), nil
}

func (s *Server) setSMS(r *request, body struct {
	Status      string
	PhoneNumber string `json:"phone_number"`
}) (any, error) {
	s.fake.SetSMS(r.agent.ID, body.Status, body.PhoneNumber)
	a, _ := s.fake.Agent(r.agent.ID)
	return s.viewOfAgent(a), nil
}

// conversation shows the newest exchanges.
func (s *Server) conversation(r *request) (any, error) {
	limit, all := r.Query.Int("limit", spec.KeptExchanges, 1, spec.KeptExchanges), s.fake.Conversation(r.agent.ID)
	return map[string]any{"exchanges": all[max(0, len(all)-limit):], "total": len(all)}, nil
}

func (s *Server) addExchanges(r *request, body struct{ Exchanges []fakeserver.Exchange }) (any, error) {
	s.fake.AddExchanges(r.agent.ID, body.Exchanges...)
	return map[string]any{"exchanges": s.fake.Conversation(r.agent.ID)}, nil
}
