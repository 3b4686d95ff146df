package agentmessagingtest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func (p *play) panics(found found) {
	if p.panicked != "" {
		found(nil, "the scenario panicked: %s", p.panicked)
	}
}

func (p *play) endless(found found) {
	if p.ended != "" {
		found(nil, "the scenario had to be ended: %s", p.ended)
	} else if p.lasted > p.longest {
		found(nil, "the scenario took %s of virtual time; at most %s are allowed (Within)", p.lasted.Round(time.Second), p.longest.Round(time.Second))
	}
}

func (p *play) overQuota(found found) {
	if p.requests > p.quota {
		found(nil, "the scenario made %s; undisturbed it makes %d", plural(p.requests, "request"), p.undisturbed.requests)
	}
}

func (p *play) deadKey(found found) {
	if p.deadest > max(3, p.undisturbed.deadest) {
		found(nil, "the service has answered 401 or 402 %d times in a row: nothing helps but another key or plan", p.deadest)
	}
}

func (p *play) leaks(found found) {
	if len(p.left) > len(p.undisturbed.left) {
		found(nil, "%s of goroutines left behind:\n%s", plural(len(p.left), "kind"), strings.Join(p.left, "\n"))
	}
}

func (p *play) tells(found found) {
	all := p.told.all()
	if slices.ContainsFunc(append(p.run.secrets, p.run.fake.Key()), func(key string) bool { return strings.Contains(all, key) }) {
		found(nil, "a key stands in what the application told")
	}
}

func (p *play) swallowed(found found) {
	if p.told.more(&p.undisturbed.told) || p.panicked != "" {
		return
	}
	for i, c := range p.calls {
		if c.failed() && !p.undisturbed.failedToo(c) && !c.madeGood(p.calls[i+1:]) {
			found(c.spec, "%s failed (%v), no later call made it good, and the application told no error", c.Name, c.Err)
			return
		}
	}
}

// failedToo reports whether the call of this name failed undisturbed.
func (p *play) failedToo(c *Call) bool {
	return slices.ContainsFunc(p.calls, func(other *Call) bool { return other.Name == c.Name && other.failed() })
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

func (p *play) untrue(found found) {
	same := !p.told.more(&p.undisturbed.told) && len(p.run.gone) == 0 && p.panicked == ""
	if !p.restart && same && !p.state.equal(p.undisturbed.state, p.run.sweep.coarse) {
		found(nil, "the application told the same as undisturbed, but %s", p.state.difference(p.undisturbed.state))
	}
}

func (p *play) lostAgent(found found) {
	if n := p.lost - p.undisturbed.lost; n > 0 && !p.toldUnknown(spec.CreateAgent) {
		found(spec.CreateAgent, "the identifier of %s is neither kept in Env.Dir nor told", plural(n, "agent"))
	}
}

// toldUnknown reports whether, up to the end of this execution, the application
// has told of an unknown outcome of the endpoint.
func (p *play) toldUnknown(endpoint *spec.Endpoint) bool {
	return p.told.unknown(endpoint) || p.restart && p.run.plays[0].told.unknown(endpoint)
}

func (p *play) doubled(found found) {
	if text := more(p.state.messages, p.undisturbed.state.messages); text != "" && !p.toldUnknown(spec.SendMessage) {
		found(spec.SendMessage, "an agent has the message %s %d times, and no unknown outcome of sending was told", shown(text), p.state.messages[text])
	} else if ref := more(p.state.refs, p.undisturbed.state.refs); ref != "" && !p.toldUnknown(spec.CreateAgent) {
		found(spec.CreateAgent, "there are %d agents with one customer_ref, and no unknown outcome of a creation was told", p.state.refs[ref])
	}
}

func (p *play) lostBYOK(found found) {
	switch got, want := p.state.byok, p.undisturbed.state.byok; {
	case p.run.cleared && got == "" && want != "":
		found(spec.ClearBYOK, "the stored provider key is cleared, and no other has taken its place")
	case got != "" && want == "" && !p.clears():
		found(spec.ClearBYOK, "a provider key is left stored, and the application has not tried to clear it")
	}
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

func (p *play) stuck(found found) {
	if !p.restart {
		return
	}
	if p.told.more(&p.undisturbed.told) {
		found(nil, "the application still fails, a day later: %s", oneLine(p.told.all()))
		return
	}
	for _, c := range p.run.plays[0].calls {
		if c.failed() && refusedForNow(c.Err) && p.missing(c) {
			found(c.spec, "a day later, the application tells no error, but has never done again what was refused: %s", c.Name)
			return
		}
	}
}

// refusedForNow reports a failure after which the call can be made again
// without a doubt, and succeed one day.
func refusedForNow(err error) bool {
	return errors.Is(err, agentmessaging.ErrUnauthorized) || errors.Is(err, agentmessaging.ErrPaymentRequired) ||
		errors.Is(err, agentmessaging.ErrRateLimited)
}

// missing reports whether the effect of a call is not there in the end, though the
// undisturbed application has it and does not repeat it.
func (p *play) missing(c *Call) bool {
	got, want := p.state.sent, p.undisturbed.state.sent
	switch {
	case c.subject == "" || p.undisturbed.count(c.spec) >= p.undisturbed.run.plays[0].count(c.spec):
		return false
	case c.spec == spec.CreateAgent:
		got, want = p.state.refs, p.undisturbed.state.refs
	case c.spec != spec.SendMessage:
		return false
	}
	return got[c.subject] == 0 && want[c.subject] > 0
}

func (p *play) count(endpoint *spec.Endpoint) (n int) {
	for _, c := range p.calls {
		if c.spec == endpoint {
			n++
		}
	}
	return n
}
