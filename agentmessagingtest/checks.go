package agentmessagingtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// checks are called with both executions of a disturbed run, each beside the
// undisturbed one, until one of the two says what is wrong. What is wrong is
// about an endpoint: nil is the one that the plan disturbs.
var checks = []struct {
	name Check
	find func(p, undisturbed *play) (says string, about *spec.Endpoint)
}{
	{Panics, (*play).panics}, {Ends, (*play).endless}, {Swallowed, (*play).swallowed}, {Truth, (*play).untrue},
	{LostAgent, (*play).lostAgent}, {Doubled, (*play).doubled}, {Quota, (*play).overQuota}, {DeadKey, (*play).deadKey},
	{LostBYOK, (*play).lostBYOK}, {Leak, (*play).leaks}, {Secret, (*play).tells}, {Resumes, (*play).stuck},
}

func (p *play) panics(*play) (string, *spec.Endpoint) {
	if p.panicked == "" {
		return "", nil
	}
	return "the scenario panicked: " + p.panicked, nil
}

func (p *play) endless(*play) (string, *spec.Endpoint) {
	switch limit := p.longest(); {
	case p.ended != "":
		return "the scenario had to be ended: " + p.ended, nil
	case p.lasted > limit:
		return fmt.Sprintf("the scenario took %s of virtual time; at most %s are allowed (Within)", p.lasted.Round(time.Second), limit.Round(time.Second)), nil
	}
	return "", nil
}

func (p *play) overQuota(undisturbed *play) (string, *spec.Endpoint) {
	if p.requests <= p.quota() {
		return "", nil
	}
	return fmt.Sprintf("the scenario made %s; undisturbed it makes %d", plural(p.requests, "request"), undisturbed.requests), nil
}

func (p *play) deadKey(undisturbed *play) (string, *spec.Endpoint) {
	if p.deadest <= max(3, undisturbed.deadest) {
		return "", nil
	}
	return fmt.Sprintf("the service has answered 401 or 402 %d times in a row: nothing helps but another key or plan", p.deadest), nil
}

func (p *play) leaks(undisturbed *play) (string, *spec.Endpoint) {
	if len(p.left) <= len(undisturbed.left) {
		return "", nil
	}
	return plural(len(p.left), "kind") + " of goroutines left behind:\n" + strings.Join(p.left, "\n"), nil
}

func (p *play) tells(*play) (string, *spec.Endpoint) {
	all := p.told.all()
	for _, key := range append(p.run.secrets, p.run.fake.Key()) {
		if strings.Contains(all, key) {
			return "a key stands in what the application told", nil
		}
	}
	return "", nil
}

func (p *play) swallowed(undisturbed *play) (string, *spec.Endpoint) {
	if p.told.more(&undisturbed.told) || p.panicked != "" {
		return "", nil
	}
	for i, c := range p.calls {
		if c.failed() && !undisturbed.failedToo(c) && !c.madeGood(p.calls[i+1:]) {
			return fmt.Sprintf("%s failed (%v), no later call made it good, and the application told no error", c.Name, c.Err), c.spec
		}
	}
	return "", nil
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

func (p *play) untrue(undisturbed *play) (string, *spec.Endpoint) {
	same := !p.told.more(&undisturbed.told) && len(p.run.gone) == 0 && p.panicked == ""
	if p.restart || !same || p.state.equal(undisturbed.state, p.run.sweep.coarse) {
		return "", nil
	}
	return "the application told the same as undisturbed, but " + p.state.difference(undisturbed.state), nil
}

func (p *play) lostAgent(undisturbed *play) (string, *spec.Endpoint) {
	n := p.lost - undisturbed.lost
	if n <= 0 || p.toldUnknown(spec.CreateAgent) {
		return "", nil
	}
	return fmt.Sprintf("the identifier of %s is neither kept in Env.Dir nor told", plural(n, "agent")), spec.CreateAgent
}

// toldUnknown reports whether, up to the end of this execution, the application
// has told of an unknown outcome of the endpoint.
func (p *play) toldUnknown(endpoint *spec.Endpoint) bool {
	return p.told.unknown(endpoint) || p.restart && p.run.plays[0].told.unknown(endpoint)
}

func (p *play) doubled(undisturbed *play) (string, *spec.Endpoint) {
	if text, is := more(p.state.messages, undisturbed.state.messages); is && !p.toldUnknown(spec.SendMessage) {
		return fmt.Sprintf("an agent has the message %s %d times, and no unknown outcome of sending was told",
			shown(text), p.state.messages[text]), spec.SendMessage
	}
	if ref, is := more(p.state.refs, undisturbed.state.refs); is && !p.toldUnknown(spec.CreateAgent) {
		return fmt.Sprintf("there are %d agents with one customer_ref, and no unknown outcome of a creation was told", p.state.refs[ref]), spec.CreateAgent
	}
	return "", nil
}

func (p *play) lostBYOK(undisturbed *play) (string, *spec.Endpoint) {
	got, want := p.state.byok, undisturbed.state.byok
	switch {
	case p.run.cleared && got == "" && want != "":
		return "the stored provider key is cleared, and no other has taken its place", spec.ClearBYOK
	case got != "" && want == "" && !p.clears():
		return "a provider key is left stored, and the application has not tried to clear it", spec.ClearBYOK
	}
	return "", nil
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

func (p *play) stuck(undisturbed *play) (string, *spec.Endpoint) {
	if !p.restart {
		return "", nil
	}
	if p.told.more(&undisturbed.told) {
		return "the application still fails, a day later: " + oneLine(p.told.all()), nil
	}
	for _, c := range p.run.plays[0].calls {
		if c.failed() && refusedForNow(c.Err) && p.missing(c, undisturbed) {
			return fmt.Sprintf("a day later, the application tells no error, but has never done again what was refused: %s", c.Name), c.spec
		}
	}
	return "", nil
}

// refusedForNow reports a failure after which the call can be made again
// without a doubt, and succeed one day.
func refusedForNow(err error) bool {
	return errors.Is(err, agentmessaging.ErrUnauthorized) || errors.Is(err, agentmessaging.ErrPaymentRequired) ||
		errors.Is(err, agentmessaging.ErrRateLimited)
}

// missing reports whether what a call was for is not there in the end, though
// the undisturbed application, once it has done it, does not do it again.
func (p *play) missing(c *Call, undisturbed *play) bool {
	got, want := p.state.sent, undisturbed.state.sent
	switch {
	case c.subject == "" || undisturbed.count(c.spec) >= undisturbed.run.plays[0].count(c.spec):
		return false
	case c.spec == spec.CreateAgent:
		got, want = p.state.refs, undisturbed.state.refs
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
