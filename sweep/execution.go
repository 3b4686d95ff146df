package sweep

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

// image is all that outlives a process: the service, the folder, the time.
type image struct {
	dir     disk.Image
	service []byte            // as fakeserver.WriteState writes it
	elapsed time.Duration     // since the first execution began
	gone    map[string]bool   // agents that a plan has removed, or said to be unknown
	agents  map[string]string // what each is, by identifier; it may be gone since
	state   state
}

// order says under which conditions to execute the scenario.
type order struct {
	from    image
	stage   int // 0: the first execution; 1 to 3: the restarts after it
	plan    *plan
	moments bool // collect the moments at which the process might die
}

// execution is one run of the scenario by a process, from its start to its end.
type execution struct {
	sweep *sweep
	order
	fake    *fakeserver.Server
	dir     string
	clock   agentmessaging.Clock // of the client
	routine string               // the scenario's goroutine
	label   string               // of its goroutines
	cancel  context.CancelFunc
	quota   int           // nine times the requests of the baseline
	longest time.Duration // of virtual time that it may take

	begun    time.Time // by the fake's clock
	finished bool      // the scenario has returned
	lasted   time.Duration
	panicked string
	stalled  string   // what the watchdog saw
	left     []string // goroutines that were still there afterwards
	died     string   // where the process died: the execution is the part before; "" where it did not
	result   image

	serving sync.RWMutex // held while the service is at work, and locked for the picture of a moment

	mu              sync.Mutex // guards what follows; note takes it
	over            bool       // nothing below changes any more
	calls           []*Call
	points          []string          // that were passed, by name
	statements      []statement       // what the application said
	all             []moment          // in which the process might die, in order
	last            moment            // the newest of them that is no torn state
	names           map[string]int    // how often each name was given
	requests        int               // that left the client
	dead            map[string]int    // answers of 401 and 402 in a row, by goroutine
	deadKeyRequests int               // the most of them after which another request was sent
	ended           string            // why the scenario was ended; "" where it ended by itself
	refusals        int               // calls after the scenario was ended
	secrets         []string          // provider keys that were sent
	cleared         bool              // a stored provider key was about to be cleared
	gone            map[string]bool   // agents that a plan has removed, or said to be unknown
	agents          map[string]string // what each is, by identifier; it may be gone since
}

// moment is a point in time at which the process might die.
type moment struct {
	name       string // SendMessage_1/dies_arrived
	says       string // after SendMessage_1 had arrived
	base       string // of a torn state: the key of the image before it
	image      image
	calls      []*Call
	statements int // said by then
}

// progressEvery is how often a long sweep logs how far it is; go test -v shows it at once.
const progressEvery = 5 * time.Second

// labels counts the executions of this process: each has another label.
var labels atomic.Int64

// execute runs the scenario once, and gives up when the watchdog's time is over.
func (s *sweep) execute(o order) *execution {
	dir, err := os.MkdirTemp(s.parent, "")
	if err == nil {
		err = o.from.dir.Put(dir)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.runs++
	if elapsed := time.Since(s.started); elapsed > s.logged+progressEvery {
		s.logged = elapsed
		s.t.Logf("sweep: %s in %s so far", plural(s.runs, "execution"), elapsed.Round(time.Second))
	}
	p := &execution{
		sweep: s, order: o, dir: dir, label: fmt.Sprintf("%s %s #%d", s.t.Name(), o.plan, labels.Add(1)), quota: 10_000, longest: 1000 * time.Hour,
		names: map[string]int{}, dead: map[string]int{}, gone: map[string]bool{}, agents: map[string]string{},
		last: moment{name: "start/dies", says: "at its start", image: o.from},
	}
	maps.Copy(p.gone, o.from.gone)
	maps.Copy(p.agents, o.from.agents)
	if s.baseline != nil {
		usual := s.usual(p.stage)
		p.quota, p.longest = 9*max(1, usual[0].requests, usual[1].requests), max(usual[0].lasted, usual[1].lasted)+s.within
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
	if p.stalled != "" {
		p.note(func() { p.over = true }) // what it still does is not of interest
	} else if len(s.also) == 0 {
		_ = os.RemoveAll(dir)
	}
	return p
}

// run runs the scenario, on a fake with the state that the execution before has left.
func (p *execution) run(t *testing.T) {
	p.fake = p.sweep.open(p.from.service)
	defer p.fake.Close()
	if p.sweep.bubble {
		time.Sleep(p.from.elapsed + restarts[p.stage].down)
	} else {
		p.fake.Advance(restarts[p.stage].down)
	}
	p.begun, p.clock = p.fake.Now(), p.sweep.clock(p.fake)
	if p.moments {
		p.sweep.watch.Start(p.dir)
	}
	env := &Env{tb: t, Fake: p.fake, Dir: p.dir, execution: p}
	env.ctx, env.cancel = context.WithCancel(context.Background())
	p.cancel = env.cancel
	env.Client = p.client()
	if p.sweep.bubble {
		defer time.AfterFunc(p.longest, func() { p.note(func() { p.overdueLocked(p.longest) }) }).Stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.recovered()
		defer env.finish()
		defer p.recovered() // of the scenario, so that the cleanups run
		p.routine = routine()
		label(p.label)
		p.sweep.scenario(env)
	}()
	<-done
	if !p.sweep.bubble {
		p.left = p.leftovers()
	}
	p.moment("end/dies", "after its last call")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.finished, p.lasted = true, true, p.fake.Now().Sub(p.begun)
	if p.plan != nil && p.plan.undo != nil {
		p.plan.undo()
	}
	p.result = p.picture(disk.Look(p.dir))
}

// open makes a fake with the given state; nil: a new one.
func (s *sweep) open(service []byte) *fakeserver.Server {
	fake, err := fakeserver.Open(s.fakeOptions...)
	if err == nil && service != nil {
		err = fake.ReadState(bytes.NewReader(service))
	}
	if err != nil {
		panic("sweep: " + err.Error())
	}
	return fake
}

// recovered notes a panic.
func (p *execution) recovered() {
	if v := recover(); v != nil {
		p.panicked = fmt.Sprintf("%v\n%s", v, debug.Stack())
	}
}

// client is a new client of the execution's fake whose every attempt passes the wire.
func (p *execution) client() *agentmessaging.Client {
	opts := []agentmessaging.Option{
		agentmessaging.WithHTTPClient(&http.Client{Transport: &wire{p, p.fake.Direct()}}),
		agentmessaging.WithObserver(p),
		agentmessaging.WithClock(p.clock),
		testoption.WithRandom(func() float64 { return 0.5 }).(agentmessaging.Option), // so that all runs wait alike
	}
	client, err := agentmessaging.NewClient(p.fake.BaseURL(), p.fake.Key(), append(opts, p.sweep.clientOptions...)...)
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

// point passes an Env.Point: the process may die there, and the plan may let it fail.
func (p *execution) point(name string) (err error) {
	place := ""
	p.note(func() {
		p.names[name]++
		place = fmt.Sprintf("%s_%d", name, p.names[name])
		p.points = append(p.points, place)
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
	if p.ended == "" {
		p.ended = why
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
	tries := 0
	for !p.serving.TryLock() {
		if tries++; tries > mostTries {
			return
		}
		runtime.Gosched()
	}
	defer p.serving.Unlock()
	p.note(func() {
		p.last = moment{name: name, says: says, image: p.picture(p.tearLocked()), calls: copied(p.calls), statements: len(p.statements)}
		p.all = append(p.all, p.last)
	})
}

// tearLocked adds the states that a death in the middle of the writes since the last moment
// leaves, and returns the folder as it is.
func (p *execution) tearLocked() disk.Image {
	dir, changes := p.sweep.watch.Take(p.last.image.dir)
	for _, torn := range disk.Torn(p.last.image.dir, dir, changes) {
		m := p.last
		m.name, m.says = m.name+"_"+strings.ReplaceAll(torn.Says, " ", "_"), m.says+", and "+torn.Says
		m.base, m.image.dir = m.image.key(), torn.Image
		p.all = append(p.all, m)
	}
	return dir
}

// startedLocked notes a call. What is written from now on may be about it.
func (p *execution) startedLocked(c *Call) {
	if p.moments {
		p.last.image.dir = p.tearLocked()
	}
	p.calls = append(p.calls, c)
	p.last.calls = copied(p.calls)
}

// picture returns the folder, and the service and the time as they are now.
func (p *execution) picture(dir disk.Image) image {
	var service bytes.Buffer
	_ = p.fake.WriteState(&service)
	return image{dir: dir, service: service.Bytes(), state: stateOf(p.fake, p.gone),
		elapsed: p.from.elapsed + restarts[p.stage].down + p.fake.Now().Sub(p.begun), gone: maps.Clone(p.gone), agents: maps.Clone(p.agents)}
}

// key is equal where a restart would find the same.
func (i image) key() string { return i.state.key() + i.dir.String() }

// upTo returns the execution as far as a moment, at which its process died.
func (p *execution) upTo(m moment) *execution {
	return &execution{sweep: p.sweep, order: p.order, begun: p.begun, died: m.says, calls: m.calls, statements: p.statements[:m.statements],
		secrets: p.secrets, cleared: p.cleared, result: m.image}
}

func copied(calls []*Call) []*Call {
	all := make([]*Call, len(calls))
	for i, c := range calls {
		one := *c
		one.Attempts = slices.Clone(c.Attempts)
		all[i] = &one
	}
	return all
}

// clock is the clock of an execution's client.
func (s *sweep) clock(fake *fakeserver.Server) agentmessaging.Clock {
	switch {
	case s.bubble:
		return quota.RealClock{} // which is the bubble's
	case s.single:
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
	for range 20 {
		if runtime.Gosched(); len(labelled(p.label)) == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	_ = p.fake.Sleep(context.Background(), time.Nanosecond)
	return labelled(p.label)
}

// deadlocked recovers the panic of a bubble whose goroutines wait for ever: they are
// left over, or the scenario never ends.
func (p *execution) deadlocked() {
	if v := recover(); v == nil {
		return
	} else if !strings.HasPrefix(fmt.Sprint(v), "deadlock:") {
		panic(v)
	}
	stacks := labelled(p.label)
	if p.finished {
		p.left = stacks
		return
	}
	p.stalled = "waits for what never comes:\n" + strings.Join(stacks, "\n")
}

// wait waits until an execution is done. When the watchdog's time is over, it notes why
// the execution does not end.
func (p *execution) wait(done <-chan struct{}) {
	alarm := p.sweep.alarm
	if alarm == nil {
		timer := time.NewTimer(p.sweep.watchdog)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-done:
		return
	case <-alarm:
	}
	advice := "let it wait with Env.Fake.Sleep, or sweep with InBubble"
	if p.sweep.bubble {
		advice = "in a bubble, time does not pass while a goroutine waits for a mutex that is held across a call, a socket, " +
			"or a channel made outside of the scenario; or a loop over a timer ignores Env.Context"
	}
	p.stalled = fmt.Sprintf("stalls: it has not ended in %s of real time (%s)\n%s", p.sweep.watchdog, advice, strings.Join(labelled(p.label), "\n"))
}
