package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Check is what [Test] looks for after a run. "Told" is what the application
// reports, asserts, logs at Warn or above, or prints of this module's errors;
// it is compared with the undisturbed run.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call made it good, and the application
	// told of no more errors than in the undisturbed run. A later call makes it good
	// if it has the same text or customer_ref; if there is neither, one to the same
	// endpoint and agent. Creating an agent makes good that another one is gone, and
	// reading an agent or the BYOK configuration that it could not be changed.
	Swallowed Check = "swallowed"
	// Truth: as few errors were told as undisturbed, but the service is in
	// another state, identifiers and times apart.
	Truth Check = "truth"
	// LostAgent: there is an agent whose identifier stands neither in a file of
	// Env.Dir nor in what was told, and undisturbed there are fewer. An
	// application that told of an unknown outcome of a creation is forgiven.
	LostAgent Check = "lost agent"
	// Doubled: an agent has one text, or there are agents with one customer_ref,
	// more often than undisturbed, and no unknown outcome of that call was told.
	Doubled Check = "doubled"
	// Quota: more than nine times the requests of the undisturbed run.
	Quota Check = "quota"
	// DeadKey: more than three answers of 401 or 402 in a row.
	DeadKey Check = "dead key"
	// LostBYOK: a stored provider key was cleared and none took its place, or
	// one is left stored that undisturbed is not, though it was not tried to
	// clear it.
	LostBYOK Check = "lost BYOK"
	// Ends: the scenario takes too long in virtual time ([Within]), makes
	// requests without end, or stalls in real time ([Watchdog]).
	Ends Check = "ends"
	// Panics: the scenario's goroutine panicked.
	Panics Check = "panics"
	// Leak: goroutines are left that the undisturbed run has not left.
	Leak Check = "leak"
	// Secret: the service key or a provider key was told.
	Secret Check = "secret"
	// Resumes: after the restart more errors are told than in an undisturbed
	// second run, or a message that was refused before is missing though none
	// is told.
	Resumes Check = "resumes"
)

// Finding is a check that a run failed.
type Finding struct {
	Check    Check  // or the name of a check of the user's own
	Plan     string // SendMessage_2/reply_lost/once
	Endpoint fakeserver.Endpoint
	Says     string // in one sentence
}

// found takes what a check has found: about an endpoint, or about the one that
// the plan disturbs if it is nil.
type found func(about *spec.Endpoint, says string, args ...any)

// checks are called with both executions of a disturbed run, each of which knows
// the undisturbed one, until one of the two says what is wrong.
var checks = []struct {
	name Check
	look func(*play, found)
}{
	{Panics, (*play).panics}, {Ends, (*play).endless}, {Swallowed, (*play).swallowed}, {Truth, (*play).untrue},
	{LostAgent, (*play).lostAgent}, {Doubled, (*play).doubled}, {Quota, (*play).overQuota}, {DeadKey, (*play).deadKey},
	{LostBYOK, (*play).lostBYOK}, {Leak, (*play).leaks}, {Secret, (*play).tells}, {Resumes, (*play).stuck},
}

// judge runs the checks, and reports what they find. Of the undisturbed run
// only Secret is looked at.
func (s *sweep) judge(t testing.TB, r *run) {
	t.Helper()
	var all []Finding
	add := func(check Check, about *spec.Endpoint, says string) {
		f := Finding{Check: check, Plan: r.name(), Endpoint: endpointOf(cmp.Or(about, r.target())), Says: says}
		if !slices.ContainsFunc(s.off, func(off func(Finding) bool) bool { return off(f) }) {
			all = append(all, f)
		}
	}
	for _, c := range checks {
		ill := false
		for _, p := range r.plays {
			if !ill && (r.plan != nil || c.name == Secret) {
				c.look(p, func(about *spec.Endpoint, says string, args ...any) {
					ill = true
					add(c.name, about, p.when()+fmt.Sprintf(says, args...))
				})
			}
		}
	}
	for _, own := range s.also {
		if err := own.look(r.public(s.public)); err != nil {
			add(Check(own.name), nil, err.Error())
		}
	}
	if len(all) > 0 {
		s.report(t, r, all)
	}
}

// target is the endpoint that the plan disturbs first; nil for a point.
func (r *run) target() *spec.Endpoint {
	if r.plan == nil {
		return nil
	}
	return r.plan[0].at
}

// endpointOf is an endpoint as users know it; "" for none.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Method + " " + e.Path)
}

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

// state is what the service holds, in a form that can be compared: without
// identifiers and times.
type state struct {
	agents   []string       // a line for each
	messages map[string]int // the most messages with one text to one agent
	sent     map[string]int // messages with one text to whatever agent
	refs     map[string]int // agents with one customer_ref
	byok     string         // the provider of the stored key; "" where there is none
}

func (r *run) stateNow() state {
	s := state{messages: map[string]int{}, sent: map[string]int{}, refs: map[string]int{}}
	for _, a := range r.fake.Agents() {
		if a.CustomerRef != "" {
			s.refs[a.CustomerRef]++
		}
		var texts []string
		count := map[string]int{}
		for _, e := range r.fake.Conversation(a.ID) {
			texts = append(texts, e.UserRef+":"+e.Text)
			count[e.Text]++
			s.sent[e.Text]++
		}
		for text, n := range count {
			s.messages[text] = max(s.messages[text], n)
		}
		slices.Sort(texts)
		sms := ""
		if a.SMS != nil {
			sms = a.SMS.Status
		}
		s.agents = append(s.agents, fmt.Sprintf("%q %q %s %v %s %q", a.CustomerRef, a.SystemPrompt, a.Metadata, a.LLM, sms, texts))
	}
	slices.Sort(s.agents)
	if b, set := r.fake.BYOK(r.fake.Key()); set {
		s.byok = b.Provider
	}
	return s
}

// equal compares all, or, where the texts of the scenario differ from run to
// run, numbers only.
func (s state) equal(other state, coarse bool) bool {
	if coarse {
		return s.counts() == other.counts()
	}
	return slices.Equal(s.agents, other.agents) && s.byok == other.byok
}

func (s state) counts() string {
	total := 0
	for _, n := range s.sent {
		total += n
	}
	return fmt.Sprintf("%s, %s, provider key %q", plural(len(s.agents), "agent"), plural(total, "message"), s.byok)
}

// difference says, without repeating a text, what s has other than want.
func (s state) difference(want state) string {
	got, expected := s.counts(), want.counts()
	if got == expected {
		got, expected = "as many, but other, agents or messages", "the undisturbed ones"
	}
	return fmt.Sprintf("the service has %s; undisturbed it has %s", got, expected)
}

// more returns the first text, in order, of which there is more than
// undisturbed; "" for none.
func more(got, undisturbed map[string]int) string {
	for _, text := range slices.Sorted(maps.Keys(got)) {
		if got[text] > max(1, undisturbed[text]) {
			return text
		}
	}
	return ""
}

// shown is a text in a sentence: its length, since it may be somebody's words.
func shown(text string) string {
	return fmt.Sprintf("of %d characters", len([]rune(strings.TrimSpace(text))))
}
