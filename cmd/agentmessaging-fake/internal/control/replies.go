package control

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// scriptSpec is the body of POST replies.
type scriptSpec struct {
	Match   match       `json:"match"`
	Replies []replySpec `json:"replies" check:"required"`
	turns
}

type replySpec struct {
	Text     *string  `json:"text,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Status   *int     `json:"status,omitempty"`
	Code     *string  `json:"code,omitempty"`
	Reason   *string  `json:"reason,omitempty"`
}

// readReplies reads the file of --replies.
func readReplies(raw []byte) ([]scriptSpec, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all []scriptSpec
	var one scriptSpec
	var refused *refusal
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		all, refused = decode[[]scriptSpec](raw)
	} else {
		one, refused = decode[scriptSpec](raw)
		all = []scriptSpec{one}
	}
	if refused != nil {
		return nil, fmt.Errorf("%s", refused.Reason)
	}
	return all, nil
}

func (sc *scriptSpec) flaw() *refusal {
	if len(sc.Replies) == 0 {
		return badRequest("replies", "must hold at least one")
	}
	for i, r := range sc.Replies {
		if flaw := r.flaw(indexed("replies", i)); flaw != nil {
			return flaw
		}
	}
	return sc.turns.flaw()
}

func (r *replySpec) flaw(at string) *refusal {
	switch {
	case (r.Text == nil) == (r.Status == nil):
		return badRequest(at, "must have a text, or an error status")
	case r.Text != nil && (r.Code != nil || r.Reason != nil):
		return badRequest(at, "code and reason go with an error status")
	case r.Status != nil && r.Warnings != nil:
		return badRequest(at, "warnings go with a text")
	case r.Status != nil && !slices.Contains(spec.SendMessage.Errors, *r.Status):
		return badRequest(at+".status", "must be one of %v", spec.SendMessage.Errors)
	}
	return first(notEmpty(at+".code", r.Code), notEmpty(at+".reason", r.Reason))
}

func (r *replySpec) reply(fakeserver.Message) fakeserver.Reply {
	return fakeserver.Reply{
		Text: given(r.Text), Warnings: r.Warnings, Status: given(r.Status), Code: given(r.Code), Reason: given(r.Reason),
	}
}

// script puts a script in force.
func (w *world) script(made scriptSpec) (rule[scriptSpec], *refusal) {
	if refused := first(made.flaw(), w.scripts.full()); refused != nil {
		return rule[scriptSpec]{}, refused
	}
	matchers, refused := made.Match.matchers(w)
	if refused != nil {
		return rule[scriptSpec]{}, refused
	}
	closed, open := gate()
	sc := w.fake.OnMessage(append(matchers, closed)...)
	for _, r := range made.Replies {
		sc.ReplyFunc(r.reply)
	}
	apply(sc, made.turns, w.server.options.Seed)
	open()
	return w.scripts.add(made, sc.Hits, sc.Remove), nil
}

type scriptView struct {
	ID string `json:"id"`
	scriptSpec
	Hits int `json:"hits"`
}

func viewOfScript(r rule[scriptSpec]) scriptView { return scriptView{r.id, r.made, r.hits()} }

// listScripts is GET replies.
func (w *world) listScripts(*request) (answer, *refusal) {
	views := []scriptView{}
	for _, r := range w.scripts.list {
		views = append(views, viewOfScript(r))
	}
	return ok(map[string]any{"replies": views})
}

// addScript is POST replies.
func (w *world) addScript(r *request) (answer, *refusal) {
	body, refused := decode[scriptSpec](r.body)
	if refused != nil {
		return answer{}, refused
	}
	made, refused := w.script(body)
	if refused != nil {
		return answer{}, refused
	}
	w.hub.changed(changedReplies)
	return created(viewOfScript(made))
}

// removeScript is DELETE replies/{id}.
func (w *world) removeScript(r *request) (answer, *refusal) {
	if refused := w.scripts.remove(r); refused != nil {
		return answer{}, refused
	}
	w.hub.changed(changedReplies)
	return done()
}
