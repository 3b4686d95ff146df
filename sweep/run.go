package sweep

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
)

// Run is what a run of [Test] leaves, for a check of the user's own (see
// [Also]): a plan, or none, and the state of the service after the scenario and
// after the restart.
type Run struct {
	// Plan is the name of the plan; "" for the undisturbed run.
	Plan string
	// Fake is the service as the run has left it, and Dir the folder.
	Fake *fakeserver.Server
	Dir  string
	// Calls are the calls of the first execution of the scenario, and
	// Restarted those of the one after the restart.
	Calls, Restarted []Call
	// Lasted is how long the first execution took by the fake's clock.
	Lasted time.Duration
	// Reports is what Env.Reports was told in the first execution, nil
	// errors too.
	Reports []error
	// Told is all that the application said there, reports included.
	Told string
	// Undisturbed is the run to compare with; nil in that run itself.
	Undisturbed *Run
}

// run is a plan on its way.
type run struct {
	sweep *sweep
	plan  plan // nil: undisturbed
	fake  *fakeserver.Server
	dir   string

	plays   [2]*play // the first execution, and that after the restart
	stalled string   // what the watchdog saw

	subscribed fakeserver.Plan // before a fault ended it

	// The play's lock guards these.
	secrets []string // provider keys that were sent
	gone    []string // agents that the plan has removed
	cleared bool     // a stored provider key was about to be cleared
}

func (r *run) name() string {
	if r.plan == nil {
		return "undisturbed"
	}
	return r.plan.name()
}

// restartAfter is how long an application is down: longer than any limit.
const restartAfter = 25 * time.Hour

// execute runs the scenario twice on one fake: as it is disturbed, and as the
// application restarts.
func (r *run) execute(t testing.TB) {
	r.plays[0] = r.perform(t, 0)
	r.undo()
	r.fake.Advance(restartAfter)
	r.plays[1] = r.perform(t, 1)
}

// undo ends what a restart after a day does not meet any more.
func (r *run) undo() {
	for _, h := range r.plan {
		if h.struck && h.fault.undo != nil {
			h.fault.undo(r)
		}
	}
}

// remove makes an agent be gone, for good.
func (p *play) remove(agentID string) {
	p.note(func() {
		if _, found := p.run.fake.Agent(agentID); found {
			p.run.gone = append(p.run.gone, agentID)
			p.run.fake.RemoveAgent(agentID)
		}
	})
}

// willClear takes down that a stored provider key is about to be cleared.
func (p *play) willClear() {
	_, stored := p.run.fake.BYOK(p.run.fake.Key())
	p.note(func() { p.run.cleared = p.run.cleared || stored })
}

// lost is how many agents there are whose identifier the application has
// neither told nor kept.
func (r *run) lost(p *play) (n int) {
	kept := r.kept() + p.told.all()
	if p.restart {
		kept += r.plays[0].told.all()
	}
	for _, a := range r.fake.Agents() {
		if !strings.Contains(kept, a.ID) {
			n++
		}
	}
	return n
}

// kept is what stands in the files of Dir.
func (r *run) kept() string {
	var all strings.Builder
	_ = filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			content, _ := os.ReadFile(path)
			all.Write(content)
		}
		return nil
	})
	return all.String()
}

// public is the run as a check of the user's own sees it.
func (r *run) public(undisturbed *Run) *Run {
	return &Run{
		Plan: strings.TrimPrefix(r.name(), "undisturbed"), Fake: r.fake, Dir: r.dir,
		Calls: r.plays[0].copied(), Restarted: r.plays[1].copied(), Lasted: r.plays[0].lasted,
		Reports: r.plays[0].told.copied(), Told: r.plays[0].told.all(), Undisturbed: undisturbed,
	}
}

func (p *play) copied() (calls []Call) {
	for _, c := range p.calls {
		calls = append(calls, *c)
	}
	return calls
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// execute makes a run on a fresh fake, under the eyes of a watchdog. It reports
// false where that had to end it. The run has a copy of the plan, to note in it
// what was struck.
func (s *sweep) execute(t *testing.T, p plan) (*run, bool) {
	t.Helper()
	dir, err := os.MkdirTemp(s.parent, "")
	if err != nil {
		t.Fatal(err)
	}
	fake, err := fakeserver.Open(s.fakeOptions...)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{sweep: s, plan: slices.Clone(p), fake: fake, dir: dir}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.deadlocked()
		if s.bubble {
			synctest.Test(t, func(t *testing.T) { r.execute(t) })
		} else {
			r.execute(t)
		}
	}()
	s.runs += 2
	if !r.watch(done) {
		return r, false
	}
	if err := fake.Close(); err != nil && p == nil {
		t.Error(err)
	}
	if !t.Failed() {
		_ = os.RemoveAll(r.dir)
	}
	return r, true
}

// play is one execution of the scenario: the first of a plan, or the one
// after the restart.
type play struct {
	run      *run
	restart  bool
	clock    agentmessaging.Clock // of the client
	told     told
	begun    time.Time // by the fake's clock
	lasted   time.Duration
	panicked string
	left     []string // goroutines that were still there afterwards
	state    state    // of the service afterwards
	lost     int      // agents that nobody knows

	undisturbed *play         // the execution to compare with
	quota       int           // nine times its requests
	longest     time.Duration // of virtual time that this one may take

	mu       sync.Mutex // guards what follows; note takes it
	over     bool       // nothing below changes any more
	calls    []*Call
	points   []string                // that were passed, by name
	names    map[string]int          // how often each name was given
	origins  map[string]uint64       // agents, by the content of the call that created them
	requests int                     // that left the client
	dead     int                     // answers of 401 and 402 in a row, up to now
	deadest  int                     // the longest such row
	ended    string                  // why the scenario was ended; "" where it ended by itself
	cancel   context.CancelFunc      // ends env.Context()
	refusals int                     // calls after the scenario was ended
	due      map[time.Time]time.Time // deadlines of contexts, and when they pass by the fake's clock
}

// perform runs the scenario to its end, for the first time or after the restart.
func (r *run) perform(t testing.TB, nth int) *play {
	p := &play{
		run: r, restart: nth > 0, clock: r.clock(), begun: r.fake.Now(), quota: 10_000, longest: 1000 * time.Hour,
		names: map[string]int{}, origins: map[string]uint64{}, due: map[time.Time]time.Time{},
	}
	if r.sweep.baseline != nil {
		p.undisturbed = r.sweep.baseline.plays[nth]
		p.quota, p.longest = 9*max(1, p.undisturbed.requests), p.undisturbed.lasted+r.sweep.within
	}
	env := &Env{tb: t, Fake: r.fake, Dir: r.dir, play: p}
	env.ctx, env.cancel = context.WithCancel(context.Background())
	p.cancel = env.cancel
	env.Client = p.client()
	before, done := runtime.NumGoroutine(), make(chan struct{})
	go func() {
		defer close(done)
		defer p.recovered()
		defer env.finish()
		defer p.recovered() // of the scenario, so that the cleanups run
		label(r.name())
		r.sweep.scenario(env)
	}()
	<-done
	if !r.sweep.bubble && runtime.NumGoroutine() > before {
		p.left = r.leftovers(before)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.lasted, p.state, p.lost = true, r.fake.Now().Sub(p.begun), r.stateNow(), r.lost(p)
	return p
}

// recovered takes a panic down.
func (p *play) recovered() {
	if v := recover(); v != nil {
		p.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
	}
}

// client is a new client of the run's fake whose every attempt passes the wire.
func (p *play) client() *agentmessaging.Client {
	opts := []agentmessaging.Option{
		agentmessaging.WithHTTPClient(&http.Client{Transport: &wire{p, p.run.fake.Direct()}}),
		agentmessaging.WithObserver(p),
		agentmessaging.WithClock(p.clock),
		p.run.sameJitter(),
	}
	client, err := agentmessaging.NewClient(p.run.fake.BaseURL(), p.run.fake.Key(), append(opts, p.run.sweep.clientOptions...)...)
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return client
}

// note runs f under the lock. What comes after the end of the play is not noted.
func (p *play) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		f()
	}
}

// point passes a place of the application's own.
func (p *play) point(name string) (err error) {
	p.note(func() {
		p.names[name]++
		place := fmt.Sprintf("%s_%d", name, p.names[name])
		p.points = append(p.points, place)
		if p.run.strikes(p, place, nil) != nil {
			err = fmt.Errorf("sweep: %s fails, as planned", place)
		}
	})
	return err
}

// stop ends a scenario that would not end by itself, by its context; a
// goroutine that goes on calling is ended by begin. The lock is held.
func (p *play) stop(why string) {
	if p.ended == "" {
		p.ended = why
		p.cancel()
	}
}

// racing returns the endpoints that several goroutines have called, and whether
// all calls came from one.
func (p *play) racing() (racing map[*spec.Endpoint]bool, single bool) {
	racing, single = map[*spec.Endpoint]bool{}, true
	by := map[*spec.Endpoint]string{}
	for _, c := range p.calls {
		single = single && c.routine == p.calls[0].routine
		racing[c.spec] = racing[c.spec] || cmp.Or(by[c.spec], c.routine) != c.routine
		by[c.spec] = c.routine
	}
	return racing, single
}

// routine is the caller's goroutine: "goroutine 12".
func routine() string {
	var head [32]byte
	words := strings.Fields(string(head[:runtime.Stack(head[:], false)]))
	return strings.Join(words[:2], " ")
}

// clock is the clock of the run's client.
func (r *run) clock() agentmessaging.Clock {
	switch {
	case r.sweep.bubble:
		return quota.RealClock{} // which is the bubble's
	case r.sweep.single:
		return alone{r.fake}
	}
	return r.fake
}

// sameJitter has the client wait in every run with the same jitter.
func (r *run) sameJitter() agentmessaging.Option {
	jitter := rand.New(rand.NewPCG(r.sweep.seed, 0)).Float64()
	return testoption.WithRandom(func() float64 { return jitter }).(agentmessaging.Option)
}

// alone is the clock of a scenario whose calls come from one goroutine: nobody
// else has to come to rest before the time moves on.
type alone struct{ *fakeserver.Server }

func (a alone) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		a.Advance(d)
	}
	return ctx.Err()
}

const labelKey = "sweep"

// label marks the goroutine, and those that it starts, by the plan: a panic in
// one of them shows it, from Go 1.26 on.
func label(plan string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, plan)))
}

// traceLabels makes the trace of a panic name the plan, from Go 1.26 on.
var traceLabels = sync.OnceFunc(func() {
	settings := os.Getenv("GODEBUG")
	if settings != "" {
		settings += ","
	}
	_ = os.Setenv("GODEBUG", settings+"tracebacklabels=1")
})

// labelled are the stacks of a plan's goroutines, without addresses.
func labelled(plan string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, plan)) {
			continue
		}
		var frames strings.Builder
		for line := range strings.Lines(stack) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "#\t") && len(fields) > 3 {
				fmt.Fprintf(&frames, "    %s %s\n", fields[2], fields[3])
			}
		}
		stacks = append(stacks, frames.String())
	}
	return stacks
}

// leftovers are the goroutines of a run that do not end by themselves: each by
// its stack, innermost function first. One that is about to end may need longer
// on a slow machine: the fake's Sleep returns when nothing runs any more.
func (r *run) leftovers(before int) []string {
	for wait := time.Duration(0); wait < 20*time.Millisecond; wait += time.Millisecond {
		if runtime.Gosched(); runtime.NumGoroutine() <= before {
			return nil
		}
		if wait > 5*time.Millisecond && len(labelled(r.name())) == 0 {
			return nil // of other tests
		}
		time.Sleep(time.Millisecond)
	}
	_ = r.fake.Sleep(context.Background(), time.Nanosecond)
	return labelled(r.name())
}

// watch waits until a run is done, or for the watchdog, and then says why the
// run stands still.
func (r *run) watch(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-r.sweep.alarm(r.sweep.watchdog):
	}
	stacks := strings.Join(labelled(r.name()), "\n")
	advice := "It may wait for real time: let it wait with Env.Fake.Sleep, or sweep with InBubble. Or for what never comes."
	switch {
	case r.sweep.bubble && strings.Contains(stacks, "Mutex)"):
		advice = "In a bubble, time stands still while a goroutine waits for a mutex: do not hold it across a call, or sweep without InBubble."
	case r.sweep.bubble:
		advice = "In a bubble, time stands still while a goroutine waits for a socket: sweep without InBubble. Or it waits for what never comes."
	}
	r.stalled = fmt.Sprintf("stalls: it has not ended in %s of real time. %s\n%s", r.sweep.watchdog, advice, stacks)
	return false
}

// deadlocked turns the panic of a bubble whose goroutines outlive it into
// something left behind.
func (r *run) deadlocked() {
	if v := recover(); v != nil {
		r.plays[0].left = append(r.plays[0].left, fmt.Sprint(v))
	}
}
