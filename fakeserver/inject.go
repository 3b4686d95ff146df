package fakeserver

import (
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Injection is a fault and the calls that it acts on. Inject makes one.
type Injection struct {
	rule
	fault *fault
}

// Inject makes a fault act on the calls that all matchers match, even on calls
// that the service would refuse. Without matchers it acts on all calls. It is
// in force at once and until Remove or Reset, unless Times, Nth, From or
// Chance narrow it. It may come too late for calls that are already under way.
//
// Where several injections match a call, their latencies add up. Of the other
// faults only one acts: the newest whose turn it is. The zero Fault and a zero
// Matcher panic.
func (s *Server) Inject(fault Fault, matchers ...Matcher) *Injection {
	if fault.f == nil {
		misuse("Inject", "the fault is the zero Fault; %s make faults", faultMakers)
	}
	in := &Injection{rule: newRule(s.held, "Inject", fault.String(), matchers), fault: fault.f}
	s.locked(func(w *world) {
		if in.fault.phase == beforeConnecting {
			w.refusals.add(in)
		} else {
			w.injections.add(in)
		}
	})
	return in
}

// Times ends the injection once it has acted on n calls. On its own, it acts on
// the first n calls that match. Times, Nth, From and Chance may be combined:
// the fault acts where all of them allow it. An n below 1 panics.
func (in *Injection) Times(n int) *Injection { in.count("Times", n, &in.times); return in }

// Nth makes the fault act only on the n-th call that matches, counted from 1. A
// call counts whether or not another fault acts on it. An n below 1 panics.
func (in *Injection) Nth(n int) *Injection { in.count("Nth", n, &in.nth); return in }

// From makes the fault act only from the n-th call that matches on, counted from
// 1. An n below 1 panics.
func (in *Injection) From(n int) *Injection { in.count("From", n, &in.from); return in }

// Chance makes the fault act with probability p. The seed fixes the decisions:
// the n-th call that matches gets the same decision in every run. Which of
// several concurrent calls is the n-th is not fixed. A p outside 0 to 1 panics.
func (in *Injection) Chance(p float64, seed uint64) *Injection { in.setChance(p, seed); return in }

// Required fails the test if the injection has not acted until the fake is
// closed or reset.
func (in *Injection) Required() *Injection { in.require(); return in }

// Hits counts the calls that the fault has acted on.
func (in *Injection) Hits() int { return in.hitCount() }

// Remove ends the injection and its requirement. A call that the fault already
// acts on stays as it is. Removing it again does nothing.
func (in *Injection) Remove() { in.remove() }

// candidates returns the rules that match a call, newest first. No lock is
// held, since matchers may be functions of the test.
func candidates[R ruled](s *Server, rules []R, rec *record) (found []R) {
	if len(rules) == 0 {
		return nil
	}
	var asked *rule
	defer s.blame("a matcher of ", &asked)
	shared := *rec
	shared.seen = sync.OnceValue(rec.copied) // a thousand functions cost one copy
	for _, r := range slices.Backward(rules) {
		asked = r.base()
		if matchesAll(asked.matchers, &shared) {
			found = append(found, r)
		}
	}
	return found
}

// blame is deferred around callbacks of the test. A callback that panics fails
// the test and aborts the connection.
func (s *Server) blame(what string, of **rule) {
	if p := recover(); p != nil {
		s.reportf("%s%v panicked: %v", what, *of, p)
		panic(http.ErrAbortHandler)
	}
}

// strike decides which of the matching injections act on a call, in one
// critical section, so that concurrent calls never share a turn.
func (s *Server) strike(req *request, matching []*Injection) {
	if len(matching) == 0 {
		return
	}
	var names []string
	s.locked(func(*world) {
		for _, in := range matching {
			slows := in.fault.phase == onTheWay
			if !in.due() || !slows && req.fault != nil {
				continue
			}
			in.hits++
			names = append(names, in.fault.name)
			switch {
			case in.fault.change != nil:
				req.changes = append(req.changes, in)
			case slows:
				req.latencies = append(req.latencies, in.fault.delay)
			default:
				req.fault = in.fault
			}
		}
	})
	req.record.call.Fault = strings.Join(names, ", ")
}

// reach waits out the latencies of a call and reports whether it reaches the
// service.
func (s *Server) reach(r *http.Request, req *request) bool {
	if req.latencies == nil && req.changes == nil && req.fault == nil {
		return true
	}
	// net/http notices that a client has left only after the body was read, and the
	// fake reads only the start of a body that is too long.
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	for _, d := range req.latencies {
		memnet.Pause(r.Context(), d)
	}
	switch {
	case req.latencies != nil && r.Context().Err() != nil:
		req.fault = clientGone
	case req.latencies != nil:
		req.now = s.now()
	}
	for _, in := range req.changes {
		s.change(in)
	}
	return req.fault == nil || req.fault.phase == onTheReply
}

func (s *Server) change(in *Injection) {
	made := &in.rule
	defer s.blame("the function of ", &made)
	in.fault.change()
}

// refuses reports whether an injection keeps a request from being sent, and then
// records it. It leaves the body to the sender, and reads a copy if the request can
// give one.
func (s *Server) refuses(r *http.Request, ip netip.Addr) bool {
	if look(s, func(w *world) bool { return len(w.refusals.lists) == 0 }) {
		return false
	}
	asked := &http.Request{
		Method: r.Method, URL: r.URL, Host: r.URL.Host, Header: r.Header,
		RemoteAddr: netip.AddrPortFrom(ip, 0).String(),
	}
	if r.GetBody != nil && r.ContentLength > 0 {
		if body, err := r.GetBody(); err == nil {
			defer body.Close()
			asked.Body, asked.ContentLength = body, r.ContentLength
		}
	}
	req := s.receive(asked)
	refusals := look(s, func(w *world) []*Injection { req.world = w; return w.refusals.about(req.record) })
	s.strike(req, candidates(s, refusals, req.record))
	if req.fault == nil {
		return false
	}
	s.locked(func(*world) {
		req.record.call.TraceID, req.record.call.Key = req.world.nextTrace(), req.world.label(req.record)
	})
	s.keep(req, answer{}, answer{})
	return true
}
