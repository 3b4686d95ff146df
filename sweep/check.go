package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Check is what [Test] looks for after a run. "Reported" is what the application
// gives to Env.Reports or Env.Told, asserts, logs at Warn or above, or prints of
// this module's errors, as far as the baseline does not say the same. The baseline
// is the run without faults, its restarts included. Two lines say the same if they
// differ only in durations, times and the fake's identifiers, or in words that
// differ when the scenario runs a second time without faults.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call in the same execution made it good, and
	// the application reported nothing. A later call makes it good if it has the same
	// text or customer_ref; if there is neither, one to the same endpoint and agent.
	// Creating an agent makes good that another one is gone, and reading an agent
	// or the BYOK configuration that it could not be changed. What a restart does comes
	// too late: until then the failure was unknown. An Env.Point that failed is like
	// a call: passing it later makes it good.
	Swallowed Check = "swallowed"
	// Truth: nothing was reported, but the service is in another state than in the
	// baseline, identifiers and times apart. The provider key of an agent is not
	// compared, since the fake does not show it. An agent for which a fault answered 404
	// counts as gone, even if the service still has it: an application may go on with
	// another without a word, so Truth does not look at such a run, and LostAgent and
	// Doubled do not count that agent.
	Truth Check = "truth"
	// Lost: at the end, after all restarts, the agents never got a message or a
	// customer never got an agent that the baseline has, and the
	// application has not named it: by its text, or by the error of its call. A
	// report that names no message and is the error of no call excuses one that was
	// tried. A call that met 401, 402 or 429 is named by its text alone, since the
	// application can make it again. All that was not tried is excused if a creation is
	// in doubt and the application waits for somebody to decide; see Resumes.
	Lost Check = "lost"
	// LostAgent: there is an agent whose identifier is neither in Env.Dir, in a file or
	// in the name of one, nor in what was said, and there are more of them than in the
	// baseline. It is forgiven where a creation was in doubt, and that was reported.
	LostAgent Check = "lost agent"
	// Doubled: an agent has one text, or there are agents with one customer_ref,
	// more often than in the baseline. It is forgiven where a call about it was in
	// doubt and a report has its text, is the error of that call, or names no message
	// at all. A call is in doubt if its outcome is unknown, or if its process died and
	// it had not failed. A creation is not, once its identifier is in a file of Env.Dir
	// that the baseline has too.
	Doubled Check = "doubled"
	// Quota: more than nine times the requests of the baseline: three tries of the
	// application, each with three attempts of the client. A request that is refused
	// with 429 does not count: it is not a failure, and the client goes on waiting.
	Quota Check = "quota"
	// DeadKey: another request of a goroutine that has met 401 or 402 four times in a
	// row.
	DeadKey Check = "dead key"
	// LostBYOK: a stored provider key was cleared and none took its place; none was ever
	// stored, and nothing was reported; or one is left stored that the baseline has
	// cleared.
	LostBYOK Check = "lost BYOK"
	// Ends: the scenario takes too long in virtual time ([MaxVirtualTime]), makes
	// requests without end, or stalls in real time ([Watchdog]).
	Ends Check = "ends"
	// Panics: the scenario's goroutine panicked. A panic on another goroutine ends the
	// process; with GODEBUG=tracebacklabels=1, Go 1.26 prints the run's name with it.
	Panics Check = "panics"
	// Leak: goroutines are left that the baseline has not left.
	Leak Check = "leak"
	// Secret: the service key or a provider key was said.
	Secret Check = "secret"
	// Resumes: a day later, when nothing is wrong any more, calls fail, or the
	// application reports an error instead of doing its work. It is forgiven where a
	// creation is in doubt (see Doubled) and each start says so, by its error or by a
	// report that names no message: then somebody has to decide. After a death in the
	// middle of a write this holds only if the application also waits where the same
	// death left the file as it was.
	Resumes Check = "resumes"
)

// finding is a check that a run failed.
type finding struct {
	Check    Check               // or the name of a check of WithCheck
	Plan     string              // of the run: SendMessage_2/reply_lost/once, SendMessage_2/dies_arrived
	Endpoint fakeserver.Endpoint // of the call that it is about, for Without; "" if there is none
	Says     string              // in one sentence
}

// allChecks are the checks, in the order in which they look.
var allChecks = []Check{Panics, Ends, Swallowed, Quota, DeadKey, Leak, Secret, Truth, Lost, LostAgent, Doubled, LostBYOK, Resumes}

// found takes what a check has found: about an endpoint, or about the one that
// the plan strikes if it is nil.
type found func(check Check, about *spec.Endpoint, says string, args ...any)

// check looks at one execution.
func (rec *record) check(found found) {
	usual, reports, all := rec.baselines(), rec.reports(), rec.said()
	if rec.stalled != "" { // in the middle of its work, so what it left shows nothing
		found(Ends, nil, "the scenario %s", rec.stalled)
		return
	}
	if rec.panicked != "" {
		found(Panics, nil, "the scenario panicked: %s", rec.panicked)
	}
	switch {
	case rec.ended != "":
		found(Ends, nil, "the scenario had to be ended: %s", rec.ended)
	case rec.lasted > rec.maxLasted:
		found(Ends, nil, "the scenario took %s of virtual time; at most %s are allowed (MaxVirtualTime)", rec.lasted.Round(time.Second), rec.maxLasted.Round(time.Second))
	}
	for i, c := range rec.calls {
		if len(reports) == 0 && c.failed() && !rec.usuallyFails(c) && !c.madeGood(rec.calls[i+1:]) {
			found(Swallowed, c.spec, "%s failed (%v), no later call in the same execution made it good, and the application reported nothing", c.Name, c.Err)
		}
	}
	if len(reports) == 0 && rec.failedPoint != "" {
		found(Swallowed, nil, "%s failed, was not passed later in the same execution, and the application reported nothing", rec.failedPoint)
	}
	if rec.requests > rec.maxRequests {
		found(Quota, nil, "the scenario made %s; the baseline makes %d", plural(rec.requests, "request"), max(usual[0].requests, usual[1].requests))
	}
	if rec.deadKeyRequests > max(3, usual[0].deadKeyRequests, usual[1].deadKeyRequests) {
		found(DeadKey, nil, "the service had answered 401 or 402 %d times in a row, and was asked again: nothing helps but another key or plan", rec.deadKeyRequests)
	}
	if len(rec.leaked) > max(len(usual[0].leaked), len(usual[1].leaked)) {
		found(Leak, nil, "%s left over:\n%s", plural(len(rec.leaked), "kind of goroutine"), strings.Join(rec.leaked, "\n"))
	}
	if strings.Contains(all, rec.fake.Key()) || slices.ContainsFunc(rec.calls, func(c *Call) bool { return c.key != "" && strings.Contains(all, c.key) }) {
		found(Secret, nil, "a key is in what the application said")
	}
}

// check looks at all executions together.
func (r *run) check(found found) {
	first, usual := r.records[0], r.baseline()[0].left.state
	same := first.died == "" && len(first.left.gone) == 0 && len(first.reports()) == 0
	if unlike := first.left.state.unlike(usual); same && unlike != "" {
		found(Truth, nil, "the application reported nothing, but the service holds something else than the baseline leaves: %s", unlike)
	}
	r.lost(found)
	r.lostAgent(found)
	r.doubled(found)
	r.lostBYOK(found)
	r.notResumed(found)
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
		case confirms[c.spec] == l.spec && c.AgentID == l.AgentID:
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

// calls returns the calls about the subject, or about any subject of its endpoint if its
// text is "". A call that has sent nothing, such as one that a death cut off, may be about
// any subject, so it is among them.
func (s subject) calls(all []*Call) []*Call {
	return slices.DeleteFunc(slices.Clone(all), func(c *Call) bool {
		return c.spec != s.endpoint || s.text != "" && c.subject != s.text && c.content != 0
	})
}

// named reports whether the application has named something: a report has its text, or
// is the error of one of the calls.
func (r *run) named(text string, calls []*Call) bool {
	return slices.ContainsFunc(r.reports(), func(t statement) bool {
		return text != "" && t.contains(text) || slices.ContainsFunc(calls, t.isFrom)
	})
}

// vagueReports counts the reports of the executions that may be about anything: they are
// not the error of a call, and name no message. What a restart repeats counts once.
func (r *run) vagueReports(records ...*record) (n int) {
	calls, subjects := r.calls(), r.baseline()[0].left.state.subjects()
	vague := func(rec *record) []statement {
		return slices.DeleteFunc(rec.reports(), func(t statement) bool {
			return slices.ContainsFunc(calls, t.isFrom) || slices.ContainsFunc(subjects, func(s subject) bool {
				return s.endpoint == spec.SendMessage && t.contains(s.text)
			})
		})
	}
	for _, times := range mostOften(records, vague) {
		n += times
	}
	return n
}

// doubtNamed reports whether a call about the subject was in doubt, and that was
// reported: by name, or by a report that may be about anything.
func (r *run) doubtNamed(s subject) bool {
	var doubt []*Call
	for _, rec := range r.records {
		doubt = append(doubt, slices.DeleteFunc(s.calls(rec.calls), func(c *Call) bool { return !rec.inDoubt(c) })...)
	}
	return len(doubt) > 0 && (r.vagueReports(r.records...) > 0 || r.named(s.text, doubt))
}

// inDoubt reports whether a restart cannot know if a call of the execution was carried
// out: its outcome is unknown, or the process died before it noted that. The identifier
// in a file shows that a creation was noted. Nothing shows it of a message, so each that
// had not failed is in doubt.
func (rec *record) inDoubt(c *Call) bool {
	if rec.died == "" || c.failed() {
		return errors.Is(c.Err, agentmessaging.ErrOutcomeUnknown)
	}
	return c.spec != spec.CreateAgent || !c.ended || !rec.keeps(c.AgentID)
}

// keeps reports whether an identifier is in a file, or in its name, that the baseline has
// too. A file that is still to be moved into place does not count.
func (rec *record) keeps(id string) bool {
	for path, entry := range rec.left.dir {
		if _, usual := rec.baseline.records[0].left.dir[path]; usual && strings.Contains(path+"\n"+entry.Content, id) {
			return true
		}
	}
	return false
}

// lost makes the check Lost.
func (r *run) lost(found found) {
	got, excuses := r.last().left.state, r.vagueReports(r.records...)
	for _, s := range r.baseline()[0].left.state.subjects() {
		calls := s.calls(r.calls())
		tried := slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { // refused for now: the call can still succeed one day
			return errors.Is(c.Err, agentmessaging.ErrUnauthorized) || errors.Is(c.Err, agentmessaging.ErrPaymentRequired) || errors.Is(c.Err, agentmessaging.ErrRateLimited)
		})
		switch {
		case got.copies[s] > 0 || slices.ContainsFunc(calls, (*Call).succeeded):
		case r.named(s.text, tried):
		case len(calls) == 0 && r.awaitsDecision():
		case excuses > 0 && len(tried) > 0:
			excuses--
		default:
			found(Lost, s.endpoint, "%s is missing, even a day later, and no report names it", r.shown(s))
		}
	}
}

// lostAgent makes the check LostAgent.
func (r *run) lostAgent(found found) {
	if r.died() && !r.keepsAgents() {
		return // it notes no identifiers, so it cannot note that there may be one
	}
	lost, usual := unknownAgents(r.records), func(stage int) int { return len(unknownAgents(r.baseline()[:stage+1])) }
	if len(lost) > r.allowedCount(usual) && !r.doubtNamed(subject{spec.CreateAgent, ""}) {
		found(LostAgent, spec.CreateAgent, "nobody knows of %s: it is neither in Env.Dir nor in what was said", strings.Join(lost, ", "))
	}
}

// unknownAgents returns the agents whose identifier is neither kept nor said.
func unknownAgents(records []*record) (lost []string) {
	known, last := "", records[len(records)-1]
	for _, rec := range records {
		known += rec.said()
	}
	known += last.left.dir.String()
	for _, id := range last.left.state.ids {
		if !strings.Contains(known, id) {
			lost = append(lost, id)
		}
	}
	return lost
}

// keepsAgents reports whether the application keeps identifiers of agents in Env.Dir.
func (r *run) keepsAgents() bool {
	usual := r.baseline()[0].left
	return slices.ContainsFunc(usual.state.ids, func(id string) bool { return strings.Contains(usual.dir.String(), id) })
}

// awaitsDecision reports whether the application rightly does no more: a creation is in
// doubt, somebody has to decide, and the application says so at each start. After a death
// that tore a file, it must also wait if the same death left the file whole: otherwise it
// waits only because it cannot read the file.
func (r *run) awaitsDecision() bool { return r.awaits() && (r.whole == nil || r.whole.awaits()) }

// awaits reports whether the application may wait for somebody's decision, whatever a
// death did to its files.
func (r *run) awaits() bool {
	return r.doubtNamed(subject{spec.CreateAgent, ""}) && r.vagueReports(r.last()) > 0
}

// allowedCount returns how many of something this run may leave. leaves is how many the
// baseline leaves at a stage. It allows what the baseline's first execution leaves and,
// for each restart of this run, the most that one restart of the baseline adds.
func (r *run) allowedCount(leaves func(stage int) int) int {
	most := 0
	for stage := 1; stage < len(stages); stage++ {
		most = max(most, leaves(stage)-leaves(stage-1))
	}
	return leaves(0) + most*(len(r.records)-1)
}

// doubled makes the check Doubled.
func (r *run) doubled(found found) {
	last := r.last().left.state
	for _, s := range last.subjects() {
		unsaved := slices.DeleteFunc(s.calls(r.calls()), func(c *Call) bool { // agents whose identifier a report names
			return c.spec != spec.CreateAgent || !r.named(c.AgentID, nil)
		})
		usual := max(1, r.allowedCount(func(stage int) int { return r.baseline()[stage].left.state.copies[s] }))
		if n := last.copies[s]; n-len(unsaved) > usual && !r.doubtNamed(s) {
			again := ""
			if r.died() {
				again = "the restart did it again: "
			}
			found(Doubled, s.endpoint, "%s%s is there %d times in the end (without faults at most %d), and no report says that it was in doubt", again, r.shown(s), n, usual)
			return
		}
	}
}

// lostBYOK makes the check LostBYOK.
func (r *run) lostBYOK(found found) {
	cleared := false
	for _, rec := range r.records {
		cleared = cleared || rec.cleared
		if rec.died != "" {
			continue
		}
		switch got, want := rec.left.state.byok, r.baseline()[rec.stage].left.state.byok; {
		case cleared && got == "" && want != "":
			found(LostBYOK, spec.ClearBYOK, "%sthe stored provider key is cleared, and no other has taken its place", rec.when())
			return
		case rec == r.last() && len(r.reports()) == 0 && got == "" && want != "":
			found(LostBYOK, spec.SetBYOK, "no provider key is stored, even a day later, and the application reported nothing")
			return
		case got != "" && want == "" && !rec.clears():
			found(LostBYOK, spec.ClearBYOK, "%sa provider key is left stored, and the application has not tried to clear it", rec.when())
			return
		}
	}
}

// notResumed makes the check Resumes.
func (r *run) notResumed(found found) {
	last, usual := r.last(), r.baseline()[lastStage]
	if reports := last.reports(); len(reports) > 0 {
		for _, c := range last.calls {
			if c.failed() && !last.usuallyFails(c) {
				found(Resumes, c.spec, "a day later, when nothing is wrong any more, %s still fails: %v", c.Name, c.Err)
				return
			}
		}
		for _, c := range usual.calls {
			if !slices.ContainsFunc(last.calls, func(other *Call) bool { return other.spec == c.spec }) && !r.awaitsDecision() {
				found(Resumes, c.spec, "a day later, when nothing is wrong any more, the application reports an error and does not call %s: %s",
					c.spec.Name, printable.Line(reports[0].text, maxLine))
				return
			}
		}
	}
}

// shown names a subject in a sentence: by a call that sends it, since its text may be
// somebody's words.
func (r *run) shown(s subject) string {
	what := map[*spec.Endpoint]string{spec.SendMessage: "the message", spec.CreateAgent: "the agent"}[s.endpoint]
	for _, c := range slices.Concat(r.baseline()[0].calls, r.calls()) {
		if c.spec == s.endpoint && c.subject == s.text && c.Name != "" {
			return what + " of " + c.Name
		}
	}
	return fmt.Sprintf("%s with a text of %s", what, plural(len([]rune(s.text)), "character"))
}

// maxLine bounds each thing that a report quotes, in bytes.
const maxLine = 300

// endpointOf returns an endpoint as users know it; "" for nil.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Method + " " + e.Path)
}
