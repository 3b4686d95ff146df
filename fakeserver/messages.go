package fakeserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// keptExchanges bounds each conversation.
const keptExchanges = 1000

// Conversation returns the exchanges with an agent in the order in which they
// were answered: the newest 1,000. Scripted errors
// are not among them. An unknown agent panics.
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
}

// sendMessage is interface 4.8. An agent in byok mode needs the configuration
// of its key. Without one the answer is 400, since 409 and 503 are not listed
// here.
func (s *Server) sendMessage(req *request) (operation, *failure) {
	a, f := s.agentWithBody(req)
	if f != nil {
		return operation{}, f
	}
	if status := s.config.byokCleared; a.LLM.Mode == modeBYOK && req.key.byok == nil && !a.ownKey && status != http.StatusOK {
		return operation{}, byokNotConfigured(status, spec.LLMMode)
	}
	t := &turn{server: s, agent: a}
	return operation{act: func() reply { t.begin(req); return nil }, then: t.finish}, nil
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

// finish waits out the cold start, makes the reply and keeps the exchange. A
// client that leaves meanwhile changes nothing: its message was accepted.
func (t *turn) finish(ctx context.Context) (reply, *failure) {
	memnet.Pause(ctx, t.coldStart)
	r := t.reply()
	if flaw := t.server.scripted(r); flaw != nil {
		return nil, flaw
	}
	t.exchange.ReplyText, t.exchange.Warnings = r.Text, slices.Clone(r.Warnings)
	t.server.locked(func(*world) { t.agent.exchanges.add(t.exchange, keptExchanges) })
	return &messageReply{ReplyText: r.Text, Warnings: slices.Clone(r.Warnings)}, nil
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

// enable asks for an SMS channel, in place of the one that there may be, at
// creation or later. statuses is where each mode leads: the interface shows no
// transitions (section 3). SetSMS makes any other status.
func (a *agent) enable(mode string, statuses map[string]string) {
	a.SMS = &SMS{Mode: mode, Status: statuses[mode]}
	if a.SMS.Status == "active" {
		a.SMS.PhoneNumber = phoneNumber(a.number)
	}
}

// phoneNumber is one of the hundred numbers that are set aside for fiction.
func phoneNumber(n int) string { return fmt.Sprintf("+120255501%02d", n%100) }

// channel is the channel in the answer to reading: interface 4.7.
func (a *agent) channel() *smsWire {
	if a.SMS == nil {
		return nil
	}
	return &smsWire{Status: a.SMS.Status, PhoneNumber: a.SMS.PhoneNumber}
}

// channelStatus is the channel in the answer to creation: interface 4.6.
func (a *agent) channelStatus() *smsWire {
	if a.SMS == nil {
		return nil
	}
	return &smsWire{Status: a.SMS.Status}
}

// enableSMS is interface 4.9.
func (s *Server) enableSMS(req *request) (operation, *failure) {
	a, f := s.agentWithBody(req)
	if f != nil {
		return operation{}, f
	}
	return operation{act: func() reply {
		a.enable(req.members.text(spec.SMSChannelMode), s.config.smsStatus)
		a.UpdatedAt = req.now
		return &channelReply{Status: a.SMS.Status}
	}}, nil
}

// SetSMS gives an agent's SMS channel a status of interface 3 (disabled,
// needs_compliance, pending, active, needs_setup), as the service does in its
// own time. Reading the agent then shows phoneNumber; "" shows none. An unknown
// agent or status panics.
func (s *Server) SetSMS(agentID, status, phoneNumber string) {
	if !slices.Contains(spec.SMSStatuses, status) {
		misuse("SetSMS", "unknown status %s; the statuses are %s", quoteName(status), strings.Join(spec.SMSStatuses, ", "))
	}
	now := s.now()
	s.withAgent("SetSMS", agentID, func(a *agent) {
		if a.SMS == nil {
			a.SMS = new(SMS)
		}
		a.SMS.Status, a.SMS.PhoneNumber = status, phoneNumber
		a.UpdatedAt = now
	})
}
