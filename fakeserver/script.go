package fakeserver

import (
	"fmt"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
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

// Script answers messages instead of the default reply. OnMessage makes one. A
// script without steps counts its messages and leaves the default reply.
type Script struct {
	rule
	steps []func() step // guarded by the server's lock; functions, so that printing a script shows no text
}

// step is one reply of a script: a text, or f if it is set. The zero step is
// the default reply.
type step struct {
	scripted bool
	text     string
	f        func(Message) Reply
	of       *rule // the script, for messages
}

// OnMessage starts a script for the messages that all matchers match. Without
// matchers it is for all messages. Of several scripts that match, the newest
// whose turn it is answers; if there is none, the default reply does. A message
// that the service refuses, for example by a limit, uses up no step. A zero
// Matcher panics.
func (s *Server) OnMessage(matchers ...Matcher) *Script {
	sc := &Script{rule: newRule(s, "OnMessage", "", matchers)}
	defer s.lock().Unlock()
	g := s.gen
	g.scripts = append(g.scripts, sc)
	sc.withdraw = func() { g.scripts = without(g.scripts, sc) }
	return sc
}

// Reply adds texts to answer with, in order. The last step of a script repeats.
// Without any text it panics.
func (sc *Script) Reply(texts ...string) *Script {
	if len(texts) == 0 {
		misuse("Reply", "needs at least one text")
	}
	for _, text := range texts {
		sc.add(step{scripted: true, text: text})
	}
	return sc
}

// ReplyFunc adds a step that asks f for the answer. f runs without any lock: it
// may call the fake and wait, and concurrent messages call it concurrently. A
// panic in it fails the test and aborts the connection. A nil f panics.
func (sc *Script) ReplyFunc(f func(Message) Reply) *Script {
	if f == nil {
		misuse("ReplyFunc", "the function is nil")
	}
	return sc.add(step{scripted: true, f: f})
}

func (sc *Script) add(st step) *Script {
	st.of = &sc.rule
	defer sc.server.lock().Unlock()
	sc.steps = append(sc.steps, func() step { return st })
	return sc
}

// Times ends the script once it has answered n messages. On its own, it answers
// the first n messages that match. Times, Nth and Chance may be combined: the
// script answers where all of them allow it. An n below 1 panics.
func (sc *Script) Times(n int) *Script { sc.count("Times", n, &sc.times); return sc }

// Nth makes the script answer only the n-th message that matches, counted from
// 1. A message counts whichever script answers it. An n below 1 panics.
func (sc *Script) Nth(n int) *Script { sc.count("Nth", n, &sc.nth); return sc }

// Chance makes the script answer with probability p. The seed fixes the
// decisions: the n-th message that matches gets the same decision in every run.
// A p outside 0 to 1 panics.
func (sc *Script) Chance(p float64, seed uint64) *Script { sc.setChance(p, seed); return sc }

// Required fails the test if the script has not answered a message until the
// fake is closed or reset.
func (sc *Script) Required() *Script { sc.require(); return sc }

// Hits counts the messages that the script has answered.
func (sc *Script) Hits() int { return sc.countHits() }

// Remove takes the script and its requirement out of the fake. Removing it
// again does nothing.
func (sc *Script) Remove() { sc.remove() }

// nextStep counts a message for all scripts that match it, newest first, and
// returns the step of the first whose turn it is, or the zero step. The lock is
// held.
func nextStep(scripts []*Script) (next step) {
	var answering *Script
	for _, sc := range scripts {
		if sc.due() && answering == nil {
			answering = sc
			next = sc.take()
		}
	}
	return next
}

func (sc *Script) take() step {
	sc.hits++
	if len(sc.steps) == 0 {
		return step{}
	}
	return sc.steps[min(sc.hits, len(sc.steps))-1]()
}

// scripted is the refusal that a ReplyFunc asks for, nil for a reply.
func (s *Server) scripted(r Reply) *service.Refusal {
	if r.Status == 0 || r.Status == http.StatusOK {
		return nil
	}
	refusal := &service.Refusal{Kind: service.Scripted, Status: r.Status, Code: r.Code, Bound: r.Reason}
	if !spec.SendMessage.Lists(r.Status) {
		s.reportf("a ReplyFunc answered with status %d; a message is answered with 200 or one of %v", r.Status, spec.SendMessage.Errors)
		refusal.Status, refusal.Bound = http.StatusInternalServerError, fmt.Sprintf("a ReplyFunc asked for status %d", r.Status)
	}
	if refusal.Status == http.StatusTooManyRequests {
		refusal.Limit, refusal.Wait = spec.KeyMinute, 1
	}
	if refusal.Code == "" {
		refusal.Code = wire.Code(refusal.Status)
	}
	return refusal
}
