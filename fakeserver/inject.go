package fakeserver

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Injection is a fault that waits for its calls. Inject makes one.
type Injection struct {
	rule
	fault *fault
}

// Inject makes a fault act on the calls that all matchers match; without
// matchers, on all calls, those included that the service would refuse. It is
// in force at once and until Remove or Reset, unless Times, Nth or Chance say
// otherwise: where calls are already under way, those come too late for some.
//
// Where several injections match a call, the latencies add up, and of the
// other faults the one that was injected last acts, if it is its turn; else
// the one before it. The zero Fault and a zero Matcher panic.
func (s *Server) Inject(fault Fault, matchers ...Matcher) *Injection {
	if fault.f == nil {
		misuse("Inject", "the fault is the zero Fault; %s make faults", faultMakers)
	}
	in := &Injection{rule: newRule(&s.mu, "Inject", fault.String(), matchers), fault: fault.f}
	s.locked(func(w *world) { w.injections.add(in) })
	return in
}

// Times ends the injection once it has acted on n calls: on its own, it acts
// on the first n that match. Times, Nth and Chance may be combined: the fault
// acts where all of them allow it. Less than 1 panics.
func (in *Injection) Times(n int) *Injection { in.setTimes(n); return in }

// Nth makes the fault act only on the n-th call that matches, counted from 1.
// A call counts whether or not another fault acts on it. Less than 1 panics.
func (in *Injection) Nth(n int) *Injection { in.setNth(n); return in }

// Chance makes the fault act with probability p. The decisions follow from the
// seed: the n-th call that matches meets the same decision in every run. Among
// concurrent calls the order of arrival is theirs. A p outside 0 to 1 panics.
func (in *Injection) Chance(p float64, seed uint64) *Injection { in.setChance(p, seed); return in }

// Required makes an injection that never acted until the fake is closed or
// reset fail the test.
func (in *Injection) Required() *Injection { in.require(); return in }

// Hits is how many calls the fault has acted on.
func (in *Injection) Hits() int { return in.hitCount() }

// Remove ends the injection, with its requirement. A call that the fault acts
// on already is not freed. Removing it again does nothing.
func (in *Injection) Remove() { in.remove() }

// candidates returns the rules that match a call, the newest first. No lock is
// held, since matchers may be functions of the test.
func candidates[R ruled](s *Server, rules prospects[R], rec *record) (found []R) {
	if rules.empty() {
		return nil
	}
	var asked *rule
	defer s.blame("a matcher of ", &asked)
	rec = rec.shared()
	for r, ok := rules.next(); ok; r, ok = rules.next() {
		asked = r.base()
		if matchesAll(asked.matchers, rec) {
			found = append(found, r)
		}
	}
	return found
}

// blame is deferred around callbacks of the test: a panic in one fails the
// test and aborts the connection.
func (s *Server) blame(what string, of **rule) {
	if p := recover(); p != nil {
		s.reportf("%s%v panicked: %v", what, *of, p)
		panic(http.ErrAbortHandler)
	}
}

// strike takes the turns of the injections that match a call, in one critical
// section: each turn goes to one call. The latencies among the faults come
// first.
func (s *Server) strike(req *request, matching []*Injection) {
	if len(matching) == 0 {
		return
	}
	var names []string
	s.locked(func(*world) {
		for _, in := range matching {
			late := in.fault.phase == onTheWay
			if !in.due() || !late && req.fault != nil {
				continue
			}
			in.hits++
			names = append(names, in.fault.name)
			if late {
				req.latencies = append(req.latencies, in.fault.delay)
			} else {
				req.fault = in.fault
			}
		}
	})
	req.record.call.Fault = strings.Join(names, ", ")
}

// reach is a call's way to the service. It reports whether the call arrives.
func (s *Server) reach(r *http.Request, req *request) bool {
	if req.latencies == nil && req.fault == nil {
		return true
	}
	// net/http looks for a client that leaves only once the body is read, and
	// of one that is too long some is left.
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
	return req.fault == nil || req.fault.phase == onTheReply
}

// rules returns all rules: the scripts, then the injections, as they were made.
func (s *Server) rules() []*rule {
	return look(s, func(w *world) (all []*rule) {
		for _, sc := range w.scripts.all() {
			all = append(all, &sc.rule)
		}
		for _, in := range w.injections.all() {
			all = append(all, &in.rule)
		}
		return all
	})
}

// reportUnused reports the required rules that never acted.
func (s *Server) reportUnused(rules []*rule, calls []*record) {
	for _, r := range rules {
		var unused bool
		var matched int
		r.change(func() { unused, matched = r.required && r.hits == 0, r.matched })
		if unused {
			s.reportf("%s is required and was never used; calls that it matched: %d; %s", r.says, matched, r.nearMiss(calls))
		}
	}
}

// nearMiss says which of the calls came nearest to what a rule waited for, and
// which of its matchers refused it. Of calls that are as near, the last.
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
	return fmt.Sprintf("nearest: %s, %s", nearest.call, r.verdict(refused, nearest))
}

// verdict says why a call was not the rule's.
func (r *rule) verdict(refused []Matcher, rec *record) string {
	switch {
	case len(refused) == len(r.matchers) && len(refused) > 0:
		return "not matched by " + listed(refused)
	case len(refused) > 0:
		return fmt.Sprintf("matched by %s but not by %s", listed(r.passing(rec)), listed(refused))
	case rec.call.Status != http.StatusOK:
		return "which matches, but was not accepted"
	default:
		return "which matches: it came before the rule was made, or another acted on it"
	}
}

func (r *rule) passing(rec *record) []Matcher {
	return slices.DeleteFunc(slices.Clone(r.matchers), func(m Matcher) bool { return !passes(m, rec) })
}

// refusing returns the matchers that do not match.
func refusing(matchers []Matcher, rec *record) []Matcher {
	return slices.DeleteFunc(slices.Clone(matchers), func(m Matcher) bool { return passes(m, rec) })
}

// passes asks a matcher in a test that has failed already: that it panics is
// no more than a no.
func passes(m Matcher, rec *record) (matched bool) {
	defer func() { _ = recover() }()
	return m.matches(rec)
}
