// Package sweep tests that an application survives every failure at every call, and the
// death of its process at every moment. It runs a scenario once for each failure, and
// starts it again on the state that was left. Then it says what was lost or doubled, and
// what the application did not report:
//
//	func TestSupportBotSurvives(t *testing.T) {
//		sweep.Test(t, func(env *sweep.Env) {
//			bot := support.New(env.Client, env.Dir)
//			env.Reports(bot.Answer(env.Context(), "customer-7", "Where is my order?"))
//		})
//	}
//
// docs/sweep.md of this module has a worked example.
package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// How the parts work together, from the outside in:
//
//   - sweep.go decides on the runs: the baseline, a run for each plan of plan.go, and a
//     run for each state that a death leaves.
//   - execution.go runs the scenario once, with the transport of transport.go and the
//     Env of env.go, and returns a record of it.
//   - record.go defines the record, with its calls, the texts of the application (texts.go)
//     and the state that it leaves (state.go). A run is a series of records: of the first
//     execution and of the restarts.
//   - check.go reads records, and finds what is wrong. It runs no scenario.
//   - report.go groups the findings by cause, and prints them.
//
// No process is killed. At each moment at which the process might die, an execution
// copies the folder, the service and the record so far. A death is such a copy, and the
// restart starts from it. So one execution is enough for all its deaths, and its actions
// after the moment do not affect the copy.

// sweep is the state of one call of Test.
type sweep struct {
	setup

	restarted map[string]*record // executions, by their stage and by the state that they found
	states    map[string]*run    // the run that goes on from the state that a death left, by the state's key
	outcomes  map[string]string  // by the name of a run: the text to print if -run asks for the run and no check failed

	executions  int
	stalls      int  // runs that the watchdog ended
	outOfTime   bool // runs are missing, because go test -timeout would have ended the test
	missedPlans int  // plans whose fault hit no call
	restored    bool // a restart found something in its folder
	// deaths counts the deaths. untried counts the deaths that had no run, because there were
	// maxStates states already.
	deaths, untried int
	faults          map[string]bool // the faults that hit a call, by name
	causes          []*cause
	started         time.Time
}

// Test proves that an application survives. It runs the scenario without faults and lists its
// calls. Then it runs the scenario on a new fake once for each call and each fault that can hit
// this call. It starts the scenario again half a minute, half an hour and a day later on the
// state that was left. It also starts the scenario on every state that a dying process leaves:
// before a request leaves, after the service has carried out the request, after the answer has
// arrived, at each [Env.Point], and in the middle of writing a file of Env.Dir. The first
// restart after a death has deaths and faults too.
//
// The checks are the constants of type [Check]; all are on. They look at what the
// application reported, and at what really happened to the service. Each cause is
// reported once, as a failed subtest, with the story of the first run that shows it.
// Waits of the client take no time (see package agentmessagingtest). Waits of the
// application do, unless it waits with Env.Fake.Sleep, or [InBubble] is given.
//
// Sweep two or three messages, not a batch of hundreds: the number of executions grows with
// the calls, and with the files that are written. If the time of go test -timeout is nearly
// over, Test reports what it has found, and fails because runs are missing.
//
// The scenario calls Env.Client, on any goroutines, and passes the application's results
// to [Env.Reports]. It must not use the test's own *testing.T.
func Test(t *testing.T, scenario func(*Env), opts ...Option) {
	t.Helper()
	if slices.ContainsFunc(opts, func(o Option) bool { return o == nil }) {
		t.Fatal("sweep: an option is nil")
	}
	s := &sweep{
		setup:     setup{config: newConfig(opts), t: t, scenario: scenario, baseline: new(run)},
		restarted: map[string]*record{}, states: map[string]*run{}, outcomes: map[string]string{},
		faults: map[string]bool{}, started: time.Now(),
	}
	switch err := cmp.Or(s.validate(), s.tryOptions()); {
	case scenario == nil:
		t.Fatal("sweep: the scenario is nil")
	case err != nil:
		t.Fatalf("sweep: %v", err)
	case inBubble():
		t.Fatal("sweep: Test is called inside a bubble. Call it outside, with the option InBubble: each run then has its own bubble")
	}
	s.watch = disk.NewWatch()
	defer s.watch.Close()
	s.runBaseline()
	s.runFaults()
	s.runDeaths()
	s.report()
	if s.outOfTime {
		s.t.Fatal("sweep: runs are missing, because go test -timeout is nearly over: sweep fewer messages, or allow more time")
	}
}

// execute runs the scenario once, and counts the execution.
func (s *sweep) execute(x *execution) *record {
	s.executions++
	s.restored = s.restored || len(x.from.dir) > 0
	x.setup = &s.setup
	return x.execute()
}

// runBaseline runs the scenario without faults. The first run shows whether calls come
// from several goroutines and which texts vary. The second run is the baseline.
func (s *sweep) runBaseline() {
	s.t.Helper()
	var runs [2]run
	for i := range runs {
		from := nothingPersisted
		for stage := range stages {
			rec := s.execute(&execution{from: from, stage: stage, collectMoments: i == 1 && stage == 0 && !s.skip("dies")})
			s.mustPass(rec)
			runs[i].records, from = append(runs[i].records, rec), rec.left
		}
		s.singleGoroutine = !slices.ContainsFunc(runs[0].calls(), func(c *Call) bool { return !c.fromScenario })
	}
	first, baseline := runs[0].records[0], runs[1].records[0]
	sameOrder := difference(first.left.state.order, baseline.left.state.order) == ""
	*s.baseline = run{records: runs[1].records, trial: runs[0].records, ordered: s.singleGoroutine && sameOrder}
	switch {
	case len(baseline.calls) < len(first.calls):
		s.t.Fatalf("sweep: without faults, the scenario makes %s at first and %d the second time: it keeps something from run to run, such as a package's variable",
			printable.Plural(len(first.calls), "call"), len(baseline.calls))
	case !slices.ContainsFunc(baseline.calls, (*Call).succeeded):
		s.t.Fatal("sweep: no call succeeds without faults")
	}
	s.learnWhatVaries()
	if difference(first.left.state.items, baseline.left.state.items) != "" {
		s.t.Log("sweep: two runs without faults leave the service in different states: the checks Truth and Lost are off")
		s.without = append(s.without, without{check: Truth}, without{check: Lost})
	}
	s.runChecks(s.baseline)
}

// learnWhatVaries learns which words of a line vary even if nothing fails. It compares the two
// runs without faults, and a third run in which each answer takes half a minute: there, for
// example, printed times differ.
func (s *sweep) learnWhatVaries() {
	s.t.Helper()
	for stage := range stages {
		a, b := s.baseline.trial[stage], s.baseline.records[stage]
		hasWord := func(pattern string) bool { return strings.ContainsFunc(pattern, unicode.IsLetter) }
		differing := s.baseline.varied.learn(a.newStatements(b), b.newStatements(a), hasWord)
		if differing != nil && !s.singleGoroutine { // the order of goroutines may change the texts
			s.t.Logf("sweep: without faults, the scenario says %q and, the second time, %q: such lines count as reports, which excuse what they do not name", differing[0], differing[1])
		} else if differing != nil {
			s.t.Fatalf("sweep: without faults, the scenario says %q and, the second time, %q: nobody can tell such lines from a report, so say them with Env.Log", differing[0], differing[1])
		}
	}
	baseline := s.baseline.records[0]
	slow := s.execute(&execution{from: nothingPersisted, plan: &plan{target: baseline.calls[0].Name, fault: faults.Dripping, lasts: fromOn}})
	if len(slow.calls) == len(baseline.calls) && !slices.ContainsFunc(slow.calls, (*Call).failed) {
		onlyNumbersVary := func(pattern string) bool { return pattern != "" && !strings.Contains(pattern, "*") }
		s.baseline.varied.learn(slow.newStatements(baseline), baseline.newStatements(slow), onlyNumbersVary)
	}
}

// mustPass ends the test if the scenario does not work without faults.
func (s *sweep) mustPass(rec *record) {
	s.t.Helper()
	fail := func(how, why string) {
		s.t.Helper()
		s.t.Fatalf("sweep: %sthe scenario %s without faults: %s", rec.when(), how, rec.withoutKeys(why))
	}
	wrong := slices.IndexFunc(rec.statements, func(t statement) bool { return t.kind == asserted || t.kind == reported })
	switch {
	case rec.stalled != "":
		fail("stopped", rec.stalled)
	case rec.panicked != "":
		fail("panicked", rec.panicked)
	case rec.ended != "":
		fail("had to be ended", rec.ended)
	case rec.stage == 0 && rec.misused != nil: // a restart may have nothing left to do
		fail("misused Env.Fake", rec.misused.Error())
	case wrong >= 0 && (rec.stage == 0 || rec.stage == lastStage): // in the restarts between these two, a limit per hour may be used up
		fail("failed", rec.statements[wrong].text)
	case rec.skipped:
		s.t.Skip(rec.said())
	case rec.stage == 0 && len(rec.calls) == 0:
		s.t.Fatal("sweep: the scenario made no call with Env.Client")
	}
}

// runFaults runs the plans of each call and each point of the baseline. A fault for the
// whole call comes after the same fault for one attempt. It is left out if the client
// made no second attempt in that run.
func (s *sweep) runFaults() {
	retried := false
	for _, p := range plansOf(s.baseline.records[0].calls, s.baseline.records[0].points, s.singleGoroutine) {
		if s.skip(p.fault.Name) || p.lasts == wholeCall && !retried {
			continue
		}
		r := &run{name: p.String(), plan: p}
		s.finish(r, nothingPersisted, 0)
		retried = slices.ContainsFunc(r.calls(), func(c *Call) bool { return c.Name == p.target && len(c.Attempts) > 1 })
	}
}

// finish adds the executions from a stage on to a run, and checks the run.
func (s *sweep) finish(r *run, from persisted, stage int) {
	for ; stage < len(stages); stage++ {
		if s.mustStop() {
			return
		}
		rec := s.nextExecution(r, from, stage)
		r.records = append(r.records, rec)
		if rec.stalled != "" {
			s.stalls++
			break
		}
		from = rec.left
	}
	s.outcomes[r.name] = "this run passes"
	switch {
	case r.plan != nil && !r.plan.hasHit:
		s.missedPlans++
		s.outcomes[r.name] = "the fault of this run hit nothing"
		return
	case r.plan != nil:
		s.faults[r.plan.fault.Name] = true
	}
	s.runChecks(r)
}

// mustStop reports whether the sweep must end before all runs are tried: too many runs have
// stalled, or go test -timeout is nearly over. After that time the test binary would end
// without any report of the sweep.
func (s *sweep) mustStop() bool {
	if deadline, has := s.deadline(s.t); has {
		s.outOfTime = s.outOfTime || time.Until(deadline) < min(5*time.Second, deadline.Sub(s.started)/10)
	}
	return s.outOfTime || s.stalls >= maxStalls
}

// nextExecution returns the execution of a stage. A restart depends only on the state
// that it finds, so it is executed once for each such state, unless a plan has a fault
// for it.
func (s *sweep) nextExecution(r *run, from persisted, stage int) *record {
	x := &execution{name: r.name, from: from, stage: stage, collectMoments: stage == 1 && r.died() && r.plan == nil}
	if r.plan != nil && stage == r.plan.stage {
		x.plan = r.plan
		return s.execute(x)
	}
	key := fmt.Sprint(stage, from.key())
	rec := s.restarted[key]
	if rec == nil || x.collectMoments && rec.moments == nil {
		rec = s.execute(x)
		s.restarted[key] = rec
	}
	return rec
}

// maxStalls is the number of stalled runs after which a sweep ends, because every run
// might take the watchdog's time.
const maxStalls = 3

// maxStates bounds the number of states, because an application may leave a new state at
// each death.
const maxStates = 300

// runDeaths restarts the application on every state that a death leaves, and on every
// state that a death in such a restart leaves, until there are no new states.
func (s *sweep) runDeaths() {
	seen := map[string]bool{}
	for queue := []*run{{records: s.baseline.records[:1]}}; len(queue) > 0; queue = queue[1:] {
		for _, m := range queue[0].last().moments {
			s.deaths++
			dead := queue[0].diesAt(m)
			key := m.left.key()
			// A report before the death can excuse the restart. So a death without a report needs
			// a run, even if a death with a report left the same state.
			if known := s.states[key]; known != nil && (dead.reportedBefore || !known.reportedBefore) {
				s.outcomes[dead.name] = cmp.Or(s.outcomes[dead.name], "another death leaves the same state, so this one has no run")
				continue
			}
			if len(s.states) >= maxStates {
				s.untried++
				continue
			}
			r := *dead
			s.states[key] = &r
			r.untorn = s.states[m.untornKey]
			s.finish(&r, m.left, 1)
			if s.stalls > 0 || s.outOfTime || m.untornKey != "" || len(dead.records) > 1 { // a third death would show nothing new
				continue
			}
			restarted := r.records[1]
			if signature := restarted.signature(); !seen[signature] {
				seen[signature] = true
				s.faultsInRestart(dead, restarted, m.left)
				queue = append(queue, &run{name: dead.name, records: append(dead.records[:1:1], restarted)})
			}
		}
	}
}

// signature has the name of each moment of an execution and the content of its folder at
// that moment, without the identifiers of agents. If two restarts have the same
// signature, deaths and faults in the second would show nothing new.
func (rec *record) signature() (signature string) {
	for _, m := range rec.moments {
		signature += fmt.Sprintln(m.name, m.left.dir)
	}
	for _, id := range rec.left.state.ids {
		signature = strings.ReplaceAll(signature, id, "agent")
	}
	return signature
}

// diesAt returns the run up to a moment of its last execution, at which the process dies.
func (r *run) diesAt(m moment) *run {
	name, before := m.name, slices.Clone(r.records[:len(r.records)-1])
	if len(before) > 0 {
		name = r.name + ",restart." + name
	}
	dead := &run{name: name, records: append(before, m.record)}
	dead.reportedBefore = len(dead.reports()) > 0
	return dead
}

// faultsInRestart runs the plans for the calls of a restart after a death.
func (s *sweep) faultsInRestart(dead *run, restarted *record, from persisted) {
	for _, c := range restarted.calls {
		for _, p := range plansInRestart(c) {
			s.finish(&run{name: dead.name + "," + p.String(), plan: p, records: slices.Clone(dead.records)}, from, 1)
		}
	}
}
