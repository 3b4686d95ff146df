package control

import (
	"cmp"
	"errors"
	"math"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/rules"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// listKeys answers GET keys, in the order of issue.
func (s *Server) listKeys(*request) (any, error) {
	return map[string]any{"keys": s.admin.Keys()}, nil
}

// issueKey makes a key. Only its answer shows the key's text. dashboard is true if it is
// left out.
func (s *Server) issueKey(_ *request, body struct {
	Plan      fakeserver.Plan
	Dashboard *bool
}) (any, error) {
	text := s.fake.IssueKey(fakeserver.KeyOptions{Plan: body.Plan, NotDashboard: body.Dashboard != nil && !*body.Dashboard})
	keys := s.admin.Keys()
	k := keys[len(keys)-1] // still the new key, since no other handler runs meanwhile
	return map[string]any{"label": k.Label, "key": text, "plan": k.Plan, "dashboard": k.Dashboard}, nil
}

// changeKey moves a key to another plan, revokes it or makes it valid again. Both
// members may be given at once.
func (s *Server) changeKey(r *request, body struct {
	Plan    fakeserver.Plan
	Revoked *bool
}) (any, error) {
	if body.Plan == "" && body.Revoked == nil {
		return nil, errors.New("body: needs plan or revoked")
	}
	if body.Plan != "" {
		s.fake.SetPlan(r.keyText, body.Plan)
		r.key.Plan = string(body.Plan)
	}
	if body.Revoked != nil {
		r.key.Revoked = *body.Revoked
		act := s.fake.ReinstateKey
		if r.key.Revoked {
			act = s.fake.RevokeKey
		}
		act(r.keyText)
	}
	return r.key, nil
}

// limitView is a limit at this moment. Max and Left are null if the limit is off. OpensAt
// is null while the limit lets calls through.
type limitView struct {
	// LimitKey is the limit's name in package fakeserver. A 429 may have another limit_key,
	// by a decision.
	LimitKey fakeserver.Limit `json:"limit_key"`
	Max      *int             `json:"max"`
	// Used is how many calls count now, Left how many may still be made. Left is 0 for a
	// limit that POST exhaust closed, whatever Used is.
	Used int  `json:"used"`
	Left *int `json:"left"`
	// Window is the length of the window as Go writes it, such as 1m0s.
	Window string `json:"window"`
	// OpensAt is when the next call passes, by the fake's clock.
	OpensAt *time.Time `json:"opens_at"`
}

// keyDetails is a key with its limits and its provider key's configuration; BYOK is null if
// there is none.
type keyDetails struct {
	fakeadmin.Key
	Address string           `json:"address"`
	Limits  []limitView      `json:"limits"`
	BYOK    *fakeserver.BYOK `json:"byok"`
}

// getKey shows a key with its limits and its provider key's configuration. The limits per
// address are for the address of the key's last call.
func (s *Server) getKey(r *request) (any, error) {
	address := cmp.Or(r.key.Address, defaultAddress)
	limits := []limitView{}
	// The limits are in the order of spec.Limits, which has their windows.
	for i, l := range s.fake.Limits(r.keyText, fakeserver.FromIP(address)) {
		limits = append(limits, viewOfLimit(l, spec.Limits[i].Window))
	}
	var byok *fakeserver.BYOK
	if stored, set := s.fake.BYOK(r.keyText); set {
		byok = &stored
	}
	return keyDetails{r.key, address, limits, byok}, nil
}

// NoLimit is the maximum of a limit that is off. No program can make so many calls, and
// the number fits an int on every machine.
const NoLimit = math.MaxInt32

// viewOfLimit returns a limit as the interface shows it. While the limit is closed, Left
// is 0, whatever Used is.
func viewOfLimit(l fakeserver.LimitState, window time.Duration) limitView {
	v := limitView{LimitKey: l.Key, Used: l.Used, Window: window.String()}
	// After a change of plan, Used may be more than the present plan allows.
	left := max(0, l.Max-l.Used)
	if !l.Opens.IsZero() {
		v.OpensAt, left = &l.Opens, 0
	}
	if l.Max < NoLimit || left == 0 {
		v.Left = &left
	}
	if l.Max < NoLimit {
		v.Max = &l.Max
	}
	return v
}

// exhaust closes one limit of a key for a window. The client's next call then gets the
// 429.
func (s *Server) exhaust(r *request) (any, error) {
	s.fake.Exhaust(r.keyText, fakeserver.Limit(r.PathValue("limit_key")))
	return nil, nil
}

// setBYOKStore switches the store of provider keys on or off. While it is off, calls that
// need it are answered 503.
func (s *Server) setBYOKStore(_ *request, body struct {
	Available *bool `json:"available"`
}) (any, error) {
	if body.Available == nil {
		return nil, errors.New("available: is required, true or false")
	}
	s.fake.SetBYOKAvailable(*body.Available)
	return body, nil
}

// agentView is an agent with the number of its exchanges, so that a list needs no
// conversations.
type agentView struct {
	fakeserver.Agent
	Exchanges int `json:"exchanges"`
}

// viewOfAgent adds the number of exchanges to an agent.
func (s *Server) viewOfAgent(a fakeserver.Agent) agentView {
	return agentView{a, s.admin.ExchangeCount(a.ID)}
}

// listAgents shows the newest agents, up to limit, in the order of creation, and the
// number of all agents.
func (s *Server) listAgents(r *request) (any, error) {
	limit, all := r.query.Int("limit", math.MaxInt32, 1, math.MaxInt32), s.fake.Agents()
	views := []agentView{}
	for _, a := range all[max(0, len(all)-limit):] {
		views = append(views, s.viewOfAgent(a))
	}
	return map[string]any{"agents": views, "total": len(all)}, nil
}

// getAgent answers GET agents/{agent_id}. resolvePath has found the agent.
func (s *Server) getAgent(r *request) (any, error) {
	return s.viewOfAgent(r.agent), nil
}

// removeAgent deletes an agent: later calls to it are answered 404.
func (s *Server) removeAgent(r *request) (any, error) {
	s.fake.RemoveAgent(r.agent.ID)
	return nil, nil
}

// addAgent adds an agent. The body has the form in which agents are shown, with the label
// of a key. It spends no limit, and no call is recorded.
func (s *Server) addAgent(_ *request, a fakeserver.Agent) (any, error) {
	// A body names a key by its label, like each answer.
	_, key, found := s.admin.KeyLabeled(a.Key)
	if !found {
		return nil, errors.New("key: " + rules.NoSuchKey)
	}
	return s.viewOfAgent(s.fake.AddAgent(key, a)), nil
}

// setSMS changes an SMS channel as the service would do some time later, for example
// after a review.
func (s *Server) setSMS(r *request, body struct {
	Status      string
	PhoneNumber string `json:"phone_number"`
}) (any, error) {
	s.fake.SetSMS(r.agent.ID, body.Status, body.PhoneNumber)
	a, _ := s.fake.Agent(r.agent.ID)
	return s.viewOfAgent(a), nil
}

// conversation shows the newest exchanges, in the order in which they were answered.
func (s *Server) conversation(r *request) (any, error) {
	limit, all := r.query.Int("limit", decisions.KeptExchanges, 1, decisions.KeptExchanges), s.fake.Conversation(r.agent.ID)
	return map[string]any{"exchanges": all[max(0, len(all)-limit):], "total": len(all)}, nil
}

// addExchanges adds exchanges and answers with the whole conversation. It refuses a body
// without exchanges, because its sender believes that it has added some.
func (s *Server) addExchanges(r *request, body struct{ Exchanges []fakeserver.Exchange }) (any, error) {
	if len(body.Exchanges) == 0 {
		return nil, errors.New("exchanges: give at least one")
	}
	s.fake.AddExchanges(r.agent.ID, body.Exchanges...)
	return map[string]any{"exchanges": s.fake.Conversation(r.agent.ID)}, nil
}
