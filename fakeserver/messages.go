package fakeserver

import (
	"context"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Message is the argument of a ReplyFunc: a copy that the function may keep and
// change.
type Message struct {
	Agent   Agent
	Text    string
	UserRef string     // "" when not given
	History []Exchange // earlier exchanges with the agent, as Conversation returns them
}

// Reply is the result of a ReplyFunc.
type Reply struct {
	Text     string   // the reply_text; used with Status 0 and 200 only
	Warnings []string // the warnings; an empty list is left out of the answer
	// Status is 0 or 200 for a reply, or an error status that interface 4.8 lists:
	// 400, 401, 402, 404, 429. A 429 carries Retry-After: 1. Any other status fails
	// the test. The message was accepted before and has spent its limits. For a 429
	// that spends nothing, Inject RateLimited.
	Status int
	// Code and Reason fill the error body. An empty Code means the fake's own for
	// the status.
	Code, Reason string
}

// Exchange is a message and the reply to it.
type Exchange struct {
	Text      string    `json:"text"`
	UserRef   string    `json:"user_ref,omitempty"` // "" when not given
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings,omitempty"`
	Time      time.Time `json:"time"` // when the message arrived, by the fake's clock
	TraceID   string    `json:"trace_id,omitempty"`
}

func copied(exchanges *ring[Exchange]) []Exchange {
	c := exchanges.all()
	for i := range c {
		c[i].Warnings = slices.Clone(c[i].Warnings)
	}
	return c
}

// Conversation returns the exchanges with an agent in the order in which they
// were answered: the newest 1,000, or WithCallLimit if that is more. Scripted
// errors are not among them. An unknown agent panics.
func (s *Server) Conversation(agentID string) []Exchange {
	var all []Exchange
	s.withAgent("Conversation", agentID, func(a *agent) { all = copied(&a.exchanges) })
	return all
}

// turn is a message that was accepted and not yet answered.
type turn struct {
	server    *Server
	agent     *agent
	exchange  Exchange
	coldStart time.Duration
	step      step
	message   *Message // for the step's function, if it has one
	flaw      *failure // that the step's function asked for
}

// sendMessage is interface 4.8. An agent in byok mode needs the configuration
// of the key that created it (interface 2.4).
func (s *Server) sendMessage(req *request) (operation, *failure) {
	a, f := s.agentWithBody(req)
	if f != nil {
		return operation{}, f
	}
	if a.LLM.Mode == spec.ModeBYOK && a.owner.byok == nil && !a.ownKey {
		if f := s.config.withoutBYOK(); f != nil {
			return operation{}, f
		}
	}
	return operation{turn: &turn{server: s, agent: a}}, nil
}

// begin copies from the state what the reply needs. The lock is held.
func (t *turn) begin(req *request) {
	t.exchange = Exchange{
		Text:    req.members.text(spec.MessageText),
		UserRef: req.members.text(spec.MessageUserRef),
		Time:    req.now,
		TraceID: req.traceID(),
	}
	if !req.key.warm {
		req.key.warm, t.coldStart = true, t.server.config.coldStart
	}
	t.step = nextStep(req.scripts)
	if t.step.f != nil {
		t.message = &Message{
			Agent: t.agent.copied(), Text: t.exchange.Text, UserRef: t.exchange.UserRef,
			History: copied(&t.agent.exchanges),
		}
	}
}

// wait waits out the cold start, and makes the reply, perhaps by a function of the
// test, so it runs without the lock. A client that leaves meanwhile changes
// nothing: its message was accepted.
func (t *turn) wait(ctx context.Context) {
	memnet.Pause(ctx, t.coldStart)
	r := t.reply()
	t.exchange.ReplyText, t.exchange.Warnings = r.Text, slices.Clone(r.Warnings)
	t.flaw = t.server.scripted(r)
}

// finish keeps the exchange, unless the script wants an error. The lock is held
// again.
func (t *turn) finish() (reply, *failure) {
	if t.flaw != nil {
		return nil, t.flaw
	}
	t.agent.exchanges.add(t.exchange, t.server.config.exchangeLimit())
	return &messageReply{ReplyText: t.exchange.ReplyText, Warnings: t.exchange.Warnings}, nil
}

func (t *turn) reply() (r Reply) {
	switch {
	case t.step.f != nil:
		defer t.server.blame("the ReplyFunc of ", &t.step.of)
		r = t.step.f(*t.message)
	case t.step.scripted:
		r.Text = t.step.text
	default:
		r.Text = defaultReply(t.exchange.Text)
	}
	return r
}

// defaultReply depends on the text alone, so that a test which does not care
// about replies sets nothing up.
func defaultReply(text string) string { return "You wrote: " + text }
