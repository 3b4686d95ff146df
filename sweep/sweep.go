// Package sweep tests that an application survives every failure at every call,
// and the death of its process at every moment. It runs a scenario once for each,
// starts it again on what was left, and reports what was lost, doubled or kept
// secret:
//
//	func TestSupportBotSurvives(t *testing.T) {
//		sweep.Test(t, func(env *sweep.Env) {
//			bot := support.New(env.Client, env.Dir)
//			env.Reports(bot.Answer(env.Context(), "customer-7", "Where is my order?"))
//		})
//	}
//
// docs/sweep.md of this module teaches it in five minutes.
package sweep

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// sweep is the state of one call of Test.
type sweep struct {
	config
	t        *testing.T
	scenario func(*Env)
	parent   string // of the folders of the executions
	watch    *disk.Watch
	started  time.Time
	logged   time.Duration // since then, when the progress was logged last

	single   bool                  // all calls come from the scenario's goroutine
	baseline []*execution          // the first execution without a fault, and that of each restart
	known    map[string]*execution // restarts, by stage and what they found
	waiting  map[string]bool       // images after which the application waits for somebody to decide
	reached  map[string]bool       // names of Env.Sometimes

	runs, stalls, missed, deaths int
	faults                       map[string]bool
	states                       map[string]bool // images that a death left
	causes                       []*cause
}

// restarts are how long the application is down before each stage of a run: the first
// execution, and three restarts. A supervisor starts it at once; after half an hour it
// still meets the limits of the hour; after a day, and a minute so that whatever
// lasts a day is over, no limit is used up any more.
var restarts = []struct {
	down  time.Duration
	later string
}{{}, {30 * time.Second, "half a minute"}, {30 * time.Minute, "half an hour"}, {24*time.Hour + time.Minute, "a day"}}

// run is an execution that met a fault or died, and the restarts after it.
type run struct {
	sweep      *sweep
	name       string // of its plan, or of its deaths
	story      []string
	executions []*execution
	key        string // of the image that a death left
	base       string // where that image is torn: of the one before it
	plan       *plan
}

func (r *run) last() *execution { return r.executions[len(r.executions)-1] }
func (r *run) died() bool {
	return slices.ContainsFunc(r.executions, func(p *execution) bool { return p.died != "" })
}

// Test proves that an application survives. It runs the scenario without faults
// and lists its calls. Then it runs it once for each call and each fault that
// can befall it, on a fresh fake, and starts it again half a minute, half an hour
// and a day later on the state that was left. It also starts it on every state that
// a dying process leaves: before a request leaves, after the service has
// carried it out, after its answer has arrived, at each [Env.Point], and in the
// middle of writing a file of Env.Dir. In a restart it dies and fails again.
//
// The checks are the constants of type [Check]; all are on. They look at what the
// application reported, and at what really happened to the service. Each cause is
// reported once, as a failed subtest, with what happened in the first run that
// shows it. Waits of the client take no time (see package agentmessagingtest);
// those of the application do, unless it waits with Env.Fake.Sleep, or [InBubble] is
// given.
//
// The scenario calls Env.Client, on any goroutines, and passes what the application
// returns to [Env.Reports]. It must not use the test's own *testing.T.
func Test(t *testing.T, scenario func(*Env), opts ...Option) {
	if t == nil {
		panic("sweep: Test needs the *testing.T of a test")
	}
	t.Helper()
	s := &sweep{
		config: newConfig(opts), t: t, scenario: scenario, started: time.Now(), known: map[string]*execution{}, waiting: map[string]bool{},
		reached: map[string]bool{}, faults: map[string]bool{}, states: map[string]bool{},
	}
	switch {
	case scenario == nil:
		t.Fatal("sweep: the scenario is nil")
	case s.unknown() != "":
		t.Fatal("sweep: " + s.unknown())
	case inBubble():
		t.Fatal("sweep: Test is called inside of a bubble. Call it outside, with the option InBubble: each run then has a bubble")
	}
	s.parent, s.watch = t.TempDir(), disk.NewWatch()
	defer s.watch.Close()
	s.runBaseline()
	s.runFaults()
	s.runDeaths()
	for _, name := range sometimesIn(scenario) {
		if !s.reached[name] {
			t.Errorf("sweep: no run came to Sometimes(%q): what follows it was not tested", name)
		}
	}
	s.report()
}

// runBaseline runs the scenario without faults: once to learn whether its calls race,
// and then as the baseline.
func (s *sweep) runBaseline() {
	s.t.Helper()
	first := s.execute(order{})
	s.mustPass(first)
	s.single = !slices.ContainsFunc(first.calls, func(c *Call) bool { return !c.own })
	var executions []*execution
	from := image{}
	for stage := range restarts {
		p := s.execute(order{from: from, stage: stage, moments: stage == 0})
		s.mustPass(p)
		executions, from = append(executions, p), p.result
	}
	s.baseline = executions
	usual := executions[0]
	switch {
	case len(usual.calls) < len(first.calls):
		s.t.Fatalf("sweep: without faults, the scenario makes %s at first and %d the second time: it keeps something from run to run, such as a package's variable",
			plural(len(first.calls), "call"), len(usual.calls))
	case !slices.ContainsFunc(usual.calls, (*Call).succeeded):
		s.t.Fatal("sweep: no call succeeds without faults")
	}
	if !first.result.state.equal(usual.result.state) {
		s.t.Log("sweep: two runs without faults leave the service in different states: the checks Truth and Lost are off")
		s.without = append(s.without, without{check: Truth}, without{check: Lost})
	}
	s.judge(&run{sweep: s, executions: executions})
}

// mustPass ends the test where the scenario does not work without faults.
func (s *sweep) mustPass(p *execution) {
	s.t.Helper()
	fail := func(how, why string) {
		s.t.Helper()
		s.t.Fatalf("sweep: %sthe scenario %s without faults: %s", p.when(), how, why)
	}
	wrong := slices.IndexFunc(p.statements, func(t statement) bool { return t.way == asserted || t.way == reported })
	switch {
	case p.stalled != "":
		fail("stopped", p.stalled)
	case s.t.Skipped():
		s.t.SkipNow()
	case p.panicked != "":
		fail("panicked", p.panicked)
	case p.ended != "":
		fail("had to be ended", p.ended)
	case wrong >= 0 && (p.stage == 0 || p.stage == len(restarts)-1): // in between a limit of the hour may be used up
		fail("failed", p.statements[wrong].text)
	case p.stage == 0 && len(p.calls) == 0:
		s.t.Fatal("sweep: the scenario made no call with Env.Client")
	}
}

// usual returns what to compare an execution of this stage with. A restart may have to do
// what a first execution does.
func (s *sweep) usual(stage int) []*execution { return []*execution{s.baseline[0], s.baseline[stage]} }

// runFaults runs the plans of each call and each point of the baseline.
func (s *sweep) runFaults() {
	calls := slices.Clone(s.baseline[0].calls)
	if !s.single { // which goroutine was first must not decide which run is reported
		slices.SortFunc(calls, func(a, b *Call) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, c := range calls {
		s.runFaultsAt(c)
	}
	for _, place := range s.baseline[0].points {
		for _, lasts := range []string{once, fromOn} {
			s.runPlan(&plan{target: place, fault: fails, lasts: lasts})
		}
	}
}

// runFaultsAt runs the plans of one call: each fault at one attempt, at the whole call,
// and from then on.
func (s *sweep) runFaultsAt(c *Call) {
	run := func(f *fault, lasts ...string) {
		attempts := 0
		for _, l := range lasts {
			if l == atCall && attempts == 1 { // a fault of the whole call would do the same
				continue
			}
			r := s.runPlan(&plan{target: c.Name, fault: f, lasts: l})
			for _, struck := range r.calls() {
				if struck.Name == c.Name {
					attempts = len(struck.Attempts)
					break
				}
			}
		}
	}
	for _, f := range faults.For(c.spec) {
		switch {
		case s.skip != nil && s.skip(f.Name):
		case f.Status == http.StatusUnauthorized || f.Status == http.StatusPaymentRequired:
			run(&fault{Fault: f}, once) // from then on: keyRevoked and planEnds
		case c.onAgent() && f.Status == http.StatusNotFound:
			run(&fault{Fault: f}, once, fromOn)
		default:
			run(&fault{Fault: f}, once, atCall, fromOn)
		}
	}
	run(planEnds, fromOn)
	run(keyRevoked, fromOn)
	if c.spec.Lists(http.StatusServiceUnavailable) || c.spec == spec.CreateAgent {
		run(byokDown, fromOn)
	}
	if c.onAgent() {
		run(agentGone, fromOn)
	}
}

// runPlan runs one plan, and the restarts after it.
func (s *sweep) runPlan(p *plan) *run {
	r := &run{sweep: s, name: p.String(), plan: p}
	s.finish(r, image{}, 0)
	return r
}

// finish adds to a run the executions from a stage on, and judges it.
func (s *sweep) finish(r *run, from image, stage int) {
	for ; stage < len(restarts); stage++ {
		if s.stalls >= mostStalls {
			return
		}
		p := s.nextExecution(r, from, stage)
		r.executions = append(r.executions, p)
		if p.stalled != "" {
			s.stalls++
			break
		}
		from = p.result
	}
	switch {
	case r.plan != nil && !r.plan.struck:
		s.missed++
		return
	case r.plan != nil:
		s.faults[r.plan.fault.Name] = true
	}
	s.judge(r)
}

// nextExecution returns the execution of a stage. What a restart does depends on what it
// finds, so it is executed once for each image, unless a plan strikes it.
func (s *sweep) nextExecution(r *run, from image, stage int) *execution {
	o := order{from: from, stage: stage, moments: stage == 1 && r.died()}
	if r.plan != nil && stage == r.plan.stage {
		o.plan = r.plan
		return s.execute(o)
	}
	key := fmt.Sprint(stage, from.key())
	p := s.known[key]
	if p == nil || o.moments && !p.moments {
		p = s.execute(o)
		s.known[key] = p
	}
	return p
}

// mostStalls ends a sweep in which every run takes the watchdog's time.
const mostStalls = 3

// mostStates bounds the states of an application that leaves another one each time.
const mostStates = 300

// runDeaths restarts the application on every state that a death leaves, and on those
// that a death in such a restart leaves, until there are no new ones.
func (s *sweep) runDeaths() {
	seen := map[string]bool{}
	for line := []*run{{sweep: s, executions: s.baseline[:1]}}; len(line) > 0; line = line[1:] {
		for _, m := range line[0].last().all {
			s.deaths++
			dead := line[0].diesAt(m)
			if s.states[dead.key] || len(s.states) >= mostStates {
				continue
			}
			s.states[dead.key] = true
			whole := *dead
			s.finish(&whole, m.image, 1)
			if s.stalls > 0 || m.base != "" || len(dead.executions) > 1 { // a third death finds what a second one does
				continue
			}
			restarted := whole.executions[1]
			if signature := restarted.signature(); !seen[signature] {
				seen[signature] = true
				s.faultsInRestart(dead, restarted, m.image)
				line = append(line, &run{sweep: s, name: dead.name, story: dead.story, executions: append(dead.executions[:1:1], restarted)})
			}
		}
	}
}

// signature has what an execution did and what its folder held meanwhile, agents'
// identifiers apart: deaths in two executions of one signature leave nothing new.
func (p *execution) signature() string {
	var b strings.Builder
	for _, m := range p.all {
		fmt.Fprintf(&b, "%s %s\n", m.name, m.image.dir)
	}
	signature := b.String()
	for _, id := range p.result.state.ids {
		signature = strings.ReplaceAll(signature, id, "agent")
	}
	return signature
}

// diesAt returns the run as far as a moment of its last execution, at which its process
// dies. Its key is the same for two deaths if a restart finds the same, and if both
// came after a report or both before any.
func (r *run) diesAt(m moment) *run {
	n := len(r.executions) - 1
	d := &run{sweep: r.sweep, name: m.name, base: m.base, executions: append(slices.Clone(r.executions[:n]), r.executions[n].upTo(m))}
	if n > 0 {
		d.name = r.name + ",restart." + m.name
	}
	d.story = append(slices.Clone(r.story), "the process died "+m.says)
	d.key = fmt.Sprint(m.image.key(), slices.ContainsFunc(d.executions, func(p *execution) bool { return len(p.reports()) > 0 }))
	if m.base != "" {
		d.base = fmt.Sprint(m.base, strings.HasSuffix(d.key, "true"))
	}
	return d
}

// faultsInRestart lets the calls of a restart after a death fail.
func (s *sweep) faultsInRestart(dead *run, restarted *execution, from image) {
	for _, c := range restarted.calls {
		for _, p := range inRestart(c) {
			r := *dead
			r.name, r.plan, r.executions = dead.name+","+p.String(), p, slices.Clone(dead.executions)
			s.finish(&r, from, 1)
		}
	}
}

// Run is what a run of [Test] leaves, for a check of the user (see [WithCheck]).
type Run struct {
	// Plan is the name of the plan, or of the deaths; "" for the run without faults.
	Plan string
	// Fake is the service as the run has left it, and Dir the folder.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and
	// Restarted those after the restarts.
	Calls, Restarted []Call
	// Reports are the errors that Env.Reports was given, in all executions.
	Reports []error
	// Told is all that the application said in the first execution, reports
	// included, and ToldAfter what it said after the restarts.
	Told, ToldAfter string
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
}

// public is the run as a check of the user sees it.
func (r *run) public() *Run {
	public := &Run{Plan: r.name, Fake: r.last().fake, Dir: r.last().dir, Lasted: r.executions[0].lasted}
	for i, p := range r.executions {
		calls, told := &public.Calls, &public.Told
		if i > 0 {
			calls, told = &public.Restarted, &public.ToldAfter
		}
		for _, c := range p.calls {
			*calls = append(*calls, *c)
		}
		for _, t := range p.statements {
			if t.err != nil && !t.more {
				public.Reports = append(public.Reports, t.err)
			}
		}
		*told += p.said()
	}
	return public
}
