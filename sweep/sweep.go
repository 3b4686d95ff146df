// Package sweep tests that an application survives every failure at every call.
// It runs a scenario once for each call and each fault that can befall it, and
// tells which of them the application does not survive:
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
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// sweep is one call of Test.
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

// Test proves that an application survives. It runs the scenario undisturbed
// and lists its calls. Then it runs it once for each call and each fault that
// can befall it, as a subtest with a fresh fake and a name such as
// SendMessage_2/reply_lost/once, and looks at what the application has told, and
// at what really happened to the service. Each run ends with a restart: the
// scenario is run once more on the same state, 25 hours later.
//
// The checks are the constants of type [Check]; all are on. A run that fails one
// shows it, with what happened and the command that repeats this run alone.
// Waits of the client take no time (see package agentmessagingtest); those of the application
// do, unless it waits with Env.Fake.Sleep, or [InBubble] is given.
//
// The scenario calls Env.Client, on whatever goroutines, and tells how the
// application fared by [Env.Reports]. It must not use the test's own *testing.T.
func Test(t *testing.T, scenario func(*Env), opts ...Option) {
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
		s.t.Fatal("sweep: the scenario made no call with Env.Client")
	}
	s.judge(s.t, s.baseline)
	s.public = s.baseline.public(nil)
}

func (s *sweep) undisturbed() *run {
	s.t.Helper()
	r, ok := s.execute(s.t, nil)
	switch {
	case !ok:
		s.t.Fatal("sweep: the undisturbed scenario " + r.stalled)
	case s.t.Skipped():
		s.t.SkipNow()
	}
	for _, p := range r.plays {
		if problem := p.broken(); problem != "" {
			s.t.Fatal("sweep: the undisturbed scenario " + p.when() + problem)
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

// Option changes how [Test] works.
type Option func(*config)

type config struct {
	clientOptions []agentmessaging.Option
	fakeOptions   []fakeserver.Option
	off           []func(Finding) bool
	also          []ownCheck
	pairs         bool
	seed          uint64
	bubble        bool
	within        time.Duration
	watchdog      time.Duration

	// For tests of Test:
	collect func(report string, found []Finding) // in place of failing the test
	alarm   func(time.Duration) <-chan time.Time // that wakes the watchdog
}

type ownCheck struct {
	name string
	look func(*Run) error
}

func newConfig(opts []Option) config {
	c := config{seed: 1, within: 2 * time.Hour, watchdog: 10 * time.Second, alarm: time.After}
	for _, opt := range opts {
		opt(&c)
	}
	return c
}

// Without switches a check off: for findings about calls to these endpoints,
// or, where none is given, altogether.
func Without(check Check, endpoints ...fakeserver.Endpoint) Option {
	return WithoutWhere(func(f Finding) bool {
		return f.Check == check && (len(endpoints) == 0 || slices.Contains(endpoints, f.Endpoint))
	})
}

// WithoutWhere drops the findings for which f returns true.
func WithoutWhere(f func(Finding) bool) Option {
	return func(c *config) { c.off = append(c.off, f) }
}

// Also adds a check of the user's own. It is called after each run, the
// undisturbed one included; an error is a finding under this name.
func Also(name string, check func(*Run) error) Option {
	return func(c *config) { c.also = append(c.also, ownCheck{name, check}) }
}

// Pairs sweeps pairs of faults too, at two places: 300 of them at most, picked
// by [Seed].
func Pairs() Option { return func(c *config) { c.pairs = true } }

// Seed picks other pairs of faults, and another jitter of the client's waits.
// The default is 1.
func Seed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// InBubble makes each run in a testing/synctest bubble of its own, so that
// waits and deadlines of the application take no time either. What a bubble
// cannot do ends at the watchdog: sockets, and a mutex that is held across a
// call. Test itself is called outside of a bubble: it makes subtests.
func InBubble() Option { return func(c *config) { c.bubble = true } }

// ClientOptions are for Env.Client, behind those that Test gives it.
func ClientOptions(opts ...agentmessaging.Option) Option {
	return func(c *config) { c.clientOptions = append(c.clientOptions, opts...) }
}

// FakeOptions are for Env.Fake.
func FakeOptions(opts ...fakeserver.Option) Option {
	return func(c *config) { c.fakeOptions = append(c.fakeOptions, opts...) }
}

// Within bounds how much longer, in virtual time, a disturbed run may take than
// the undisturbed one. The default is 2 hours.
func Within(d time.Duration) Option { return func(c *config) { c.within = d } }

// Watchdog bounds the real time of a run. The default is 10 seconds.
func Watchdog(d time.Duration) Option { return func(c *config) { c.watchdog = d } }

// summary counts what was tried, and by check what was found: many runs fail for
// one reason.
func (s *sweep) summary() string {
	parts := []string{plural(len(s.faults), "fault"), plural(s.runs, "run"), time.Since(s.undertook).Round(time.Millisecond).String()}
	for _, check := range slices.Sorted(maps.Keys(s.failed)) {
		parts = append(parts, fmt.Sprintf("%s in %s", check, plural(s.failed[check], "run")))
	}
	return fmt.Sprintf("swept %s: %s", plural(len(s.baseline.plays[0].calls), "call"), strings.Join(parts, ", "))
}

// report fails the test with what was found, what happened, and how to see it
// again.
func (s *sweep) report(t testing.TB, r *run, found []Finding) {
	t.Helper()
	var b strings.Builder
	for _, f := range found {
		s.failed[f.Check]++
		fmt.Fprintf(&b, "%s: %s\n", f.Check, f.Says)
	}
	for _, h := range r.plan {
		fmt.Fprintf(&b, "  %s meets %s (%s): %s\n", h.target, h.fault.Name, h.lasts, h.fault.Says)
	}
	for _, p := range r.plays {
		if p != nil {
			p.transcript(&b)
		}
	}
	fmt.Fprintf(&b, "  again: %s", s.repeat(t))
	if s.collect != nil {
		s.collect(b.String(), found)
		return
	}
	t.Errorf("%s", b.String())
}

// transcript writes the calls of a play, each in a line, and what was told.
func (p *play) transcript(b *strings.Builder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.restart {
		fmt.Fprintf(b, "  restart, 25 h later\n")
	}
	for _, c := range p.calls {
		fmt.Fprintf(b, "  %8s  %-16s %-13s %s\n", c.begun.Sub(p.begun).Round(time.Millisecond), c.Name, c.AgentID, c.line())
	}
	told := strings.TrimSpace(p.told.all())
	if told == "" {
		told = "nothing"
	}
	fmt.Fprintf(b, "  told: %s\n", strings.ReplaceAll(told, "\n", "\n        "))
}

// line is what became of a call: 502 bad_gateway, 200.
func (c *Call) line() string {
	var parts []string
	for _, a := range c.Attempts {
		part := fmt.Sprint(a.Status)
		if a.Err != nil {
			part = a.Err.Error()
		}
		if a.Fault != "" {
			part += " [" + a.Fault + "]"
		}
		parts = append(parts, part)
	}
	line := strings.Join(parts, ", ")
	switch {
	case len(parts) == 0:
		line = "not sent"
	case !c.ended:
		line += ", under way"
	}
	if c.Err != nil {
		line += ": " + oneLine(c.Err.Error())
	}
	return line
}

const maxLine = 300

// oneLine is a text in one bounded line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxLine {
		text = text[:maxLine] + "…"
	}
	return text
}

// repeat is the command that makes a run alone.
func (s *sweep) repeat(t testing.TB) string {
	var parts []string
	for _, part := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return fmt.Sprintf("go test -run '%s'", strings.Join(parts, "/"))
}
