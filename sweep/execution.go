package sweep

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"regexp"
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

// setup holds the state that all executions of a sweep share. The sweep fills it while it
// makes the baseline. Of its fields an execution changes only watch, so executions run one
// after the other.
type setup struct {
	config
	t        *testing.T
	scenario func(*Env)
	watch    *disk.Watch
	// baseline is the run without a fault. It is a pointer because records are made, and
	// copied, before the baseline is complete.
	baseline        *run
	singleGoroutine bool // all calls come from the scenario's goroutine
}

// execution is one execution of the scenario: what a process of the application would do from
// its start to its end.
type execution struct {
	*setup
	name           string    // the name of its run, or of the first run that it belongs to
	from           persisted // the state that the execution starts from
	stage          int       // 0: the first execution of its run; 1 to 3: the restarts
	plan           *plan     // nil: nothing goes wrong
	collectMoments bool      // collects the moments at which the process might die

	clock     agentmessaging.Clock // of the client
	goroutine string               // the scenario's goroutine
	label     string               // marks the execution's goroutines; contains the folder, since executions may share a name
	ctx       context.Context      // of the scenario
	cancel    context.CancelFunc
	finished  bool // the scenario has returned

	mu            sync.Mutex // guards the fields below; whileRunning takes it
	over          bool       // the fields below do not change any more
	record        record
	last          moment         // the newest moment between two writes; collectTornLocked updates its folder
	names         map[string]int // how often each name was used
	refusedInARow map[string]int // answers of 401 and 402 in a row, by goroutine
	underWay      int            // requests that the service has not answered yet
	sentKey       string         // the provider key that was sent last
	callsAfterEnd int            // calls after stopLocked has ended the scenario
}

// The bounds of a run without faults, for which there is no baseline yet. If a scenario
// exceeds them, sweep assumes that it never ends.
const (
	baselineMaxRequests = 10_000
	baselineMaxTime     = 1000 * time.Hour
)

// execute runs the scenario once. It gives up when the watchdog's time is over.
func (x *execution) execute() *record {
	dir := x.t.TempDir()
	if err := x.from.dir.Restore(dir); err != nil {
		x.t.Fatal(err)
	}
	x.label = fmt.Sprintf("%s/%s in %s", x.t.Name(), cmp.Or(x.name, "baseline"), dir)
	x.names, x.refusedInARow = map[string]int{}, map[string]int{}
	x.record = record{baseline: x.baseline, stage: x.stage, dir: dir, maxRequests: baselineMaxRequests, maxLasted: baselineMaxTime}
	x.record.seen = x.from.seen.clone()
	if baseline := x.record.baselineExecutions(); baseline != nil {
		x.record.maxRequests = 3 * 3 * max(1, baseline[0].requests, baseline[1].requests) // three tries of the application, with three attempts of the client each
		x.record.maxLeaked = max(len(baseline[0].leaked), len(baseline[1].leaked))
		x.record.maxLasted = max(baseline[0].lasted, baseline[1].lasted) + x.maxVirtualTime
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer x.deadlocked()
		if x.bubble {
			synctest.Test(x.t, func(t *testing.T) { x.runOnFake(t) })
		} else {
			x.runOnFake(x.t)
		}
	}()
	x.wait(done)
	x.record.endLine()
	return &x.record
}

// runOnFake opens a fake with the state that the previous execution has left, and runs the
// scenario on it, after the time for which the application was down.
func (x *execution) runOnFake(t *testing.T) {
	fake := x.openAt(x.from.service)
	if down := stages[x.stage].down; x.bubble {
		time.Sleep(x.from.elapsed + down)
	} else {
		fake.Advance(down)
	}
	x.clock = x.clockOf(fake)
	x.record.fake, x.record.begun = fake, fake.Now()
	x.last = moment{name: "start/dies", when: "after its start", left: x.from}
	if x.collectMoments {
		x.watch.Start(x.record.dir)
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	if x.bubble {
		defer time.AfterFunc(x.record.maxLasted, func() { x.whileRunning(func() { x.overdueLocked(x.record.maxLasted) }) }).Stop()
	}
	client, _ := x.client() // no error: tryOptions has made a client with the same options
	x.perform(&Env{tb: t, Client: client, Fake: fake, Dir: x.record.dir, execution: x})
	if !x.bubble {
		leaked := x.leakedGoroutines()
		x.whileRunning(func() { x.record.leaked = leaked })
	}
	x.moment("end/dies", "after its last call")
	misused := fake.Close() // without the lock, because it runs matchers of the scenario
	x.whileRunning(func() {
		x.over, x.finished, x.record.misused, x.record.lasted = true, true, misused, fake.Now().Sub(x.record.begun)
		x.record.left = x.persistedLocked(disk.ReadImage(x.record.dir))
	})
}

// openAt makes a fake with a state that WriteState wrote; nil means a new fake.
func (s *setup) openAt(service []byte) *fakeserver.Server {
	fake, err := fakeserver.Open(s.fakeOptions...)
	if err == nil && service != nil {
		err = fake.ReadState(bytes.NewReader(service))
	}
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return fake
}

// perform calls the scenario on a new goroutine, because a fatal assertion may end the
// goroutine. It waits for the end of the scenario.
func (x *execution) perform(env *Env) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer x.recovered()
		defer env.finish()
		defer x.recovered() // recovers a panic of the scenario, so that the cleanups run
		x.goroutine = currentGoroutine()
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(labelKey, x.label)))
		x.scenario(env)
	}()
	<-done
}

// recovered records a panic. A panic counts as a report, because everybody sees it.
func (x *execution) recovered() {
	if v := recover(); v != nil {
		panicked := fmt.Sprintf("%v\n%s", v, debug.Stack())
		x.whileRunning(func() { x.record.panicked = panicked })
		x.addStatement(statement{kind: asserted, text: fmt.Sprint("panic: ", v)})
	}
}

// client returns a new client of the execution's fake, which sends its attempts through
// transport.
func (x *execution) client() (*agentmessaging.Client, error) {
	fake := x.record.fake
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(&http.Client{Transport: &transport{x, fake.Direct()}}),
		agentmessaging.WithObserver(x),
		agentmessaging.WithClock(x.clock),
		testoption.WithRandom(func() float64 { return 0.5 }).(agentmessaging.Option)) // without random jitter, so that all runs wait for the same times
	if err != nil {
		return nil, err
	}
	return client.With(x.clientOptions...)
}

// tryOptions makes a fake and a client as each execution does. If one of them refuses an
// option, the test can still be ended here.
func (s *setup) tryOptions() error {
	fake, err := fakeserver.Open(s.fakeOptions...)
	if err == nil {
		defer fake.Close()
		_, err = (&execution{setup: s, clock: fake, record: record{fake: fake}}).client()
	}
	return err
}

// whileRunning runs f under the lock, and reports whether it did. After the end of the execution
// nothing is recorded any more.
func (x *execution) whileRunning(f func()) (running bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if running = !x.over; running {
		f()
	}
	return running
}

// say records a text of the application. Each line is a statement.
func (x *execution) say(kind statementKind, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") { // an empty text is a line too
		x.addStatement(statement{kind: kind, text: strings.TrimSpace(line)})
	}
}

// addStatement records a statement of the application.
func (x *execution) addStatement(t statement) {
	x.whileRunning(func() { x.addStatementLocked(t) })
}

// addStatementLocked records a statement of the application. If a file was written since
// the last moment, the process may also die between that write and the statement.
func (x *execution) addStatementLocked(t statement) {
	if x.collectTornLocked(true) {
		m, line := x.last, len(x.record.statements)+1
		m.name, m.when = fmt.Sprintf("%s_before_line_%d", m.name, line), fmt.Sprintf("%s, and before it said line %d", m.when, line)
		x.addMomentLocked(m)
	}
	x.record.statements = append(x.record.statements, t)
}

// point handles an Env.Point: the process may die there, and the plan may make the point
// fail.
func (x *execution) point(name string) (err error) {
	place := ""
	x.whileRunning(func() {
		x.names[name]++
		place = fmt.Sprintf("%s_%d", name, x.names[name])
		x.record.points = append(x.record.points, place)
	})
	x.moment(place+"/dies", "at "+place)
	x.whileRunning(func() {
		if x.plan.hit(x.stage, place, nil) {
			err = fmt.Errorf("sweep: %s fails, as planned", place)
			x.record.failedPoint = name
		} else if x.record.failedPoint == name {
			x.record.failedPoint = ""
		}
	})
	return err
}

// stopLocked ends a scenario that would not end by itself: it cancels the scenario's
// context. If a goroutine still makes calls, begin ends the goroutine.
func (x *execution) stopLocked(why string) {
	if x.record.ended == "" {
		x.record.ended = why
		x.cancel()
	}
}

// overdueLocked stops a scenario that takes too long.
func (x *execution) overdueLocked(elapsed time.Duration) {
	x.stopLocked("it had taken " + elapsed.Round(time.Second).String() + " of virtual time")
}

// moment records the state that the process would leave if it died now.
func (x *execution) moment(name, when string) {
	if !x.collectMoments {
		return
	}
	x.whileRunning(func() {
		x.collectTornLocked(false)
		x.last = moment{name: name, when: when, left: x.persistedLocked(x.last.left.dir)}
		x.addMomentLocked(x.last)
	})
}

// addMomentLocked adds a moment with a copy of the record so far.
func (x *execution) addMomentLocked(m moment) {
	m.record = x.record.snapshot(m)
	x.record.moments = append(x.record.moments, m)
}

// randomPart matches the random part that functions such as os.CreateTemp put into the name
// of a file.
var randomPart = regexp.MustCompile(`[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|\d{4,}`)

// collectTornLocked adds the torn states since its last call: the states that a death in the
// middle of a write would leave. It reports whether the folder has changed. Call it before you
// record anything that came after these writes. onlyReported is for callers that come often:
// see disk.Watch. Without collectMoments it costs nothing.
func (x *execution) collectTornLocked(onlyReported bool) (changed bool) {
	if !x.collectMoments {
		return false
	}
	before := x.last.left
	dir, states := x.watch.Update(before.dir, onlyReported)
	keyBefore := sync.OnceValue(before.key) // reads all of a folder, which may be large
	for _, torn := range states {
		m := x.last
		m.name += "_" + strings.ReplaceAll(randomPart.ReplaceAllString(torn.Description, "*"), " ", "_") // the name is the same in another run
		m.when += ", and " + torn.Description
		m.untornKey, m.left.dir = keyBefore(), torn.Image
		x.addMomentLocked(m)
	}
	x.last.left.dir = dir
	return !maps.Equal(dir, before.dir)
}

// persistedLocked returns the state that would outlive the process now: dir, the present state
// of the service, and the time. While a request is under way, the service may change at any
// time, so the state is read from a copy of it. No new request can begin.
func (x *execution) persistedLocked(dir disk.Image) persisted {
	fake, seen := x.record.fake, x.record.seen
	elapsed := x.from.elapsed + stages[x.stage].down + fake.Now().Sub(x.record.begun)
	var service bytes.Buffer
	_ = fake.WriteState(&service)
	if x.underWay > 0 {
		fake = x.openAt(service.Bytes())
		defer fake.Close()
		x.noteProviderKeyLocked(fake)
	}
	return persisted{dir: dir, service: service.Bytes(), state: stateOf(fake, seen), seen: seen.clone(), elapsed: elapsed}
}

// clockOf returns the clock of the client.
func (x *execution) clockOf(fake *fakeserver.Server) agentmessaging.Clock {
	switch {
	case x.bubble:
		return quota.RealClock{} // real time is the bubble's time
	case x.singleGoroutine:
		return instantClock{fake}
	}
	return fake
}

// instantClock is the clock of a scenario whose calls come from one goroutine. Its Sleep
// moves the time at once. It does not wait until the other goroutines are idle.
type instantClock struct{ *fakeserver.Server }

// Sleep moves the clock, and does not wait.
func (c instantClock) Sleep(ctx context.Context, d time.Duration) error {
	if d > 0 && ctx.Err() == nil {
		c.Advance(d)
	}
	return ctx.Err()
}

// leakedGoroutines returns the stacks of an execution's goroutines that do not end by
// themselves, innermost function first. On a busy machine a goroutine that is about to end may
// have to wait for a processor, so leakedGoroutines looks up to 50 times. In between it calls
// the fake's Sleep, which takes at least 2 ms.
func (x *execution) leakedGoroutines() (left []string) {
	for range 50 {
		if left = goroutinesLabelled(x.label); len(left) <= x.record.maxLeaked {
			break
		}
		_ = x.record.fake.Sleep(context.Background(), time.Nanosecond)
	}
	return left
}

// deadlocked recovers the panic of a bubble whose goroutines wait forever. Either they are
// left over, or the scenario never ends.
func (x *execution) deadlocked() {
	switch v := recover(); {
	case v == nil:
	case !strings.HasPrefix(fmt.Sprint(v), "deadlock:"):
		panic(v)
	case x.finished:
		x.record.leaked = goroutinesLabelled(x.label)
	default:
		x.stall("waits for something that never comes")
	}
}

// wait waits until an execution is done. When the watchdog's time is over, it records why
// the execution does not end.
func (x *execution) wait(done <-chan struct{}) {
	select {
	case <-done:
		return
	case <-x.after(x.watchdog):
	}
	advice := "it waits without end, or in real time: let it wait with Env.Fake.Sleep, or sweep with InBubble"
	if x.bubble {
		advice = "in a bubble, time does not pass while a goroutine waits for a mutex that is held across a call, a socket, " +
			"or a channel made outside of the scenario; or a loop over a timer ignores Env.Context"
	}
	x.stall(fmt.Sprintf("has not ended in %s of real time (%s)", x.watchdog, advice))
}

// stall ends the record of an execution that does not end. Later events of the execution
// are ignored.
func (x *execution) stall(why string) {
	stacks := goroutinesLabelled(x.label)
	x.whileRunning(func() { x.over, x.record.stalled = true, why+":\n"+strings.Join(stacks, "\n") })
}

// labelKey is the key of the label on the goroutines of an execution. With
// GODEBUG=tracebacklabels=1, from Go 1.26 on, a panic that ends the process shows the
// label, which contains the name of the run.
const labelKey = "sweep"

// goroutinesLabelled returns the stacks of an execution's goroutines, without addresses.
func goroutinesLabelled(execution string) (stacks []string) {
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

// currentGoroutine returns the caller's goroutine: "goroutine 12".
func currentGoroutine() string {
	var head [32]byte
	words := strings.Fields(string(head[:runtime.Stack(head[:], false)]))
	return strings.Join(words[:2], " ")
}

// inBubble reports whether the caller is in a testing/synctest bubble.
func inBubble() (inside bool) {
	defer func() { inside = recover() == nil }()
	synctest.Wait() // panics outside a bubble
	return true
}
