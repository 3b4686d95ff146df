package sweep

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Check is what [Test] looks for after a run. "Reported" is what the application
// gives to Env.Reports or Env.Told, asserts, logs at Warn or above, or prints of
// this module's errors, as far as the baseline does not say the same. The baseline
// is the run without faults, its restarts included.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call made it good, and the application
	// reported nothing. A later call makes it good if it has the same text or
	// customer_ref; if there is neither, one to the same endpoint and agent.
	// Creating an agent makes good that another one is gone, and reading an agent
	// or the BYOK configuration that it could not be changed.
	Swallowed Check = "swallowed"
	// Truth: nothing was reported, but the service is in another state than in the
	// baseline, identifiers and times apart.
	Truth Check = "truth"
	// Lost: at the end, after all restarts, the agents never got a message or a
	// customer never got an agent that the baseline has, and the
	// application has not named it: by its text, or by the error of its call. A
	// report that names no message and is the error of no call excuses one that was
	// tried. Nothing but its text names what met 401, 402 or 429: the application
	// can make that call again.
	Lost Check = "lost"
	// LostAgent: there is an agent whose identifier is neither in a file of
	// Env.Dir nor in what was said, and there are more of them than in the baseline. It is
	// forgiven where the outcome of a creation was in doubt, and that was reported.
	LostAgent Check = "lost agent"
	// Doubled: an agent has one text, or there are agents with one customer_ref,
	// more often than in the baseline, and no report says that it was in doubt.
	Doubled Check = "doubled"
	// Quota: more than nine times the requests of the baseline.
	Quota Check = "quota"
	// DeadKey: another request of a goroutine that has met 401 or 402 four times in a
	// row.
	DeadKey Check = "dead key"
	// LostBYOK: a stored provider key was cleared and none took its place, or
	// one is left stored that the baseline has cleared.
	LostBYOK Check = "lost BYOK"
	// Ends: the scenario takes too long in virtual time ([MaxVirtualTime]), makes
	// requests without end, or stalls in real time ([Watchdog]).
	Ends Check = "ends"
	// Panics: the scenario's goroutine panicked.
	Panics Check = "panics"
	// Leak: goroutines are left that the baseline has not left.
	Leak Check = "leak"
	// Secret: the service key or a provider key was said.
	Secret Check = "secret"
	// Resumes: a day later, when nothing is wrong any more, calls fail, or the
	// application reports an error instead of doing its work.
	Resumes Check = "resumes"
)

// Finding is a check that a run failed.
type Finding struct {
	Check    Check  // or the name of a check of the user's own
	Plan     string // SendMessage_2/reply_lost/once, SendMessage_2/dies_arrived
	Endpoint fakeserver.Endpoint
	Says     string // in one sentence
}

// found takes what a check has found: about an endpoint, or about the one that
// the plan strikes if it is nil.
type found func(about *spec.Endpoint, says string, args ...any)

// ofExecution are the checks of one execution, and ofRun those of all executions together.
var ofExecution = []struct {
	name Check
	look func(*execution, found)
}{
	{Panics, (*execution).panics}, {Ends, (*execution).endless}, {Swallowed, (*execution).swallowed}, {Quota, (*execution).overQuota},
	{DeadKey, (*execution).deadKey}, {Leak, (*execution).leaks}, {Secret, (*execution).quotes},
}

type runCheck struct {
	name Check
	look func(*run, found)
}

var ofRun = []runCheck{
	{Truth, (*run).untrue}, {Lost, (*run).lost}, {LostAgent, (*run).lostAgent}, {Doubled, (*run).doubled},
	{LostBYOK, (*run).lostBYOK}, {Resumes, (*run).notResumed},
}

func (p *execution) panics(found found) {
	if p.panicked != "" {
		found(nil, "the scenario panicked: %s", p.panicked)
	}
}

func (p *execution) endless(found found) {
	switch {
	case p.stalled != "":
		found(nil, "the scenario %s", p.stalled)
	case p.ended != "":
		found(nil, "the scenario had to be ended: %s", p.ended)
	case p.lasted > p.longest:
		found(nil, "the scenario took %s of virtual time; at most %s are allowed (MaxVirtualTime)", p.lasted.Round(time.Second), p.longest.Round(time.Second))
	}
}

func (p *execution) overQuota(found found) {
	if p.requests > p.quota {
		found(nil, "the scenario made %s; the baseline makes %d", plural(p.requests, "request"), p.quota/9)
	}
}

func (p *execution) deadKey(found found) {
	usual := p.sweep.usual(p.stage)
	if p.deadKeyRequests > max(3, usual[0].deadKeyRequests, usual[1].deadKeyRequests) {
		found(nil, "the service had answered 401 or 402 %d times in a row, and was asked again: nothing helps but another key or plan", p.deadKeyRequests)
	}
}

func (p *execution) leaks(found found) {
	if usual := p.sweep.usual(p.stage); len(p.left) > max(len(usual[0].left), len(usual[1].left)) {
		found(nil, "%s left over:\n%s", plural(len(p.left), "kind of goroutine"), strings.Join(p.left, "\n"))
	}
}

func (p *execution) quotes(found found) {
	all := p.said()
	if slices.ContainsFunc(append(p.secrets, p.fake.Key()), func(key string) bool { return strings.Contains(all, key) }) {
		found(nil, "a key is in what the application said")
	}
}

// said is all that the application said, as text.
func (p *execution) said() string {
	var all strings.Builder
	for _, t := range p.statements {
		if t.text != "" {
			all.WriteString(strings.TrimRight(t.text, "\n") + "\n")
		}
	}
	return all.String()
}

// reports are what the application said is wrong, more often than it says it in the baseline.
func (p *execution) reports() (fresh []statement) {
	usually := map[string]int{}
	for _, u := range p.sweep.usual(p.stage) {
		count := map[string]int{}
		for _, t := range u.statements {
			count[t.key()]++
			usually[t.key()] = max(usually[t.key()], count[t.key()])
		}
	}
	for _, t := range p.statements {
		if usually[t.key()]--; t.way != said && usually[t.key()] < 0 {
			fresh = append(fresh, t)
		}
	}
	return fresh
}

func (t statement) key() string { return fmt.Sprint(t.way, t.text) }

func (p *execution) swallowed(found found) {
	if len(p.reports()) > 0 {
		return
	}
	for i, c := range p.calls {
		if c.failed() && !p.usuallyFails(c) && !c.madeGood(p.calls[i+1:]) {
			found(c.spec, "%s failed (%v), no later call made it good, and the application reported nothing", c.Name, c.Err)
			return
		}
	}
}

// usuallyFails reports whether the call of this name fails in the baseline too.
func (p *execution) usuallyFails(c *Call) bool {
	return slices.ContainsFunc(p.sweep.usual(p.stage), func(u *execution) bool {
		return slices.ContainsFunc(u.calls, func(other *Call) bool { return other.Name == c.Name && other.failed() })
	})
}

// confirms are the calls that show whether another one was carried out.
var confirms = map[*spec.Endpoint]*spec.Endpoint{
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
		case confirms[c.spec] != nil && confirms[c.spec] == l.spec && c.AgentID == l.AgentID:
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

// calls are those of all executions.
func (r *run) calls() (all []*Call) {
	for _, p := range r.executions {
		all = append(all, p.calls...)
	}
	return all
}

// about are the calls of all executions about a subject; about any where its text is "".
// A call that a death cut off before it sent anything may be about each.
func (r *run) about(s subject) (calls []*Call) {
	return slices.DeleteFunc(r.calls(), func(c *Call) bool {
		return c.spec != s.endpoint || s.text != "" && c.subject != s.text && (c.ended || len(c.Attempts) > 0)
	})
}

// named reports whether the application has reported something about a subject: it
// is in a report, or a report is the error of one of its calls that fits.
func (r *run) named(s subject, fits func(*Call) bool) bool {
	calls := slices.DeleteFunc(r.about(s), func(c *Call) bool { return !c.failed() || !fits(c) })
	return slices.ContainsFunc(r.executions, func(p *execution) bool {
		return slices.ContainsFunc(p.reports(), func(t statement) bool {
			return s.text != "" && t.contains(s.text) || slices.ContainsFunc(calls, t.isFrom)
		})
	})
}

// isFrom reports whether what was said is the error of a call that failed.
func (t statement) isFrom(c *Call) bool { return errors.Is(t.err, c.Err) }

// contains looks for a subject as whole words: "Order 10" is not about "Order 1".
func (t statement) contains(subject string) bool {
	const noLetter = `[^\pL\pN]`
	return strings.Contains(t.text, subject) &&
		regexp.MustCompile(`(^|`+noLetter+`)`+regexp.QuoteMeta(subject)+`($|`+noLetter+`)`).MatchString(t.text)
}

// general counts the reports of the executions that may be about anything: each is the
// error of no call, and names no message. What a restart repeats counts once.
func (r *run) general(executions ...*execution) int {
	failed := slices.DeleteFunc(r.calls(), func(c *Call) bool { return !c.failed() })
	texts, different := r.sweep.baseline[0].result.state.subjects(), map[string]bool{}
	for _, p := range executions {
		count := map[string]int{}
		for _, t := range p.reports() {
			names := func(s subject) bool { return s.endpoint == spec.SendMessage && t.contains(s.text) }
			if !slices.ContainsFunc(failed, t.isFrom) && !slices.ContainsFunc(texts, names) {
				count[t.text]++
				different[fmt.Sprint(count[t.text], t.text)] = true
			}
		}
	}
	return len(different)
}

// inDoubt reports a call of which a restart cannot know whether it was carried out: the
// outcome is unknown, or the process died and what it did is forgotten.
func (p *execution) inDoubt(c *Call) bool {
	return errors.Is(c.Err, agentmessaging.ErrOutcomeUnknown) || p.died != "" && !c.failed()
}

// doubtNamed reports whether a call about the subject was in doubt, and that was
// reported: by name, or by a report that may be about anything.
func (r *run) doubtNamed(s subject) bool {
	var doubt []*Call
	for _, p := range r.executions {
		for _, c := range p.calls {
			if c.spec == s.endpoint && (s.text == "" || c.subject == s.text) && p.inDoubt(c) {
				doubt = append(doubt, c)
			}
		}
	}
	return len(doubt) > 0 && (r.general(r.executions...) > 0 || r.named(s, func(c *Call) bool { return slices.Contains(doubt, c) }))
}

func (r *run) untrue(found found) {
	p := r.executions[0]
	same := p.died == "" && p.panicked == "" && len(p.gone) == 0 && len(p.reports()) == 0
	if usual := r.sweep.baseline[0]; same && !p.result.state.equal(usual.result.state) {
		found(nil, "the application reported nothing, but %s", p.result.state.difference(usual.result.state))
	}
}

func (r *run) lost(found found) {
	wanted, got, excuses := r.sweep.baseline[0].result.state, r.last().result.state, r.general(r.executions...)
	tried := func(c *Call) bool { return !refusedForNow(c.Err) }
	for _, s := range wanted.subjects() {
		calls := r.about(s)
		switch {
		case got.held[s] > 0 || slices.ContainsFunc(calls, (*Call).succeeded):
		case r.named(s, tried):
		case len(calls) == 0 && r.waits():
		case excuses > 0 && slices.ContainsFunc(calls, tried):
			excuses--
		default:
			found(s.endpoint, "%s is missing, even a day later, and no report names it", r.shown(s))
		}
	}
}

func (r *run) lostAgent(found found) {
	if r.died() && !r.sweep.keeps() {
		return // it notes no identifiers, so it cannot note that there may be one
	}
	lost, usual := unknownAgents(r.executions), func(stage int) int { return len(unknownAgents(r.sweep.baseline[:stage+1])) }
	if len(lost) > r.usually(usual) && !r.doubtNamed(subject{spec.CreateAgent, ""}) {
		found(spec.CreateAgent, "nobody knows of %s: it is neither in Env.Dir nor in what was said", strings.Join(lost, ", "))
	}
}

// unknownAgents are the agents whose identifier is neither kept nor said.
func unknownAgents(executions []*execution) (lost []string) {
	known, last := "", executions[len(executions)-1]
	for _, p := range executions {
		known += p.said()
	}
	for _, e := range last.result.dir {
		known += e.Content + "\n"
	}
	for _, id := range last.result.state.ids {
		if !strings.Contains(known, id) {
			lost = append(lost, id)
		}
	}
	return lost
}

// keeps reports an application that keeps identifiers of agents in Env.Dir.
func (s *sweep) keeps() bool {
	for _, u := range s.baseline {
		dir := u.result.dir.String()
		if slices.ContainsFunc(u.result.state.ids, func(id string) bool { return strings.Contains(dir, id) }) {
			return true
		}
	}
	return false
}

// waits reports an application that does no more, since somebody has to decide
// what became of a creation that is in doubt, and that says so at each start. Where
// a file is torn it may wait only if it does so too where that file is whole.
func (r *run) waits() bool {
	if !r.doubtNamed(subject{spec.CreateAgent, ""}) || r.general(r.last()) == 0 {
		return false
	}
	if r.base == "" {
		r.sweep.waiting[r.key] = true
	}
	return r.base == "" || r.sweep.waiting[r.base]
}

// usually is how many of something there may be after the executions of this run: as
// many as the baseline leaves, and for each restart as many as one of its restarts
// adds.
func (r *run) usually(upTo func(stage int) int) int {
	most := 0
	for stage := 1; stage < len(restarts); stage++ {
		most = max(most, upTo(stage)-upTo(stage-1))
	}
	return upTo(0) + most*(len(r.executions)-1)
}

func (r *run) doubled(found found) {
	last := r.last().result.state
	for _, s := range last.subjects() {
		usual := max(1, r.usually(func(stage int) int { return r.sweep.baseline[stage].result.state.most[s] }))
		if n := last.most[s]; n-r.reportedAgents(s) > usual && !r.doubtNamed(s) {
			again := ""
			if r.died() {
				again = "the restart did it again: "
			}
			found(s.endpoint, "%s%s is there %d times in the end (without faults at most %d), and no report says that it was in doubt", again, r.shown(s), n, usual)
			return
		}
	}
}

func (r *run) lostBYOK(found found) {
	cleared := false
	for _, p := range r.executions {
		cleared = cleared || p.cleared
		if p.died != "" {
			continue
		}
		switch got, want := p.result.state.byok, r.sweep.baseline[p.stage].result.state.byok; {
		case cleared && got == "" && want != "":
			found(spec.ClearBYOK, "%sthe stored provider key is cleared, and no other has taken its place", p.when())
			return
		case got != "" && want == "" && !p.clears():
			found(spec.ClearBYOK, "%sa provider key is left stored, and the application has not tried to clear it", p.when())
			return
		}
	}
}

// reportedAgents counts the agents for a customer_ref whose identifier a report
// names.
func (r *run) reportedAgents(s subject) (n int) {
	for _, c := range r.about(s) {
		if c.spec == spec.CreateAgent && c.AgentID != "" && r.named(subject{spec.CreateAgent, c.AgentID}, func(*Call) bool { return false }) {
			n++
		}
	}
	return n
}

// clears reports whether the application tried to clear what it had, perhaps,
// stored last.
func (p *execution) clears() (clears bool) {
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

func (r *run) notResumed(found found) {
	last, usual := r.last(), r.sweep.baseline[len(restarts)-1]
	if reports := last.reports(); len(reports) > 0 {
		for _, c := range last.calls {
			if c.failed() && !last.usuallyFails(c) {
				found(c.spec, "a day later, when nothing is wrong any more, %s still fails: %v", c.Name, c.Err)
				return
			}
		}
		for _, c := range usual.calls {
			if !slices.ContainsFunc(last.calls, func(other *Call) bool { return other.spec == c.spec }) && !r.waits() {
				found(c.spec, "a day later, when nothing is wrong any more, the application reports an error and does not call %s: %s",
					c.spec.Name, oneLine(reports[0].text))
				return
			}
		}
	}
}

// shown is a subject in a sentence. Its text may be somebody's words, so it is named by a
// call that sends it.
func (r *run) shown(s subject) string {
	what := map[*spec.Endpoint]string{spec.SendMessage: "the message", spec.CreateAgent: "the agent"}[s.endpoint]
	for _, c := range slices.Concat(r.sweep.baseline[0].calls, r.calls()) {
		if c.spec == s.endpoint && c.subject == s.text && c.Name != "" {
			return what + " of " + c.Name
		}
	}
	return fmt.Sprintf("%s with a text of %s", what, plural(len([]rune(s.text)), "character"))
}

// refusedForNow reports a failure after which the call can be made again
// without a doubt, and succeed one day.
func refusedForNow(err error) bool {
	return errors.Is(err, agentmessaging.ErrUnauthorized) || errors.Is(err, agentmessaging.ErrPaymentRequired) ||
		errors.Is(err, agentmessaging.ErrRateLimited)
}

// endpointOf is an endpoint as users know it; "" for none.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Method + " " + e.Path)
}

// when is the beginning of a sentence about an execution.
func (p *execution) when() string {
	if p.stage == 0 {
		return ""
	}
	return fmt.Sprintf("after the restart %s later, ", restarts[p.stage].later)
}
