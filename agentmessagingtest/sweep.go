package agentmessagingtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// sweep is one call of Sweep.
type sweep struct {
	config
	t        *testing.T
	scenario func(*Env)
	parent   string // of the folders of the runs

	racing    map[*spec.Endpoint]bool // endpoints that several goroutines call
	single    bool                    // all calls come from one goroutine
	coarse    bool                    // the texts of the scenario differ from run to run
	baseline  *run                    // undisturbed
	public    *Run                    // the same, for the user's checks
	attempts  map[string]int          // of a call in its plan of one attempt
	reached   map[string][]string     // calls and points, by the name of a plan
	runs      int
	stalls    int
	faults    map[string]bool
	failed    map[Check]int // in how many runs
	undertook time.Time
}

// Sweep proves that an application survives. It runs the scenario undisturbed
// and lists its calls. Then it runs it once for each call and each fault that
// can befall it, as a subtest with a fresh fake and a name such as
// SendMessage_2/reply_lost/once, and looks at what the application has told, and
// at what really happened to the service. Each run ends with a restart: the
// scenario is run once more on the same state, 25 hours later.
//
// The checks are the constants of type [Check]; all are on. A run that fails one
// shows it, with what happened and the command that repeats this run alone.
// Waits of the client take no time (see [NewClient]); those of the application
// do, unless it waits with Env.Fake.Sleep, or [InBubble] is given.
//
// The scenario calls Env.Client, on whatever goroutines, and tells how the
// application fared by [Env.Reports]. It must not use the test's own *testing.T.
func Sweep(t *testing.T, scenario func(*Env), opts ...Option) {
	t.Helper()
	s := &sweep{
		config: newConfig(opts), t: t, scenario: scenario, undertook: time.Now(),
		attempts: map[string]int{}, reached: map[string][]string{}, faults: map[string]bool{}, failed: map[Check]int{},
	}
	traceLabels()
	s.parent = t.TempDir()
	s.begin()
	plans := s.plans()
	for _, p := range plans {
		s.sweep(p)
	}
	if s.pairs {
		for _, p := range s.pairsOf(plans) {
			s.sweep(p)
		}
	}
	t.Log(s.summary())
	if s.collect != nil {
		s.collect(s.summary(), nil)
	}
}

// begin runs the scenario undisturbed, to learn who races, and then for the
// record.
func (s *sweep) begin() {
	s.t.Helper()
	probe := s.undisturbed()
	s.racing, s.single = probe.plays[0].racing()
	s.baseline = s.undisturbed()
	s.coarse = !probe.plays[0].state.equal(s.baseline.plays[0].state, false)
	if s.coarse && !probe.plays[0].state.equal(s.baseline.plays[0].state, true) {
		s.t.Log("two undisturbed runs differ: the truth cannot be checked")
		s.off = append(s.off, func(f Finding) bool { return f.Check == Truth })
	}
	if len(s.baseline.plays[0].calls) == 0 {
		s.t.Fatal("agentmessagingtest: the scenario made no call with Env.Client")
	}
	s.judge(s.t, s.baseline)
	s.public = s.baseline.public(nil)
}

func (s *sweep) undisturbed() *run {
	s.t.Helper()
	r, ok := s.execute(s.t, nil)
	switch {
	case !ok:
		s.t.Fatal("agentmessagingtest: the undisturbed scenario " + r.stalled)
	case s.t.Skipped():
		s.t.SkipNow()
	}
	for _, p := range r.plays {
		if problem := p.broken(); problem != "" {
			s.t.Fatal("agentmessagingtest: the undisturbed scenario " + p.when() + problem)
		}
	}
	return r
}

// broken is what must not happen to an undisturbed scenario.
func (p *play) broken() string {
	switch {
	case p.panicked != "":
		return "panicked: " + p.panicked
	case p.ended != "":
		return "had to be ended: " + p.ended
	case len(p.told.failures) > 0:
		return "failed: " + strings.Join(p.told.failures, "\n")
	}
	return ""
}

func (p *play) when() string {
	if p.restart {
		return "after its restart "
	}
	return ""
}

// plans are those of each call and each point of the undisturbed run.
func (s *sweep) plans() (plans []plan) {
	for _, c := range s.baseline.plays[0].calls {
		plans = append(plans, plansFor(c)...)
	}
	for _, place := range s.baseline.plays[0].points {
		plans = append(plans, plan{{target: place, fault: fails, lasts: once}}, plan{{target: place, fault: fails, lasts: fromOn}})
	}
	return plans
}

// sweep runs one plan as a subtest.
func (s *sweep) sweep(p plan) {
	s.t.Helper()
	if s.stalls >= mostStalls || s.same(p) {
		return
	}
	ran := false
	s.t.Run(p.name(), func(t *testing.T) {
		ran = true
		r, ok := s.execute(t, p)
		switch {
		case !ok:
			s.stalls++
			s.report(t, r, []Finding{{Check: Ends, Plan: r.name(), Says: "the scenario " + r.stalled}})
			return
		case !r.plan.struck():
			t.SkipNow()
		}
		s.learn(r)
		s.judge(t, r)
	})
	if !ran && s.pairs && len(p) == 1 { // -run leaves it out, but the pairs depend on it
		if r, ok := s.execute(s.t, p); ok {
			s.learn(r)
		}
	}
}

// mostStalls ends a sweep in which every plan takes the watchdog's time.
const mostStalls = 3

// learn notes how many attempts a call made whose first one failed, and which
// calls and points the scenario still reached.
func (s *sweep) learn(r *run) {
	h := r.plan[0]
	s.faults[h.fault.Name] = true
	reached := slices.Clone(r.plays[0].points)
	for _, c := range r.plays[0].calls {
		if len(c.Attempts) > 0 {
			reached = append(reached, c.Name)
		}
		if h.lasts == once && c.Name == h.target {
			s.attempts[h.target+"/"+h.fault.Name] = len(c.Attempts)
		}
	}
	s.reached[r.name()] = reached
}

// same reports a plan for a whole call that had no second attempt: the plan for
// one attempt would run the same.
func (s *sweep) same(p plan) bool {
	h := p[0]
	return len(p) == 1 && h.lasts == atCall && s.attempts[h.target+"/"+h.fault.Name] == 1
}
