package fakeserver

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

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
	sc := &Script{rule: newRule(s.held, "OnMessage", "", matchers)}
	s.locked(func(w *world) { w.scripts.add(sc) })
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
	sc.locked(func() { sc.steps = append(sc.steps, func() step { return st }) })
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
func (sc *Script) Hits() int { return sc.hitCount() }

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

// scripted is the failure that a ReplyFunc asks for, nil for a reply.
func (s *Server) scripted(r Reply) *failure {
	if r.Status == 0 || r.Status == http.StatusOK {
		return nil
	}
	f := &failure{status: r.Status, code: r.Code, reason: r.Reason}
	if !spec.SendMessage.Lists(r.Status) {
		s.reportf("a ReplyFunc answered with status %d; a message is answered with 200 or one of %v", r.Status, spec.SendMessage.Errors)
		f.status, f.reason = http.StatusInternalServerError, fmt.Sprintf("a ReplyFunc asked for status %d", r.Status)
	}
	if f.code == "" {
		f.code = codeOf(f.status)
	}
	if f.status == http.StatusTooManyRequests {
		f.limit, f.wait = spec.KeyMinute, 1
	}
	return f
}

// rules returns all rules: scripts, then injections, each in the order in which
// they were made.
func (s *Server) rules() []*rule {
	return look(s, func(w *world) (all []*rule) {
		for _, sc := range w.scripts.all() {
			all = append(all, &sc.rule)
		}
		for _, in := range append(w.injections.all(), w.refusals.all()...) {
			all = append(all, &in.rule)
		}
		return all
	})
}

func (s *Server) reportUnused(rules []*rule, calls []*record) {
	for _, r := range rules {
		var unused bool
		var matched int
		r.locked(func() { unused, matched = r.required && r.hits == 0, r.matched })
		if unused {
			s.reportf("%s is required and was never used; calls that it matched: %d; %s", r.says, matched, r.nearMiss(calls))
		}
	}
}

// nearMiss names the call that the most matchers of a rule matched, and the
// matchers that refused it. Of equally near calls it takes the last.
func (r *rule) nearMiss(calls []*record) string {
	var nearest *record
	var refused []Matcher
	for _, rec := range slices.Backward(calls) {
		if r.method == "OnMessage" && rec.call.Endpoint != EndpointSendMessage {
			continue
		}
		if missing := refusing(r.matchers, rec); nearest == nil || len(missing) < len(refused) {
			nearest, refused = rec, missing
		}
	}
	if nearest == nil {
		return "no call came near"
	}
	return fmt.Sprintf("nearest: %s, %s", nearest.call, verdict(refused, nearest))
}

func verdict(refused []Matcher, rec *record) string {
	switch {
	case len(refused) > 0:
		return "not matched by " + listed(refused)
	case rec.call.Status != http.StatusOK:
		return "which matches, but was not accepted"
	default:
		return "which matches: it came before the rule was made, or another acted on it"
	}
}
