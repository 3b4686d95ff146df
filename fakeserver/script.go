package fakeserver

import (
	"fmt"
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Reply is what a ReplyFunc answers.
type Reply struct {
	Text     string   // the reply_text; used with Status 0 and 200 only
	Warnings []string // the warnings; none are left out of the answer
	// Status is 0 or 200 for a reply, or an error status that interface 4.8
	// lists: 400, 401, 402, 404, 429. A 429 carries Retry-After: 1. Any other
	// fails the test. Whatever it is, the message was accepted before, and has
	// spent its limits: for a 429 that has not, Inject RateLimited.
	Status int
	// Code and Reason are the error and the reason of an error's body. The
	// zero Code means the one that the fake itself uses with the status.
	Code, Reason string
}

// Script answers messages in place of the default reply. OnMessage makes one.
// A script without steps matches and counts, and leaves the default reply.
type Script struct {
	rule
	steps []func() step // the server's lock guards it; functions, since those print without their texts
}

// step is one reply of a script: a text, or a function where f is set. The
// zero step is the default reply.
type step struct {
	scripted bool
	text     string
	f        func(Message) Reply
	of       *rule // the script, for messages
}

// OnMessage starts a script for the messages that all matchers match; without
// matchers, for all. Where several scripts match, the one that was made last
// answers, if it is its turn; else the one before it, and behind them all the
// default reply. Only messages that the service accepts count: one that is
// refused, by a limit for example, uses up no step. A zero Matcher panics.
func (s *Server) OnMessage(matchers ...Matcher) *Script {
	sc := &Script{rule: newRule(&s.mu, "OnMessage", "", matchers)}
	s.locked(func(w *world) { w.scripts.add(sc) })
	return sc
}

// Reply adds texts to answer with, in order. The last step of a script
// repeats. No text at all panics.
func (sc *Script) Reply(texts ...string) *Script {
	if len(texts) == 0 {
		misuse("Reply", "needs at least one text")
	}
	for _, text := range texts {
		sc.add(step{scripted: true, text: text})
	}
	return sc
}

// ReplyFunc adds a step that asks f for the answer. f runs without any lock:
// it may call the fake, wait, and is called concurrently by concurrent calls.
// A panic in it fails the test and aborts the connection. A nil f panics.
func (sc *Script) ReplyFunc(f func(Message) Reply) *Script {
	if f == nil {
		misuse("ReplyFunc", "the function is nil")
	}
	return sc.add(step{scripted: true, f: f})
}

func (sc *Script) add(st step) *Script {
	st.of = &sc.rule
	sc.change(func() { sc.steps = append(sc.steps, func() step { return st }) })
	return sc
}

// Times ends the script once it has answered n messages: on its own, it
// answers the first n that match. Times, Nth and Chance may be combined: the
// script answers where all of them allow it. Less than 1 panics.
func (sc *Script) Times(n int) *Script { sc.setTimes(n); return sc }

// Nth makes the script answer only the n-th message that matches, counted from
// 1. A message counts whichever script answers it. Less than 1 panics.
func (sc *Script) Nth(n int) *Script { sc.setNth(n); return sc }

// Chance makes the script answer with probability p. The decisions follow from
// the seed: the n-th message that matches meets the same decision in every
// run. A p outside 0 to 1 panics.
func (sc *Script) Chance(p float64, seed uint64) *Script { sc.setChance(p, seed); return sc }

// Required makes a script that was never used until the fake is closed or
// reset fail the test.
func (sc *Script) Required() *Script { sc.require(); return sc }

// Hits is how many messages the script has answered.
func (sc *Script) Hits() int { return sc.hitCount() }

// Remove takes the script out of the fake, with its requirement. Removing it
// again does nothing.
func (sc *Script) Remove() { sc.remove() }

// nextStep counts a message for the scripts that match it, the newest first,
// and returns the step of the first whose turn it is; none means the zero
// step. The lock is held.
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

// take counts an answer and returns its step.
func (sc *Script) take() step {
	sc.hits++
	if len(sc.steps) == 0 {
		return step{}
	}
	return sc.steps[min(sc.hits, len(sc.steps))-1]()
}

// scripted is the error that a ReplyFunc asks for.
func (s *Server) scripted(r Reply) *failure {
	f := &failure{status: r.Status, code: r.Code, reason: r.Reason}
	if !spec.SendMessage.Lists(r.Status) {
		s.reportf("a ReplyFunc answered with status %d; a message is answered with 200 or one of %v", r.Status, spec.SendMessage.Errors)
		f.status, f.reason = http.StatusInternalServerError, fmt.Sprintf("a ReplyFunc asked for status %d", r.Status)
	}
	if f.code == "" {
		f.code = codes[r.Status]
	}
	if f.status == http.StatusTooManyRequests {
		f.limit, f.wait = spec.KeyMinute, 1
	}
	return f
}
