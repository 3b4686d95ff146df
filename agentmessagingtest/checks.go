package agentmessagingtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func (s *sweep) swallowed(r *run) (Finding, bool) {
	for _, restart := range []bool{false, true} {
		p, undisturbed := r.played(restart), s.baseline.played(restart)
		if p.told.errors().more(undisturbed.told.errors()) || p.panicked != "" {
			continue
		}
		for i, c := range p.calls {
			if c.failed() && !undisturbed.failedToo(c) && !c.madeGood(p.calls[i+1:]) {
				return Finding{Endpoint: c.Endpoint, Says: fmt.Sprintf("%s%s failed (%v), no later call made it good, and the application told no error",
					when(restart), c.Name, c.Err)}, true
			}
		}
	}
	return Finding{}, false
}

// failedToo reports whether the call of this name failed undisturbed.
func (p *play) failedToo(c *Call) bool {
	for _, other := range p.calls {
		if other.Name == c.Name && other.failed() {
			return true
		}
	}
	return false
}

// looks are the calls that show whether another one was carried out.
var looks = map[*spec.Endpoint]*spec.Endpoint{
	spec.EnableSMS: spec.GetAgent, spec.SetBYOK: spec.GetBYOK, spec.ClearBYOK: spec.GetBYOK,
}

// madeGood reports whether one of the later calls did what this one failed to do.
func (c *Call) madeGood(later []*Call) bool {
	gone := errors.Is(c.Err, agentmessaging.ErrNotFound)
	for _, l := range later {
		switch {
		case l.failed():
		case gone && c.spec == spec.GetAgent && l.spec == spec.CreateAgent:
			return true
		case looks[c.spec] != nil && looks[c.spec] == l.spec && c.AgentID == l.AgentID:
			return true
		case l.spec != c.spec:
		case c.subject != "" && l.subject == c.subject:
			return true
		case c.subject == "" && (c.AgentID == l.AgentID || c.spec == spec.CreateAgent):
			return true
		}
	}
	return false
}

func (s *sweep) untrue(r *run) (Finding, bool) {
	base := s.baseline
	same := !r.first.told.errors().more(base.first.told.errors()) && len(r.gone) == 0
	if !same || r.first.panicked != "" || r.after.equal(base.after, s.coarse) {
		return Finding{}, false
	}
	return Finding{Says: "the application told the same as undisturbed, but " + r.after.difference(base.after)}, true
}

func (s *sweep) stuck(r *run) (Finding, bool) {
	p, undisturbed := r.second, s.baseline.second
	if p.told.errors().more(undisturbed.told.errors()) {
		return Finding{Says: fmt.Sprintf("a day later the restarted application still fails: %s", oneLine(p.told.all()))}, true
	}
	for _, c := range r.first.calls {
		if c.failed() && refusedForNow(c.Err) && s.remembers(c.spec) && r.missing(c, s.baseline) {
			return Finding{Endpoint: c.Endpoint, Says: fmt.Sprintf("%s was refused, and a day later the restarted application tells no error, but never did it again", c.Name)}, true
		}
	}
	return Finding{}, false
}

// refusedForNow reports a failure after which the call can be made again
// without a doubt, and succeed one day.
func refusedForNow(err error) bool {
	for _, kind := range []error{agentmessaging.ErrUnauthorized, agentmessaging.ErrPaymentRequired, agentmessaging.ErrRateLimited} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// remembers reports whether the application, undisturbed, does not do again
// after a restart what it has done before.
func (s *sweep) remembers(endpoint *spec.Endpoint) bool {
	return s.baseline.second.count(endpoint) < s.baseline.first.count(endpoint)
}

func (p *play) count(endpoint *spec.Endpoint) (n int) {
	for _, c := range p.calls {
		if c.spec == endpoint {
			n++
		}
	}
	return n
}

// missing reports whether what a call was for is not there in the end.
func (r *run) missing(c *Call, undisturbed *run) bool {
	switch c.spec {
	case spec.SendMessage:
		return r.end.sent[c.subject] == 0 && undisturbed.end.sent[c.subject] > 0
	case spec.CreateAgent:
		return c.subject != "" && r.end.refs[c.subject] == 0 && undisturbed.end.refs[c.subject] > 0
	}
	return false
}

// either calls a check with both executions of the scenario.
func (s *sweep) either(r *run, check func(p, undisturbed *play) string) (Finding, bool) {
	for _, restart := range []bool{false, true} {
		if says := check(r.played(restart), s.baseline.played(restart)); says != "" {
			return Finding{Says: strings.TrimSpace(when(restart) + says)}, true
		}
	}
	return Finding{}, false
}

func (s *sweep) panics(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		if p.panicked == "" {
			return ""
		}
		return "the scenario panicked: " + p.panicked
	})
}

func (s *sweep) endless(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		switch limit := s.longest(p.restart); {
		case p.endless != "":
			return "the scenario had to be ended: " + p.endless
		case p.lasted > limit:
			return fmt.Sprintf("the scenario took %s of virtual time; at most %s are allowed (Within)", p.lasted.Round(time.Second), limit.Round(time.Second))
		}
		return ""
	})
}

func (s *sweep) overQuota(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if p.requests <= s.quota(p.restart) {
			return ""
		}
		return fmt.Sprintf("the scenario made %s; undisturbed it makes %d", plural(p.requests, "request"), undisturbed.requests)
	})
}

func (s *sweep) deadKey(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if p.longest <= max(3, undisturbed.longest) {
			return ""
		}
		return fmt.Sprintf("the service has answered 401 or 402 %d times in a row: nothing helps but another key or plan", p.longest)
	})
}

func (s *sweep) leaks(r *run) (Finding, bool) {
	return s.either(r, func(p, undisturbed *play) string {
		if len(p.left) <= len(undisturbed.left) {
			return ""
		}
		return plural(len(p.left), "kind") + " of goroutines left behind:\n" + strings.Join(p.left, "\n")
	})
}

func (s *sweep) tells(r *run) (Finding, bool) {
	return s.either(r, func(p, _ *play) string {
		all := p.told.all()
		for _, key := range append(r.secrets, r.fake.Key()) {
			if strings.Contains(all, key) {
				return "a key stands in what the application told"
			}
		}
		return ""
	})
}

func (s *sweep) lostAgent(r *run) (Finding, bool) {
	for i, unknown := range r.unknown(spec.CreateAgent) {
		if n := r.lostIDs[i] - s.baseline.lostIDs[i]; n > 0 && !unknown {
			return Finding{Endpoint: fakeserver.EndpointCreateAgent, Says: fmt.Sprintf(
				"%sthe identifier of %s is neither kept in Env.Dir nor told", when(i == 1), plural(n, "agent"))}, true
		}
	}
	return Finding{}, false
}

// unknown reports whether, up to the end of each execution, the application has
// told of an unknown outcome of the endpoint.
func (r *run) unknown(endpoint *spec.Endpoint) [2]bool {
	first := r.first.told.unknown(endpoint)
	return [2]bool{first, first || r.second.told.unknown(endpoint)}
}

func (s *sweep) doubled(r *run) (Finding, bool) {
	got, base := [2]state{r.after, r.end}, [2]state{s.baseline.after, s.baseline.end}
	sent, created := r.unknown(spec.SendMessage), r.unknown(spec.CreateAgent)
	for i := range got {
		if text, is := more(got[i].messages, base[i].messages); is && !sent[i] {
			return Finding{Endpoint: fakeserver.EndpointSendMessage, Says: fmt.Sprintf(
				"%san agent has the message %s %d times, and no unknown outcome of sending was told", when(i == 1), shown(text), got[i].messages[text])}, true
		}
		if ref, is := more(got[i].refs, base[i].refs); is && !created[i] {
			return Finding{Endpoint: fakeserver.EndpointCreateAgent, Says: fmt.Sprintf(
				"%sthere are %d agents with one customer_ref, and no unknown outcome of a creation was told", when(i == 1), got[i].refs[ref])}, true
		}
	}
	return Finding{}, false
}

func (s *sweep) lostBYOK(r *run) (f Finding, _ bool) {
	f.Endpoint = fakeserver.EndpointClearBYOK
	for i, got := range []state{r.after, r.end} {
		want := []state{s.baseline.after, s.baseline.end}[i]
		switch {
		case r.cleared && got.byok == "" && want.byok != "":
			f.Says = when(i == 1) + "the stored provider key is cleared, and no other has taken its place"
			return f, true
		case got.byok != "" && want.byok == "" && !r.played(i == 1).clears():
			f.Says = when(i == 1) + "a provider key is left stored, and the application has not tried to clear it"
			return f, true
		}
	}
	return f, false
}

// clears reports whether the application tried to clear what it had, perhaps,
// stored last.
func (p *play) clears() (clears bool) {
	for _, c := range p.calls {
		switch c.spec {
		case spec.SetBYOK:
			clears = false
		case spec.ClearBYOK:
			clears = true
		}
	}
	return clears
}
