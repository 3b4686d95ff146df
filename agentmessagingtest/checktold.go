package agentmessagingtest

import (
	"errors"
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go"
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
