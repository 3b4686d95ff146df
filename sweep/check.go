package sweep

import (
	"cmp"
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

// Check names a problem that [Test] looks for after a run. "Reported" means that the
// application passes a text to Env.Reports or Env.Told, asserts it, logs it at Warn or
// above, or prints the error of a call, and that the baseline does not say the same.
// The baseline is the run without faults, including its restarts. Two lines say the same
// if they differ only in durations, times and the fake's identifiers, or in words that
// differ when the scenario runs a second time without faults.
type Check string

// The checks. All are on; see [Without].
const (
	// Swallowed: a call failed, no later call in the same execution made up for it, and the
	// application reported nothing. A later call makes up for it if it has the same text or
	// customer_ref. If the failed call has neither, a later call to the same endpoint and agent
	// makes up for it. Creating an agent makes up for reading an agent that is gone. Reading an
	// agent or the BYOK configuration makes up for a failed change of it. The calls of a
	// restart come too late, because the failure was unknown until then. An Env.Point that
	// failed is like a call: passing it later makes up for the failure.
	Swallowed Check = "swallowed"
	// Truth: nothing was reported, but the state of the service differs from the baseline
	// in more than identifiers and times. The order of an agent's messages counts too, if
	// all calls come from the scenario's goroutine. After a death, only what is missing
	// after all restarts counts, in any order. If restarts of the baseline remove something
	// too, Truth does not judge deaths. Duplicates are for Doubled and LostAgent. Agents
	// that differ only in an ID such as agent_7 are not distinguished. The provider key of
	// an agent is not compared, since the fake does not show it. An agent for which a fault
	// answered 404 counts as gone, even if the service still has it: an application may go
	// on with another agent without a report. So Truth ignores such a run, and LostAgent
	// and Doubled do not count that agent.
	Truth Check = "truth"
	// Lost: after all restarts, a message or a customer's agent that the baseline has is
	// missing, and the application has not named it. One text counts as one message, also if
	// several agents have it; Truth counts them all.
	//
	// A report names what is missing if
	//   - the report has its text or customer_ref, or
	//   - the report is the error of its call. If the call met 401, 402 or 429, this does not
	//     count, since the application can make the call again.
	//
	// A vague report names no message and is not the error of a call. It excuses one missing
	// item that the application tried to send or create, but not if each try met 401, 402 or
	// 429. An item that it never tried is excused only while the application waits for
	// somebody's decision; see Resumes.
	Lost Check = "lost"
	// LostAgent: nobody knows an agent: its identifier is in no file and no file name of
	// Env.Dir, and in no text of the application. The run has more such agents than the
	// baseline. It is forgiven if a creation was in doubt, and the doubt was reported. After a
	// death it is checked only if the baseline keeps identifiers in Env.Dir.
	LostAgent Check = "lost agent"
	// Doubled: a text is in one agent's conversation, or a customer_ref among the agents, more
	// often than in the baseline. An agent whose identifier is in a report does not count. A
	// double is forgiven if a call about it was in doubt and a report has its text, is the
	// error of that call, or names no message at all. A call is in doubt if its outcome is
	// unknown, or if its process died and the call had not failed. A creation is no longer in
	// doubt once its agent's identifier is in a file of Env.Dir that the baseline has too.
	Doubled Check = "doubled"
	// Quota: one execution of the scenario made more than nine times the requests of the
	// baseline. Nine allows three tries of the application, each with three attempts of the
	// client. A request that is refused with 429 does not count, because it is not a failure
	// and the client goes on waiting.
	Quota Check = "quota"
	// DeadKey: a goroutine that met 401 or 402 four times in a row sent another request.
	DeadKey Check = "dead key"
	// LostBYOK: a stored provider key was cleared and not replaced; or a provider key that the
	// baseline clears is still stored, and clearing it was not the last thing that the
	// application tried. Truth finds a key that was never stored.
	LostBYOK Check = "lost BYOK"
	// Ends: the scenario takes too long in virtual time ([MaxVirtualTime]), makes
	// requests without end, or stalls in real time ([Watchdog]).
	Ends Check = "ends"
	// Panics: the scenario's goroutine panicked. A panic on another goroutine ends the
	// process; with GODEBUG=tracebacklabels=1, Go 1.26 prints the run's name with it.
	Panics Check = "panics"
	// Leak: goroutines are left over that are not left over in the baseline.
	Leak Check = "leak"
	// Secret: a text of the application shows the service key or a provider key.
	Secret Check = "secret"
	// Resumes: a day later, when the fault is over, calls fail, or the application reports an
	// error instead of doing its work. The second is allowed if the application waits for
	// somebody's decision: (1) a creation is in doubt (see Doubled), (2) this was reported, and
	// (3) the restart a day later reports it again, with a vague report (see Lost). After a
	// death in the middle of a write, it must also wait after the same death with an intact
	// file.
	Resumes Check = "resumes"
)

// finding is a check that a run failed.
type finding struct {
	Check    Check               // a Check, or the name of a check of WithCheck
	Plan     string              // the run's plan: SendMessage_2/reply_lost/once, SendMessage_2/dies_arrived
	Endpoint fakeserver.Endpoint // the endpoint of the call that failed the check, for Without; "" if there is none
	Says     string              // the problem in one sentence
}

// allChecks lists the checks in the order in which they run.
var allChecks = []Check{Panics, Ends, Swallowed, Quota, DeadKey, Leak, Secret, Truth, Lost, LostAgent, Doubled, LostBYOK, Resumes}

// reportFunc takes a finding about an endpoint. A nil endpoint means the endpoint of the call
// that the plan's fault hits.
type reportFunc func(check Check, about *spec.Endpoint, format string, args ...any)

// checkExecution runs the checks of one execution.
func (rec *record) checkExecution(found reportFunc) {
	baseline, reports, all := rec.baselineExecutions(), rec.reports(), rec.said()
	foundIf := func(failed bool, check Check, format string, args ...any) {
		if failed {
			found(check, nil, format, args...)
		}
	}
	if rec.stalled != "" { // the execution was still running, so the state that it left shows nothing
		found(Ends, nil, "the scenario %s", rec.stalled)
		return
	}
	foundIf(rec.panicked != "", Panics, "the scenario panicked: %s", rec.panicked)
	foundIf(rec.ended != "", Ends, "the scenario had to be ended: %s", rec.ended)
	foundIf(rec.ended == "" && rec.lasted > rec.maxLasted, Ends,
		"the scenario took %s of virtual time; at most %s are allowed (MaxVirtualTime)", rec.lasted.Round(time.Second), rec.maxLasted.Round(time.Second))
	for i, c := range rec.calls {
		if len(reports) == 0 && c.failed() && !rec.failsInBaseline(c) && !c.madeUpFor(rec.calls[i+1:]) {
			found(Swallowed, c.spec, "%s failed (%v), no later call in the same execution made up for it, and the application reported nothing", c.Name, c.Err)
		}
	}
	foundIf(len(reports) == 0 && rec.failedPoint != "", Swallowed,
		"%s failed, was not passed later in the same execution, and the application reported nothing", rec.failedPoint)
	foundIf(rec.requests > rec.maxRequests, Quota,
		"the scenario made %s; the baseline makes %d", printable.Plural(rec.requests, "request"), max(baseline[0].requests, baseline[1].requests))
	foundIf(rec.deadKeyRequests > max(3, baseline[0].deadKeyRequests, baseline[1].deadKeyRequests), DeadKey,
		"the service had answered 401 or 402 %d times in a row, and was asked again: nothing helps but another key or plan", rec.deadKeyRequests)
	foundIf(len(rec.leaked) > rec.maxLeaked, Leak,
		"%s left over:\n%s", printable.Plural(len(rec.leaked), "kind of goroutine"), strings.Join(rec.leaked, "\n"))
	foundIf(rec.withoutKeys(all) != all, Secret, "a key is in what the application said")
}

// checkRun runs the checks of the whole run.
func (r *run) checkRun(found reportFunc) {
	r.truth(found)
	r.lost(found)
	r.lostAgent(found)
	r.doubled(found)
	r.lostBYOK(found)
	r.notResumed(found)
}

// confirms maps an endpoint to the endpoint that shows whether a call was carried out.
var confirms = map[*spec.Endpoint]*spec.Endpoint{
	spec.EnableSMS: spec.GetAgent, spec.SetBYOK: spec.GetBYOK, spec.ClearBYOK: spec.GetBYOK,
}

// madeUpFor reports whether one of the later calls made up for the failure of this call.
func (c *Call) madeUpFor(later []*Call) bool {
	return slices.ContainsFunc(later, func(l *Call) bool {
		return !l.failed() && (c.repeatedBy(l) || c.replacedBy(l) || c.confirmedBy(l))
	})
}

// repeatedBy reports whether a later call does the same: it has the same text or customer_ref
// or, if the failed call has neither, it goes to the same endpoint and agent.
func (c *Call) repeatedBy(l *Call) bool {
	same := c.subject == l.subject
	if c.subject == "" {
		same = c.AgentID == l.AgentID || c.spec == spec.CreateAgent
	}
	return same && c.spec == l.spec
}

// replacedBy reports whether a later call creates an agent in place of one that is gone.
func (c *Call) replacedBy(l *Call) bool {
	return c.spec == spec.GetAgent && errors.Is(c.Err, agentmessaging.ErrNotFound) && l.spec == spec.CreateAgent
}

// confirmedBy reports whether a later call reads what the failed call was to change.
func (c *Call) confirmedBy(l *Call) bool { return confirms[c.spec] == l.spec && c.AgentID == l.AgentID }

// calls returns the calls about the subject, or about any subject of its endpoint if its
// text is "". A call that has sent nothing, for example because of a death, may be about
// any subject, so it is included.
func (s subject) calls(all []*Call) []*Call {
	return slices.DeleteFunc(slices.Clone(all), func(c *Call) bool {
		return c.spec != s.endpoint || s.text != "" && c.subject != s.text && c.content != 0
	})
}

// named reports whether the application has named text: a report has the text, or is the
// error of one of the calls.
func (r *run) named(text string, calls []*Call) bool {
	return slices.ContainsFunc(r.reports(), func(t statement) bool {
		return text != "" && t.contains(text) || slices.ContainsFunc(calls, t.isFrom)
	})
}

// isFrom reports whether the statement is the error of a call.
func (t statement) isFrom(c *Call) bool { return c.failed() && errors.Is(t.err, c.Err) }

// vagueReports counts the reports that may be about anything: they are not the error of a
// call, and name no message. A report that a restart repeats counts once.
func (r *run) vagueReports(records ...*record) (n int) {
	calls, subjects := r.calls(), r.baselineRecords()[0].left.state.subjects()
	var vague [][]statement
	for _, rec := range records {
		vague = append(vague, slices.DeleteFunc(rec.reports(), func(t statement) bool {
			return slices.ContainsFunc(calls, t.isFrom) || slices.ContainsFunc(subjects, func(s subject) bool {
				return s.endpoint == spec.SendMessage && t.contains(s.text)
			})
		}))
	}
	for _, times := range r.records[0].baseline.varied.maxCounts(vague...) {
		n += times
	}
	return n
}

// doubtNamed reports whether a call about the subject was in doubt, and the doubt was
// reported: by name, or by a report that may be about anything.
func (r *run) doubtNamed(s subject) bool {
	var doubt []*Call
	for _, rec := range r.records {
		doubt = append(doubt, slices.DeleteFunc(s.calls(rec.calls), func(c *Call) bool { return !rec.inDoubt(c) })...)
	}
	return len(doubt) > 0 && (r.vagueReports(r.records...) > 0 || r.named(s.text, doubt))
}

// inDoubt reports whether a restart cannot know if a call of the execution was carried
// out: its outcome is unknown, or the process died before it stored the outcome. An
// identifier in a file shows that the outcome of a creation was stored. Nothing shows
// this for a message, so after a death each message that had not failed is in doubt.
func (rec *record) inDoubt(c *Call) bool {
	if rec.died == "" || c.failed() {
		return errors.Is(c.Err, agentmessaging.ErrOutcomeUnknown)
	}
	return c.spec != spec.CreateAgent || !c.ended || !rec.keeps(c.AgentID)
}

// keeps reports whether an identifier is in the content or the name of a file that the
// baseline has too. So a temporary file that was not yet moved into place does not count.
func (rec *record) keeps(id string) bool {
	for path, entry := range rec.left.dir {
		if _, inBaseline := rec.baseline.records[0].left.dir[path]; inBaseline && strings.Contains(path+"\n"+entry.Content, id) {
			return true
		}
	}
	return false
}

// truth makes the check Truth. If the process died, the restarts have to do the work. They may
// do some of it twice, which Doubled and LostAgent find, so here only what is missing counts.
func (r *run) truth(found reportFunc) {
	baseline, judged := r.records[0].baseline, r
	if !r.died() {
		judged = &run{records: r.records[:1]}
	}
	got, want := judged.last().left.state, baseline.records[0].left.state
	removes := func(rec *record) bool { return missing(rec.left.state.items, want.items) != "" }
	if len(judged.last().seen.gone) > 0 || len(judged.reports()) > 0 || r.died() && slices.ContainsFunc(baseline.records, removes) {
		return
	}
	differs := missing(got.items, want.items)
	if !r.died() {
		differs = difference(got.items, want.items)
	}
	if baseline.ordered && !r.died() {
		differs = cmp.Or(differs, difference(got.order, want.order))
	}
	if differs != "" {
		found(Truth, nil, "the application reported nothing, but the service is in another state than after the baseline (%s)", differs)
	}
}

// lost makes the check Lost.
func (r *run) lost(found reportFunc) {
	got, excuses := r.last().left.state, r.vagueReports(r.records...)
	for _, s := range r.baselineRecords()[0].left.state.subjects() {
		calls := s.calls(r.calls())
		tried := slices.DeleteFunc(slices.Clone(calls), func(c *Call) bool { // leaves out calls that can still succeed one day
			return errors.Is(c.Err, agentmessaging.ErrUnauthorized) || errors.Is(c.Err, agentmessaging.ErrPaymentRequired) ||
				errors.Is(c.Err, agentmessaging.ErrRateLimited)
		})
		switch {
		case got.copies[s] > 0 || slices.ContainsFunc(calls, (*Call).succeeded):
		case r.named(s.text, tried):
		case len(calls) == 0 && r.awaitsDecision():
		case excuses > 0 && len(tried) > 0:
			excuses--
		default:
			found(Lost, s.endpoint, "%s is missing, even a day later, and no report names it", r.describeSubject(s))
		}
	}
}

// lostAgent makes the check LostAgent.
func (r *run) lostAgent(found reportFunc) {
	kept := r.baselineRecords()[0].left
	if r.died() && !slices.ContainsFunc(kept.state.ids, func(id string) bool { return strings.Contains(kept.dir.String(), id) }) {
		return // the application stores no identifiers, so it could not know the agent after the death
	}
	lost, baselineCount := unknownAgents(r.records), func(stage int) int { return len(unknownAgents(r.baselineRecords()[:stage+1])) }
	if len(lost) > r.allowedCount(baselineCount) && !r.doubtNamed(subject{spec.CreateAgent, ""}) {
		found(LostAgent, spec.CreateAgent, "nobody knows of %s: it is neither in Env.Dir nor in what was said", strings.Join(lost, ", "))
	}
}

// unknownAgents returns the agents whose identifier is neither in Env.Dir nor in a text
// of the application.
func unknownAgents(records []*record) []string {
	left := records[len(records)-1].left
	known := left.dir.String()
	for _, rec := range records {
		known += rec.said()
	}
	return slices.DeleteFunc(slices.Clone(left.state.ids), func(id string) bool { return strings.Contains(known, id) })
}

// awaitsDecision reports whether the application is right to stop: a creation is in doubt, so
// somebody has to decide, and the application still says so at the end of the run. After a
// death in the middle of a write, it must also wait after the same death with an intact file.
// Otherwise it waits only because it cannot read the file.
func (r *run) awaitsDecision() bool { return r.awaits() && (r.untorn == nil || r.untorn.awaits()) }

// awaits is awaitsDecision for this run alone, without the comparison with an intact file.
func (r *run) awaits() bool {
	return r.doubtNamed(subject{spec.CreateAgent, ""}) && r.vagueReports(r.last()) > 0
}

// allowedCount returns how many items, such as copies of a message, this run may leave. leaves
// returns how many the baseline has left after a stage. Allowed are those of the baseline's
// first execution and, for each restart of this run, the most that one restart of the baseline
// adds.
func (r *run) allowedCount(leaves func(stage int) int) int {
	maxAdded := 0
	for stage := 1; stage < len(stages); stage++ {
		maxAdded = max(maxAdded, leaves(stage)-leaves(stage-1))
	}
	return leaves(0) + maxAdded*(len(r.records)-1)
}

// doubled makes the check Doubled.
func (r *run) doubled(found reportFunc) {
	last := r.last().left.state
	for _, s := range last.subjects() {
		handedOver := slices.DeleteFunc(s.calls(r.calls()), func(c *Call) bool { // creations whose agent a report names
			return c.spec != spec.CreateAgent || !r.named(c.AgentID, nil)
		})
		allowed := max(1, r.allowedCount(func(stage int) int { return r.baselineRecords()[stage].left.state.copies[s] }))
		if n := last.copies[s]; n-len(handedOver) > allowed && !r.doubtNamed(s) {
			again := ""
			if r.died() {
				again = "the restart did it again: "
			}
			found(Doubled, s.endpoint, "%s%s is there %d times in the end (without faults at most %d), and no report says that it was in doubt", again, r.describeSubject(s), n, allowed)
			return
		}
	}
}

// lostBYOK makes the check LostBYOK.
func (r *run) lostBYOK(found reportFunc) {
	hadKey := false
	for _, rec := range r.records {
		hadKey = hadKey || rec.hadKey
		if rec.died != "" {
			continue
		}
		switch got, want := rec.left.state.byok, r.baselineRecords()[rec.stage].left.state.byok; {
		case hadKey && !got && want:
			found(LostBYOK, spec.ClearBYOK, "%sthe stored provider key is cleared, and no other has taken its place", rec.when())
			return
		case got && !want && !rec.clears():
			found(LostBYOK, spec.ClearBYOK, "%sa provider key is left stored, and the application has not tried to clear it", rec.when())
			return
		}
	}
}

// notResumed makes the check Resumes.
func (r *run) notResumed(found reportFunc) {
	last, baseline := r.last(), r.baselineRecords()[lastStage]
	if reports := last.reports(); len(reports) > 0 {
		for _, c := range last.calls {
			if c.failed() && !last.failsInBaseline(c) {
				found(Resumes, c.spec, "a day later, when nothing is wrong any more, %s still fails: %v", c.Name, c.Err)
				return
			}
		}
		for _, c := range baseline.calls {
			if !slices.ContainsFunc(last.calls, func(other *Call) bool { return other.spec == c.spec }) && !r.awaitsDecision() {
				found(Resumes, c.spec, "a day later, when nothing is wrong any more, the application reports an error and does not call %s: %s",
					c.spec.Name, printable.Line(reports[0].text, maxLine))
				return
			}
		}
	}
}

// describeSubject names a subject in a sentence. It names a call that sends the subject and
// not the text, which may be a person's words.
func (r *run) describeSubject(s subject) string {
	what := map[*spec.Endpoint]string{spec.SendMessage: "the message", spec.CreateAgent: "the agent"}[s.endpoint]
	for _, c := range slices.Concat(r.baselineRecords()[0].calls, r.calls()) {
		if c.spec == s.endpoint && c.subject == s.text && c.Name != "" {
			return what + " of " + c.Name
		}
	}
	return fmt.Sprintf("%s with a text of %s", what, printable.Plural(len([]rune(s.text)), "character"))
}

// maxLine bounds each thing that a report quotes, in bytes.
const maxLine = 300

// endpointOf returns an endpoint as a fakeserver.Endpoint; "" for nil.
func endpointOf(e *spec.Endpoint) fakeserver.Endpoint {
	if e == nil {
		return ""
	}
	return fakeserver.Endpoint(e.Pattern)
}
