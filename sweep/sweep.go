// Package sweep tests that an application survives every failure at every call,
// and the death of its process at every moment. It runs a scenario once for each,
// starts it again on what was left, and tells what was lost, doubled or kept
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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// sweep is one call of Test.
type sweep struct {
	config
	t        *testing.T
	scenario func(*Env)
	parent   string // of the folders of the plays
	started  time.Time

	single      bool    // all calls come from the scenario's goroutine
	coarse      bool    // the texts of the scenario differ from run to run
	undisturbed []*play // the first play, and that of each restart
	public      *Run    // the same, for the user's checks
	later       map[stay]*play
	waiting     map[string]bool     // images after which the application waits for somebody to decide
	attempts    map[string]int      // of a call in its plan of one attempt
	reached     map[string][]string // calls and points, by the name of a plan
	placesMu    sync.Mutex          // guards places
	places      map[string]bool     // of Env.Sometimes that were reached

	runs, stalls, missed, deaths int
	faults                       map[string]bool
	states                       map[string]bool // images that a death left
	causes                       []*cause
	failed                       map[Check]int // runs
}

// stay is an image, and the restart that follows it.
type stay struct {
	key   string
	stage int
}

// stages are the plays of a run: the first one, and the restarts.
const stages = 4

// down is how long the application is down before each restart: a supervisor
// starts it at once; after half an hour it still meets the limits of the hour; after
// a day no limit is used up any more.
var down = [stages]time.Duration{0, 30 * time.Second, 30 * time.Minute, 25 * time.Hour}

// run is what became of a scenario: the play that was disturbed, or that died, and
// the restarts after it.
type run struct {
	sweep *sweep
	name  string // of its plan, or of its deaths
	story []string
	plays []*play
	key   string // of the image that a death left
	base  string // where that image is torn: of the one before it
	at    *hits  // of its faults; nil where there are none
}

func (r *run) last() *play { return r.plays[len(r.plays)-1] }
func (r *run) died() bool {
	return slices.ContainsFunc(r.plays, func(p *play) bool { return p.died != "" })
}

// Test proves that an application survives. It runs the scenario undisturbed
// and lists its calls. Then it runs it once for each call and each fault that
// can befall it, on a fresh fake, and starts it again half a minute, half an hour
// and a day later on the state that was left. It also starts it on every state that
// a process leaves which dies: before a request leaves, after the service has
// carried it out, after its answer has arrived, at each [Env.Point], and in the
// middle of writing a file of Env.Dir. In a restart it dies and fails again.
//
// The checks are the constants of type [Check]; all are on. They look at what the
// application reported, and at what really happened to the service. Each cause is
// reported once, as a failed subtest, with what happened in the shortest run that
// shows it. Waits of the client take no time (see package agentmessagingtest);
// those of the application do, unless it waits with Env.Fake.Sleep, or [InBubble] is
// given.
//
// The scenario calls Env.Client, on whatever goroutines, and reports how the
// application fared by [Env.Reports]. It must not use the test's own *testing.T.
func Test(t *testing.T, scenario func(*Env), opts ...Option) {
	if t == nil {
		panic("sweep: Test needs the *testing.T of a test")
	}
	t.Helper()
	s := &sweep{
		config: newConfig(opts), t: t, scenario: scenario, started: time.Now(), later: map[stay]*play{}, waiting: map[string]bool{},
		attempts: map[string]int{}, reached: map[string][]string{}, places: map[string]bool{}, faults: map[string]bool{}, states: map[string]bool{}, failed: map[Check]int{},
	}
	switch {
	case scenario == nil:
		t.Fatal("sweep: the scenario is nil")
	case s.wrong != "":
		t.Fatal("sweep: " + s.wrong)
	case inBubble():
		t.Fatal("sweep: Test is called inside of a bubble. Call it outside, with the option InBubble: each run then has a bubble")
	}
	traceLabels()
	s.parent = t.TempDir()
	s.begin()
	plans := s.plans()
	for _, p := range plans {
		s.try(p)
	}
	if s.pairs {
		for _, p := range s.pairsOf(plans) {
			s.try(p)
		}
	}
	s.die()
	s.unreached()
	s.conclude()
}

// begin runs the scenario undisturbed: to learn who races, and then for the record.
func (s *sweep) begin() {
	s.t.Helper()
	first := s.play(order{hits: newHits(nil)})
	s.must(first)
	s.single = !slices.ContainsFunc(first.calls, func(c *Call) bool { return !c.own })
	var plays []*play
	for stage, from := 0, (image{}); stage < stages; stage++ {
		p := s.play(order{from: from, after: down[stage], stage: stage, hits: newHits(nil), moments: stage == 0})
		s.must(p)
		plays, from = append(plays, p), p.result
		p.strangers = len(strangers(plays))
	}
	s.undisturbed = plays
	usual := plays[0]
	switch {
	case len(usual.calls) < len(first.calls):
		s.t.Fatalf("sweep: the undisturbed scenario makes %s at first and %d the second time: it keeps something from run to run, such as a package's variable",
			plural(len(first.calls), "call"), len(usual.calls))
	case !slices.ContainsFunc(usual.calls, (*Call).succeeded):
		s.t.Fatal("sweep: no call of the undisturbed scenario succeeds: nothing can be learnt from disturbing it")
	}
	s.coarse = !first.result.state.equal(usual.result.state, false)
	if s.coarse && !first.result.state.equal(usual.result.state, true) {
		s.t.Log("two undisturbed runs differ: the truth cannot be checked")
		s.off = append(s.off, func(f Finding) bool { return f.Check == Truth })
	}
	undisturbed := &run{sweep: s, plays: plays}
	s.judge(undisturbed)
	s.public = undisturbed.public(nil)
}

// must ends the test for what must not happen to an undisturbed scenario.
func (s *sweep) must(p *play) {
	s.t.Helper()
	fail := func(why string) {
		s.t.Helper()
		s.t.Fatalf("sweep: %sthe undisturbed scenario %s", p.when(), why)
	}
	wrong := slices.IndexFunc(p.tells, func(t tell) bool { return t.way == asserted || t.way == reported })
	switch {
	case p.stalled != "":
		fail(p.stalled)
	case s.t.Skipped():
		s.t.SkipNow()
	case p.panicked != "":
		fail("panicked: " + p.panicked)
	case p.ended != "":
		fail("had to be ended: " + p.ended)
	case wrong >= 0 && (p.stage == 0 || p.stage == stages-1): // in between a limit of the hour may be used up
		fail("failed: " + p.tells[wrong].text)
	case p.stage == 0 && len(p.calls) == 0:
		s.t.Fatal("sweep: the scenario made no call with Env.Client")
	}
}

// usual are the undisturbed plays to compare one of this stage with. A restart may
// have to do what a first play does.
func (s *sweep) usual(stage int) []*play { return []*play{s.undisturbed[0], s.undisturbed[stage]} }

// plans are those of each call and each point of the undisturbed run.
func (s *sweep) plans() (plans []plan) {
	for _, c := range s.undisturbed[0].calls {
		plans = append(plans, s.plansFor(c)...)
	}
	for _, place := range s.undisturbed[0].points {
		plans = append(plans, plan{{target: place, fault: fails, lasts: once}}, plan{{target: place, fault: fails, lasts: fromOn}})
	}
	return plans
}

// try runs one plan, and the restarts after it.
func (s *sweep) try(p plan) {
	if s.same(p) {
		return
	}
	s.finish(&run{sweep: s, name: p.String(), at: newHits(p)}, image{}, 0)
}

// finish adds to a run the plays from a stage on, and judges it.
func (s *sweep) finish(r *run, from image, stage int) {
	for ; stage < stages; stage++ {
		if s.stalls >= mostStalls {
			return
		}
		p := s.next(r, from, stage)
		r.plays = append(r.plays, p)
		if p.stalled != "" {
			s.stalls++
			break
		}
		if stage == 1 && len(p.calls) == 0 && p.result.key() == from.key() && len(s.undisturbed[2].calls) == 0 {
			stage++ // it is at rest: half an hour changes nothing
		}
		from = p.result
	}
	if r.at != nil && !r.at.all() {
		s.missed++
		return
	}
	s.learn(r)
	s.judge(r)
}

// next is the play of a stage. What a restart does depends on what it finds, so
// it is executed once for each image, unless a plan disturbs it.
func (s *sweep) next(r *run, from image, stage int) *play {
	o := order{from: from, after: down[stage], stage: stage, hits: newHits(nil), moments: stage == 1 && r.died()}
	if r.at != nil && stage == r.at.plan[0].stage {
		o.hits = r.at
		return s.play(o)
	}
	at := stay{from.key(), stage}
	p := s.later[at]
	if p == nil || o.moments && !p.moments {
		p = s.play(o)
		s.later[at] = p
	}
	return p
}

// mostStalls ends a sweep in which every run takes the watchdog's time.
const mostStalls = 3

// learn notes how many attempts a call made whose first one failed, and which
// calls and points the scenario still reached.
func (s *sweep) learn(r *run) {
	if r.at == nil || r.died() {
		return
	}
	h, p := r.at.plan[0], r.plays[0]
	s.faults[h.fault.Name] = true
	reached := slices.Clone(p.points)
	for _, c := range p.calls {
		if len(c.Attempts) > 0 {
			reached = append(reached, c.Name)
		}
		if h.lasts == once && c.Name == h.target {
			s.attempts[h.target+"/"+h.fault.Name] = len(c.Attempts)
		}
	}
	s.reached[r.name] = reached
}

// same reports a plan for a whole call that had no second attempt: the plan for
// one attempt would run the same.
func (s *sweep) same(p plan) bool {
	h := p[0]
	return len(p) == 1 && h.lasts == atCall && s.attempts[h.target+"/"+h.fault.Name] == 1
}

// mostStates bounds the states of an application that leaves another one each time.
const mostStates = 300

// die restarts the application on every state that a death leaves, and on those
// that a death in such a restart leaves, until there are no new ones.
func (s *sweep) die() {
	line, seen := []*run{{sweep: s, plays: s.undisturbed[:1]}}, map[string]bool{}
	for len(line) > 0 {
		before := line[0]
		line = line[1:]
		for _, m := range before.last().all {
			if m.base != "" && len(before.plays) > 1 {
				continue // torn files are for the first death
			}
			s.deaths++
			r := before.dies(m)
			if s.states[r.key] || len(s.states) >= mostStates {
				continue
			}
			s.states[r.key] = true
			prefix := *r
			s.finish(r, m.image, 1)
			if s.stalls > 0 || m.base != "" {
				continue
			}
			restarted := r.plays[len(prefix.plays)]
			way := restarted.way()
			if seen[way] {
				continue
			}
			seen[way] = true
			prefix.plays = append(slices.Clone(prefix.plays), restarted)
			if len(prefix.plays) == 2 { // a third death finds what a second one does
				line = append(line, &prefix)
				s.disturbRestart(prefix, m.image)
			}
		}
	}
}

// way is what a play did, and what its folder held meanwhile, whichever agents it was
// about: deaths in two plays of one way leave nothing new.
func (p *play) way() string {
	var b strings.Builder
	for _, m := range p.all {
		fmt.Fprintf(&b, "%s %s\n", m.name, m.image.dir)
	}
	way := b.String()
	for _, id := range p.result.state.ids {
		way = strings.ReplaceAll(way, id, "agent")
	}
	return way
}

// dies is the run as far as a moment of its last play, in which its process dies.
// Two deaths leave the same state if a restart finds the same and nothing has been
// reported, or something, before.
func (r *run) dies(m moment) *run {
	n := len(r.plays) - 1
	d := &run{sweep: r.sweep, name: m.name, base: m.base, plays: append(slices.Clone(r.plays[:n]), r.plays[n].upTo(m))}
	if n > 0 {
		d.name = r.name + "+restart." + m.name
	}
	d.story = append(slices.Clone(r.story), "the process died "+m.says)
	d.key = fmt.Sprint(m.image.key(), slices.ContainsFunc(d.plays, func(p *play) bool { return len(p.reports()) > 0 }))
	if m.base != "" {
		d.base = fmt.Sprint(m.base, strings.HasSuffix(d.key, "true"))
	}
	return d
}

// disturbRestart lets the calls of a restart after a death fail.
func (s *sweep) disturbRestart(dead run, from image) {
	for _, c := range dead.last().calls {
		for _, p := range inRestart(c) {
			r := dead
			r.name, r.at, r.plays = dead.name+"+"+p.String(), newHits(p), slices.Clone(dead.plays[:len(dead.plays)-1])
			s.finish(&r, from, 1)
		}
	}
}

// reach notes a place of Env.Sometimes.
func (s *sweep) reach(name string) {
	s.placesMu.Lock()
	defer s.placesMu.Unlock()
	s.places[name] = true
}

// unreached fails the test for the places of Env.Sometimes that no run came to.
func (s *sweep) unreached() {
	s.t.Helper()
	for _, name := range written(s.scenario) {
		if !s.places[name] {
			s.t.Errorf("sweep: no run came to Sometimes(%q): what follows it was not tested", name)
		}
	}
}

// Run is what a run of [Test] leaves, for a check of the user's own (see
// [Also]): the name of its plan, and the state of the service after the scenario
// and all restarts.
type Run struct {
	// Plan is the name of the plan, or of the deaths; "" for the undisturbed run.
	Plan string
	// Fake is the service as the run has left it, and Dir the folder.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and
	// Restarted those after the restarts.
	Calls, Restarted []Call
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
	// Reports is what Env.Reports was given in the first execution, nil
	// errors left out, and ReportsAfter what it was given after the restarts.
	Reports, ReportsAfter []error
	// Told is all that the application said in the first execution, reports
	// included, and ToldAfter what it said after the restarts.
	Told, ToldAfter string
	// Undisturbed is the run to compare with; nil in that run itself.
	Undisturbed *Run
}

// public is the run as a check of the user's own sees it.
func (r *run) public(undisturbed *Run) *Run {
	public := &Run{Plan: r.name, Fake: r.last().fake, Dir: r.last().dir, Lasted: r.plays[0].lasted, Undisturbed: undisturbed}
	for i, p := range r.plays {
		calls, reports, told := &public.Calls, &public.Reports, &public.Told
		if i > 0 {
			calls, reports, told = &public.Restarted, &public.ReportsAfter, &public.ToldAfter
		}
		for _, c := range p.calls {
			*calls = append(*calls, *c)
		}
		for _, t := range p.tells {
			if t.err != nil {
				*reports = append(*reports, t.err)
			}
		}
		*told += p.said()
	}
	return public
}
