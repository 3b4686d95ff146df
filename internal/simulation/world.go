package simulation

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// class of calls, which are measured apart.
type class int

const (
	batch       class = iota
	interactive       // goes first
	other             // calls of another endpoint
)

// load is one sort of calls. Where perMinute is 0, each worker calls again as
// soon as its last call was accepted; otherwise calls arrive at random, that
// many a minute in the whole fleet.
type load struct {
	class     class
	endpoint  agentmessaging.LimitedAttempt
	workers   []int // of each process
	perMinute float64
}

// scenario is what is simulated: the same seed gives the same draws.
type scenario struct {
	service func() *service
	limits  []pacer.Limit // as the pacers are told
	alone   bool          // the process has no store
	workers []int         // of each process, who send messages in a closed loop
	loads   []load        // other callers
	foreign float64       // calls a minute of somebody else, who does not wait
	latency latency       // to the service, each way
	replies time.Duration // what the answer takes beyond that, in the median
	away    time.Duration // the store is so far away, each way

	starts     time.Duration // time of day
	warm, span time.Duration // the measured span follows the warm time
	seed       uint64
	meanwhile  func(ctx context.Context, w *world) // runs beside, from the start
}

// world is a scenario that runs.
type world struct {
	scenario
	service   *service
	store     *store
	mu        sync.Mutex
	processes []*process
	journal   journal
	callers   sync.WaitGroup

	before, after operations // of the measured span
}

// process is one of those that share the key.
type process struct {
	limiter *pacer.Pacer
	ctx     context.Context // ends when it is killed
	end     context.CancelFunc

	mu     sync.Mutex
	frozen chan struct{} // not nil: nothing goes in or out until it is closed
}

// freeze stops the process's network, as a long pause would.
func (p *process) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = make(chan struct{})
}

func (p *process) thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.frozen)
	p.frozen = nil
}

// pass waits while the process is frozen, and reports whether it lives.
func (p *process) pass() bool {
	p.mu.Lock()
	frozen := p.frozen
	p.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	return p.ctx.Err() == nil
}

// run plays the scenario to its end. It belongs into a bubble.
func run(s scenario) *world {
	w := &world{scenario: s, service: s.service(), store: &store{delay: s.away}}
	time.Sleep(s.starts - clock())
	ctx, cancel := context.WithTimeout(context.Background(), s.warm+s.span)
	defer cancel()
	for i, n := range w.workers {
		w.start(ctx, i, n)
	}
	for i, l := range w.loads {
		w.startLoad(l, i+1)
	}
	if s.meanwhile != nil {
		w.callers.Go(func() { s.meanwhile(ctx, w) })
	}
	w.callers.Go(w.useElsewhere)
	time.Sleep(s.warm)
	w.before = w.store.count()
	<-ctx.Done()
	w.after = w.store.count()
	w.store.set(fine)
	w.callers.Wait()
	time.Sleep(time.Minute) // in a bubble time ends with this function: let timeouts pass
	return w
}

// start begins a process, or one in the place of another.
func (w *world) start(ctx context.Context, i, workers int) {
	p := &process{}
	p.ctx, p.end = context.WithCancel(ctx)
	var opts []pacer.Option
	if !w.alone {
		opts = append(opts, pacer.WithStore(link{p, w.store}, "key"))
	}
	limiter, err := pacer.New(w.limits, opts...)
	if err != nil {
		panic(err)
	}
	p.limiter = limiter
	w.mu.Lock()
	if i == len(w.processes) {
		w.processes = append(w.processes, nil)
	}
	w.processes[i] = p
	w.mu.Unlock()
	for worker := range workers {
		w.callers.Go(w.newCaller(load{endpoint: sendMessage}, i, 0, worker).loop)
	}
}

func (w *world) startLoad(l load, number int) {
	for process, n := range l.workers {
		for worker := range n {
			w.callers.Go(w.newCaller(l, process, number, worker).loop)
		}
	}
	if l.perMinute > 0 {
		w.callers.Go(func() { w.arrivals(l, number) })
	}
}

// arrivals come to a process at random.
func (w *world) arrivals(l load, number int) {
	random := source(w.seed, number, 2)
	for n := 0; w.untilNext(random, l.perMinute); n++ {
		process := random.IntN(len(w.processes))
		w.callers.Go(func() { w.newCaller(l, process, number, n).call() })
	}
}

// untilNext sleeps until the next random arrival; false at the end.
func (w *world) untilNext(random *rand.Rand, perMinute float64) bool {
	next := time.Duration(random.ExpFloat64() / perMinute * float64(time.Minute))
	ends := w.starts + w.warm + w.span
	time.Sleep(min(next, ends-clock()))
	return clock() < ends
}

// useElsewhere is somebody else who has the key, and does not wait.
func (w *world) useElsewhere() {
	random := source(w.seed, 3)
	for w.foreign > 0 && w.untilNext(random, w.foreign) {
		if w.service.call(clock(), sendMessage).accepted {
			w.journal.elsewhere()
		}
	}
}

// caller makes calls one after the other.
type caller struct {
	load
	world   *world
	process *process
	index   int
	random  *rand.Rand
}

func (w *world) newCaller(l load, process, number, worker int) *caller {
	return &caller{load: l, world: w, process: w.processes[process], index: process, random: source(w.seed, number, process, worker)}
}

func (c *caller) loop() {
	for c.call() {
	}
}

// call makes a call, with as many attempts as it takes; false at the end.
func (c *caller) call() bool {
	ctx, began := c.process.ctx, clock()
	if c.class == batch {
		ctx = pacer.WithPriority(ctx, pacer.PriorityBatch)
	}
	for attempt := 1; ; attempt++ {
		c.endpoint.Number = attempt
		permit, err := c.process.limiter.Acquire(ctx, c.endpoint)
		if err != nil {
			return false
		}
		got, ok := c.send(began)
		if !ok {
			return false // killed: the permit is lost
		}
		permit.Done(outcomeOf(got))
		if got.accepted {
			return true
		}
	}
}

// send is an attempt; false if the process was killed meanwhile.
func (c *caller) send(began time.Duration) (got answer, ok bool) {
	w, waited := c.world, clock()-began
	time.Sleep(w.latency.draw(c.random))
	if !c.process.pass() {
		return answer{}, false
	}
	got = w.service.call(clock(), c.endpoint)
	w.journal.note(event{at: clock(), process: c.index, class: c.class, accepted: got.accepted, wait: waited})
	time.Sleep(w.latency.draw(c.random) + latency{w.replies, w.latency.sigma}.draw(c.random))
	return got, c.process.pass()
}

func outcomeOf(a answer) agentmessaging.AttemptOutcome {
	if a.accepted {
		return agentmessaging.AttemptOutcome{StatusCode: http.StatusOK, Sent: true}
	}
	return agentmessaging.AttemptOutcome{
		StatusCode: http.StatusTooManyRequests, Sent: true, LimitKey: a.key, RetryAfter: a.retryAfter,
	}
}
