package control

import (
	"bytes"
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// newScript is the body of POST replies.
type newScript struct {
	Match   match       `json:"match"`
	Replies []replySpec `json:"replies" check:"required"`
	turns
}

type replySpec struct {
	Text     *string  `json:"text,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Status   int      `json:"status,omitempty" check:"reply_status"`
	Code     string   `json:"code,omitempty" check:"filled"`
	Reason   string   `json:"reason,omitempty" check:"filled"`
}

// readReplies reads the file of --replies.
func readReplies(raw []byte) (all []newScript, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		return decode[[]newScript](raw)
	}
	one, err := decode[newScript](raw)
	return []newScript{one}, err
}

func (sc newScript) flaw() error {
	if len(sc.Replies) == 0 {
		return badRequest("replies", "must hold at least one")
	}
	for i, r := range sc.Replies {
		if says := r.flaw(); says != "" {
			return badRequest(fmt.Sprintf("replies[%d]", i), "%s", says)
		}
	}
	return sc.turns.flaw()
}

func (r replySpec) flaw() string {
	switch {
	case (r.Text == nil) == (r.Status == 0):
		return "must have a text, or an error status"
	case r.Text != nil && (r.Code != "" || r.Reason != ""):
		return "code and reason go with an error status"
	case r.Status != 0 && r.Warnings != nil:
		return "warnings go with a text"
	}
	return ""
}

func (r replySpec) reply(fakeserver.Message) fakeserver.Reply {
	return fakeserver.Reply{Text: given(r.Text), Warnings: r.Warnings, Status: r.Status, Code: r.Code, Reason: r.Reason}
}

type scriptView struct {
	ID string `json:"id"`
	newScript
	Hits int `json:"hits"`
}

// listScripts is GET replies.
func (s *Server) listScripts(*request) (any, error) { return s.scripts.shown("replies") }

// addScript is POST replies.
func (s *Server) addScript(made newScript) (any, error) {
	if err := s.scripts.full(); err != nil {
		return nil, err
	}
	matchers, err := made.Match.matchers(s)
	if err != nil {
		return nil, err
	}
	closed, open := gate()
	sc := s.fake.OnMessage(append(matchers, closed)...)
	for _, r := range made.Replies {
		sc.ReplyFunc(r.reply)
	}
	apply(sc, made.turns, s.options.Seed)
	open()
	view := func(id string) any { return scriptView{id, made, sc.Hits()} }
	return s.scripts.add(item{view: view, unmet: func() bool { return made.unmet(sc.Hits()) }, remove: sc.Remove}), nil
}

// removeScripts is DELETE replies.
func (s *Server) removeScripts(*request) (any, error) {
	s.scripts.clear()
	return nil, nil
}

// removeScript is DELETE replies/{id}.
func (s *Server) removeScript(r *request) (any, error) { return s.scripts.drop(r) }
