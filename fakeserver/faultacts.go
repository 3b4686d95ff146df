package fakeserver

import (
	"io"
	"net/http"
	"slices"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// This file applies the faults of the test. For each call, serve calls matchingRules,
// chooseFaults, delayAndChange and chooseAnswer in this order. Package memnet then sends the
// answer, or breaks it off. A call whose connection is refused ends in refuseConnection.

// matchingRules returns the rules that match a call, oldest first. If a matcher fails, it
// returns none. The lock must not be held, since a matcher may be a callback of the test. All
// of them run on one goroutine, because a fake may have many rules.
func (s *Server) matchingRules(c *call, rules []*rule) []*rule {
	if len(rules) == 0 || c.failed != "" {
		return nil
	}
	r, matching := rules[0], []*rule(nil) // r is the rule whose matchers are running
	c.failed = s.runCallback(func() string { return r.callbackName("a matcher") }, func() {
		for _, r = range rules {
			if matchesAll(r.matchers, c.entry) {
				matching = append(matching, r)
			}
		}
	})
	if c.failed != "" {
		return nil
	}
	return matching
}

// chooseFaults decides which of the matching injections act on a call, in one critical
// section, so that each match has its own number. Of the faults that exclude each other the
// newest acts. Every latency and every change acts, so latencies add up.
func (s *Server) chooseFaults(c *call, matching []*rule) {
	defer s.lock().Unlock()
	for _, in := range slices.Backward(matching) {
		combines := in.fault.phase == onTheWay
		// The match counts even if another fault was chosen already, since Nth and Chance count
		// every call that matches.
		if !in.countMatchLocked() || !combines && c.fault != nil {
			continue
		}
		in.countHitLocked()
		c.faultNames = append(c.faultNames, in.fault.name)
		switch {
		case in.fault.change != nil:
			c.changes = append(c.changes, in)
		case combines:
			c.latencies = append(c.latencies, in.fault.delay)
		default:
			c.fault = in.fault
		}
	}
}

// delayAndChange waits out the latencies of a call, runs its changes, and reports whether the
// call arrives at the service. It does not arrive if its client left meanwhile, if a callback
// failed, or if a fault answers instead.
func (s *Server) delayAndChange(r *http.Request, c *call) (arrives bool) {
	if c.faultNames == nil { // no fault acts
		return c.failed == ""
	}
	// net/http notices that a client has left only after the whole body was read, and
	// the fake reads only the start of a body over 1 MiB.
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	if c.latencies != nil {
		for _, d := range c.latencies {
			memnet.Pause(r.Context(), d)
		}
		c.neverArrived, c.now = r.Context().Err() != nil, s.Now()
	}
	for _, in := range c.changes {
		if c.failed == "" {
			c.failed = s.runCallback(func() string { return in.callbackName("the function") }, in.fault.change)
		}
	}
	return c.failed == "" && !c.neverArrived && (c.fault == nil || c.fault.phase == onTheReply)
}

// chooseAnswer chooses the answer for the client, and how it is sent: the service's answer,
// unless a fault replaces or breaks it.
func (s *Server) chooseAnswer(c *call) {
	c.toClient = c.fromService // fromService is empty for a call that never reached the service
	switch {
	case c.failed != "" || c.neverArrived:
		c.fault, c.delivery = nil, noAnswer
	case c.fault != nil:
		c.delivery = c.fault.delivery
		if c.fault.answer != nil {
			c.toClient = c.fault.answer.Encode(c.Request, s.config.behavior, s.Now())
		}
	}
}
