package fakeserver

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Reply is what a ReplyFunc answers.
type Reply struct {
	Text     string   // the reply_text; used with Status 0 and 200 only
	Warnings []string // the warnings; none are left out of the answer
	// Status is 0 or 200 for a reply, or an error status that interface 4.8
	// lists: 400, 401, 402, 404, 429. A 429 carries Retry-After: 1. Any other
	// fails the test.
	Status int
	// Code and Reason are the error and the reason of an error's body. The
	// zero Code means the one that the fake itself uses with the status.
	Code, Reason string
}

// Script answers messages in place of the default reply. OnMessage makes one.
// A script without steps matches and counts, and leaves the default reply.
type Script struct {
	server   *Server
	matchers []Matcher

	// The server's lock guards what follows.
	steps    []step
	hits     int
	required bool
}

// step is one reply of a script: a text, or a function where f is set. The
// zero step is the default reply.
type step struct {
	scripted bool
	text     string
	f        func(Message) Reply
}

// OnMessage starts a script for the messages that all matchers match; without
// matchers, for all. Where several scripts match, the one that was made last
// answers. Only messages that the service accepts count: one that is refused,
// by a limit for example, uses up no step. A zero Matcher panics.
func (s *Server) OnMessage(matchers ...Matcher) *Script {
	checkMatchers("OnMessage", matchers)
	sc := &Script{server: s, matchers: slices.Clone(matchers)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.world.scripts = append(slices.Clip(s.world.scripts), sc)
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
	sc.server.mu.Lock()
	defer sc.server.mu.Unlock()
	sc.steps = append(sc.steps, st)
	return sc
}

// Required makes a script that was never used until the fake is closed or
// reset fail the test.
func (sc *Script) Required() *Script {
	sc.server.mu.Lock()
	defer sc.server.mu.Unlock()
	sc.required = true
	return sc
}

// Remove takes the script out of the fake, with its requirement. Removing it
// again does nothing.
func (sc *Script) Remove() {
	sc.server.mu.Lock()
	defer sc.server.mu.Unlock()
	w := sc.server.world
	w.scripts = slices.DeleteFunc(slices.Clone(w.scripts), func(other *Script) bool { return other == sc })
}

// Hits is how many messages the script has answered.
func (sc *Script) Hits() int {
	sc.server.mu.Lock()
	defer sc.server.mu.Unlock()
	return sc.hits
}

// next counts a message and returns its step; no script means the zero step.
// The lock is held.
func (sc *Script) next() step {
	if sc == nil {
		return step{}
	}
	sc.hits++
	if len(sc.steps) == 0 {
		return step{}
	}
	return sc.steps[min(sc.hits, len(sc.steps))-1]
}

// choose returns the last script that matches. No lock is held, since matchers
// may be functions of the test.
func (s *Server) choose(scripts []*Script, r *record) (chosen *Script) {
	for i := len(scripts) - 1; i >= 0; i-- {
		matched := false
		s.guard("a matcher of OnMessage", func() { matched = matchesAll(scripts[i].matchers, r) })
		if matched {
			return scripts[i]
		}
	}
	return nil
}

// guard runs a callback of the test. A panic in it fails the test and aborts
// the connection.
func (s *Server) guard(what string, callback func()) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("%s panicked: %v", what, p)
			panic(http.ErrAbortHandler)
		}
	}()
	callback()
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

func (s *Server) scripts() []*Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.scripts
}

// reportUnused reports the required ones that answered nothing.
func (s *Server) reportUnused(scripts []*Script) {
	for i, sc := range scripts {
		s.mu.Lock()
		unused := sc.required && sc.hits == 0
		s.mu.Unlock()
		if unused {
			s.reportf("script %d of %d is required and answered no message", i+1, len(scripts))
		}
	}
}
