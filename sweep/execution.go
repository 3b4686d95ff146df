package sweep

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// setup is what all executions of one Test share.
type setup struct {
	config
	t        *testing.T
	scenario func(*Env)
	watch    *disk.Watch
	baseline *baseline
	single   bool            // all calls come from the scenario's goroutine
	reached  map[string]bool // names of Env.Sometimes

	executions int
	started    time.Time
	logged     time.Time // when the progress was logged last
}

// conditions are those of one execution.
type conditions struct {
	from    image
	stage   int
	plan    *plan
	moments bool // collect the moments at which the process might die
}

// execution runs the scenario in a process, from its start to its end.
type execution struct {
	*setup
	conditions
	clock    agentmessaging.Clock // of the client
	routine  string               // the scenario's goroutine
	label    string               // of its goroutines; no other execution of this process has it
	ctx      context.Context      // of the scenario
	cancel   context.CancelFunc
	finished bool // the scenario has returned

	serving sync.RWMutex // held while the service is at work, and locked for the picture of a moment

	mu       sync.Mutex // guards what follows; note takes it
	over     bool       // nothing below changes any more
	record   record
	last     moment         // the newest that is no torn state
	names    map[string]int // how often each name was given
	dead     map[string]int // answers of 401 and 402 in a row, by goroutine
	refusals int            // calls after the scenario was ended
}

// progressEvery is how often a long sweep logs how far it is; go test -v shows it at once.
const progressEvery = 5 * time.Second

// execute runs the scenario once, and gives up when the watchdog's time is over.
func (s *setup) execute(o conditions) *record {
	dir := s.t.TempDir()
	if err := o.from.dir.Put(dir); err != nil {
		s.t.Fatal(err)
	}
	s.executions++
	if now := s.now(); now.Sub(s.logged) >= progressEvery {
		s.logged = now
		s.t.Logf("sweep: %s in %s so far", plural(s.executions, "execution"), now.Sub(s.started).Round(time.Second))
	}
	p := &execution{
		setup: s, conditions: o, label: fmt.Sprint(s.t.Name(), o.plan, s.started.UnixNano(), s.executions),
		names: map[string]int{}, dead: map[string]int{},
		record: record{baseline: s.baseline, stage: o.stage, dir: dir, maxRequests: 10_000, maxLasted: 1000 * time.Hour},
	}
	p.record.left.gone, p.record.left.agents = map[string]bool{}, map[string]string{}
	maps.Copy(p.record.left.gone, o.from.gone)
	maps.Copy(p.record.left.agents, o.from.agents)
	if usual := p.record.usual(); usual != nil {
		p.record.maxRequests = 9 * max(1, usual[0].requests, usual[1].requests)
		p.record.maxLasted = max(usual[0].lasted, usual[1].lasted) + s.within
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.deadlocked()
		if s.bubble {
			synctest.Test(s.t, func(t *testing.T) { p.run(t) })
		} else {
			p.run(s.t)
		}
	}()
	p.wait(done)
	return &p.record
}

// run runs the scenario, on a fake with the state that the execution before has left.
func (p *execution) run(t *testing.T) {
	fake, down := p.open(), restarts[p.stage].down
	defer fake.Close()
	if p.bubble {
		time.Sleep(p.from.elapsed + down)
	} else {
		fake.Advance(down)
	}
	p.clock = p.clockOf(fake)
	p.record.fake, p.record.begun, p.record.secrets = fake, fake.Now(), []string{fake.Key()}
	p.last = moment{name: "start/dies", says: "at its start", record: p.record}
	p.last.record.left = p.from
	if p.moments {
		p.watch.Start(p.record.dir)
	}
	env := &Env{tb: t, Fake: fake, Dir: p.record.dir, execution: p}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	env.Client = p.client()
	if p.bubble {
		defer time.AfterFunc(p.record.maxLasted, func() { p.note(func() { p.overdueLocked(p.record.maxLasted) }) }).Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.recovered()
		defer env.finish()
		defer p.recovered() // of the scenario, so that the cleanups run
		p.routine = routine()
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, p.label)))
		p.scenario(env)
	}()
	<-done
	if !p.bubble {
		p.record.leaked = p.leftovers()
	}
	p.moment("end/dies", "after its last call")
	p.note(func() {
		p.over, p.finished, p.record.lasted = true, true, fake.Now().Sub(p.record.begun)
		p.record.left = p.imageLocked(disk.Look(p.record.dir))
	})
}

// open makes a fake with the state that was left before, or a new one.
func (p *execution) open() *fakeserver.Server {
	fake, err := fakeserver.Open(p.fakeOptions...)
	if err == nil && p.from.service != nil {
		err = fake.ReadState(bytes.NewReader(p.from.service))
	}
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return fake
}

// recovered notes a panic.
func (p *execution) recovered() {
	if v := recover(); v != nil {
		panicked := fmt.Sprintf("%v\n%s", v, debug.Stack())
		p.note(func() { p.record.panicked = panicked })
	}
}

// client is a new client of the execution's fake whose every attempt passes the wire.
func (p *execution) client() *agentmessaging.Client {
	fake := p.record.fake
	opts := []agentmessaging.Option{
		agentmessaging.WithHTTPClient(&http.Client{Transport: &wire{p, fake.Direct()}}),
		agentmessaging.WithObserver(p),
		agentmessaging.WithClock(p.clock),
		testoption.WithRandom(func() float64 { return 0.5 }).(agentmessaging.Option), // so that all runs wait alike
	}
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), append(opts, p.clientOptions...)...)
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return client
}

// note runs f under the lock. What comes after the end of the execution is not noted.
func (p *execution) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		f()
	}
}

// say notes what the application said. Each line is a statement.
func (p *execution) say(way way, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") { // an empty text is a line, too
		p.addStatement(statement{way: way, text: strings.TrimSpace(line)})
	}
}

// addStatement notes one thing that the application said.
func (p *execution) addStatement(t statement) {
	p.note(func() { p.record.statements = append(p.record.statements, t) })
}

// point passes an Env.Point: the process may die there, and the plan may let it fail.
func (p *execution) point(name string) (err error) {
	place := ""
	p.note(func() {
		p.names[name]++
		place = fmt.Sprintf("%s_%d", name, p.names[name])
		p.record.points = append(p.record.points, place)
	})
	p.moment(place+"/dies", "at "+place)
	p.note(func() {
		if p.plan.next(p.stage, place, nil) != nil {
			err = fmt.Errorf("sweep: %s fails, as planned", place)
		}
	})
	return err
}

// stopLocked ends a scenario that would not end by itself, by its context; a
// goroutine that goes on calling is ended by begin.
func (p *execution) stopLocked(why string) {
	if p.record.ended == "" {
		p.record.ended = why
		p.cancel()
	}
}

// overdueLocked stops a scenario that takes too long.
func (p *execution) overdueLocked(elapsed time.Duration) {
	p.stopLocked("it has taken " + elapsed.Round(time.Second).String() + " of virtual time by then")
}

// mostTries bounds how long a moment waits for the service to be idle. Where another
// goroutine's call takes longer, this moment is left out.
const mostTries = 1000

// moment notes what the process would leave if it died now. It waits until no call is
// at work in the service, so that folder and service belong together.
func (p *execution) moment(name, says string) {
	if !p.moments {
		return
	}
	for tries := 0; !p.serving.TryLock(); tries++ {
		if tries == mostTries {
			return
		}
		runtime.Gosched()
	}
	defer p.serving.Unlock()
	p.note(func() {
		left := p.imageLocked(p.tearLocked())
		p.last = moment{name: name, says: says, record: p.record.snapshot()}
		p.last.record.left = left
		p.record.moments = append(p.record.moments, p.last)
	})
}

// tearLocked adds the states that a death in the middle of the writes since the last moment
// leaves, and returns the folder as it is.
func (p *execution) tearLocked() disk.Image {
	before := p.last.record.left
	dir, changes := p.watch.Take(before.dir)
	for _, torn := range disk.Torn(before.dir, dir, changes) {
		m := p.last
		m.name, m.says = m.name+"_"+strings.ReplaceAll(torn.Says, " ", "_"), m.says+", and "+torn.Says
		m.whole, m.record.left.dir = before.key(), torn.Image
		p.record.moments = append(p.record.moments, m)
	}
	return dir
}

// startedLocked notes a call. A death in the middle of a write before the call leaves a
// record without the call. So the states of those writes are added first, and the last
// moment gets the folder as it is now: of later writes the call is a part.
func (p *execution) startedLocked(c *Call) {
	if p.moments {
		p.last.record.left.dir = p.tearLocked()
	}
	p.record.calls = append(p.record.calls, c)
	p.last.record.calls = p.record.snapshot().calls
}

// imageLocked returns the folder as given, and the service and the time as they are now.
func (p *execution) imageLocked(dir disk.Image) image {
	fake := p.record.fake
	return imageOf(p.record.left, fake, dir, p.from.elapsed+restarts[p.stage].down+fake.Now().Sub(p.record.begun))
}

// clockOf is the clock of the client.
func (p *execution) clockOf(fake *fakeserver.Server) agentmessaging.Clock {
	switch {
	case p.bubble:
		return quota.RealClock{} // which is the bubble's
	case p.single:
		return alone{fake}
	}
	return fake
}

// alone is the clock of a scenario whose calls come from one goroutine: the time moves
// on at once, without waiting until the other goroutines have nothing to do.
type alone struct{ *fakeserver.Server }

func (a alone) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		a.Advance(d)
	}
	return ctx.Err()
}

// leftovers are the goroutines of an execution that do not end by themselves: each by
// its stack, innermost function first. One that is about to end may need longer on a
// slow machine: the fake's Sleep returns when nothing runs any more.
func (p *execution) leftovers() []string {
	if len(labelled(p.label)) == 0 {
		return nil
	}
	_ = p.record.fake.Sleep(context.Background(), time.Nanosecond)
	return labelled(p.label)
}

// deadlocked recovers the panic of a bubble whose goroutines wait for ever: they are
// left over, or the scenario never ends.
func (p *execution) deadlocked() {
	switch v := recover(); {
	case v == nil:
	case !strings.HasPrefix(fmt.Sprint(v), "deadlock:"):
		panic(v)
	case p.finished:
		p.record.leaked = labelled(p.label)
	default:
		p.stall("waits for what never comes")
	}
}

// wait waits until an execution is done. When the watchdog's time is over, it notes why
// the execution does not end.
func (p *execution) wait(done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-p.after(p.watchdog):
	}
	advice := "let it wait with Env.Fake.Sleep, or sweep with InBubble"
	if p.bubble {
		advice = "in a bubble, time does not pass while a goroutine waits for a mutex that is held across a call, a socket, " +
			"or a channel made outside of the scenario; or a loop over a timer ignores Env.Context"
	}
	p.stall(fmt.Sprintf("has not ended in %s of real time (%s)", p.watchdog, advice))
}

// stall ends a record whose execution goes on: what it still does is not of interest.
func (p *execution) stall(why string) {
	stacks := labelled(p.label)
	p.note(func() { p.over, p.record.stalled = true, why+":\n"+strings.Join(stacks, "\n") })
}

// labelKey marks the goroutines of an execution. The trace of a panic shows it where
// GODEBUG has tracebacklabels=1, from Go 1.26 on.
const labelKey = "sweep"

// labelled are the stacks of an execution's goroutines, without addresses.
func labelled(execution string) (stacks []string) {
	var profile strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&profile, 1)
	for stack := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(stack, fmt.Sprintf("# labels: {%q:%q", labelKey, execution)) {
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

// routine is the caller's goroutine: "goroutine 12".
func routine() string {
	var head [32]byte
	words := strings.Fields(string(head[:runtime.Stack(head[:], false)]))
	return strings.Join(words[:2], " ")
}

// inBubble reports a caller in a testing/synctest bubble.
func inBubble() (inside bool) {
	defer func() { inside = recover() == nil }()
	synctest.Wait() // panics outside
	return true
}
