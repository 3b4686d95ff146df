package control

import (
	"math"
	"slices"
	"strings"

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

// mentions reports whether a word, in lower case, is in what a person knows an
// agent by.
func mentions(a fakeserver.Agent, word string) bool {
	return slices.ContainsFunc([]string{a.ID, a.CustomerRef, a.SystemPrompt, a.Key}, func(text string) bool {
		return strings.Contains(strings.ToLower(text), word)
	})
}

// listAgents shows the newest agents that mention a word.
func (s *Server) listAgents(r *jsonapi.Request) (any, error) {
	limit, word := r.Query.Int("limit", math.MaxInt32, 1, math.MaxInt32), strings.ToLower(r.Query.Get("search"))
	found := slices.DeleteFunc(s.fake.Agents(), func(a fakeserver.Agent) bool { return !mentions(a, word) })
	views := []agentView{}
	for _, a := range found[max(0, len(found)-limit):] {
		views = append(views, s.viewOfAgent(a))
	}
	return map[string]any{"agents": views, "total": len(found)}, r.Query.Err
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

// conversation shows the newest exchanges, or those after the one with a trace id,
// for a reader who has the others.
func (s *Server) conversation(r *jsonapi.Request) (any, error) {
	a, err := s.agentOf(r)
	limit := r.Query.Int("limit", spec.KeptExchanges, 1, spec.KeptExchanges)
	if err != nil || r.Query.Err != nil {
		return nil, firstOf(err, r.Query.Err)
	}
	all := s.fake.Conversation(a.ID)
	known := -1
	if after := r.Query.Get("after"); after != "" {
		for i, e := range slices.Backward(all) {
			if e.TraceID == after {
				known = i
				break
			}
		}
	}
	from := max(0, len(all)-limit)
	continues := known >= 0 && known+1 >= from
	if continues {
		from = known + 1
	}
	return map[string]any{"exchanges": all[from:], "total": len(all), "continues": continues}, nil
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (s *Server) addExchanges(r *jsonapi.Request, body struct{ Exchanges []fakeserver.Exchange }) (any, error) {
	a, err := s.agentOf(r)
	if err != nil {
		return nil, err
	}
	s.fake.AddExchanges(a.ID, body.Exchanges...)
	return map[string]any{"exchanges": s.fake.Conversation(a.ID)}, nil
}
