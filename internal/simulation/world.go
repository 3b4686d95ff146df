// Package simulation measures package pacer on services that count calls in
// each of the usual ways, in virtual time. Its table of targets is part of
// docs/rate-limits.md.
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
	elsewhere         // of somebody else who has the key
)

// load is one sort of calls. Either workers of each process call again as soon as
// their last call was accepted; or calls arrive at random, that many a minute
// in the whole fleet.
type load struct {
	class     class
	workers   []int
	perMinute float64
}

// scenario is what is simulated: the same seed gives the same draws.
type scenario struct {
	service   func() *service
	limits    []pacer.Limit // as the pacers are told
	alone     bool          // the process has no store
	processes int
	loads     []load
	latency   latency       // to the service, each way
	replies   time.Duration // what the answer takes beyond that, in the median
	away      time.Duration // the store is so far away, each way

	starts     time.Duration // time of day
	warm, span time.Duration // the measured span follows the warm time
	seed       uint64
	meanwhile  func(ctx context.Context, w *world) // runs beside, from the start
}

// world is a scenario that runs.
type world struct {
	scenario
	service *service
	store   *store
	fleet   []*process
	journal journal
	callers sync.WaitGroup

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
	w := &world{
		scenario: s, service: s.service(), fleet: make([]*process, s.processes),
		store: &store{delay: s.away, values: map[string]entry{}},
	}
	time.Sleep(s.starts - clock())
	ctx, cancel := context.WithTimeout(context.Background(), s.warm+s.span)
	defer cancel()
	for i := range w.fleet {
		w.start(ctx, i)
	}
	for i, l := range w.loads {
		if l.perMinute > 0 {
			w.callers.Go(func() { w.arrivals(l, i) })
		}
	}
	if s.meanwhile != nil {
		w.callers.Go(func() { s.meanwhile(ctx, w) })
	}
	time.Sleep(s.warm)
	w.before = w.store.count()
	<-ctx.Done()
	w.after = w.store.count()
	w.store.set(fine)
	w.callers.Wait()
	time.Sleep(time.Minute) // in a bubble time ends with this function: let timeouts pass
	return w
}

// start begins a process and its workers, maybe in the place of another.
func (w *world) start(ctx context.Context, i int) {
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
	p.limiter, w.fleet[i] = limiter, p
	for number, l := range w.loads {
		if l.workers == nil {
			continue
		}
		for worker := range l.workers[i] {
			w.callers.Go(w.newCaller(l.class, i, number, worker).loop)
		}
	}
}

// arrivals come to a process at random. Somebody else does not wait.
func (w *world) arrivals(l load, number int) {
	random, ends := source(w.seed, number, 2), w.starts+w.warm+w.span
	for n := 0; ; n++ {
		next := time.Duration(random.ExpFloat64() / l.perMinute * float64(time.Minute))
		time.Sleep(min(next, ends-clock()))
		switch process := random.IntN(len(w.fleet)); {
		case clock() >= ends:
			return
		case l.class == elsewhere:
			w.journal.note(event{at: clock(), class: elsewhere, accepted: w.service.call(clock()) == 0})
		default:
			w.callers.Go(func() { w.newCaller(l.class, process, number, n).call() })
		}
	}
}

// caller makes calls one after the other.
type caller struct {
	class   class
	world   *world
	process *process
	index   int
	random  *rand.Rand
}

func (w *world) newCaller(c class, process, load, worker int) *caller {
	return &caller{c, w, w.fleet[process], process, source(w.seed, load, process, worker)}
}

func (c *caller) loop() {
	for c.call() {
	}
}

// sendMessage is the call that all make, who have all the patience there is.
var sendMessage = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages", MaxWait: 1000 * time.Hour}

// call makes a call, with as many attempts as it takes; false at the end.
func (c *caller) call() bool {
	ctx, began := c.process.ctx, clock()
	if c.class == batch {
		ctx = pacer.WithPriority(ctx, pacer.PriorityBatch)
	}
	for {
		permit, err := c.process.limiter.Acquire(ctx, sendMessage)
		if err != nil {
			return false
		}
		got, ok := c.send(began)
		if !ok {
			return false // killed: the permit is lost
		}
		if permit.Done(got); got.StatusCode == http.StatusOK {
			return true
		}
	}
}

// send is an attempt; false if the process was killed meanwhile.
func (c *caller) send(began time.Duration) (got agentmessaging.AttemptOutcome, ok bool) {
	w, waited := c.world, clock()-began
	time.Sleep(w.latency.draw(c.random))
	if !c.process.pass() {
		return got, false
	}
	got = agentmessaging.AttemptOutcome{StatusCode: http.StatusOK, Sent: true}
	if wait := w.service.call(clock()); wait > 0 {
		got.StatusCode, got.LimitKey = http.StatusTooManyRequests, "theirs"
		got.RetryAfter = (wait + time.Second - 1).Truncate(time.Second) // whole seconds, rounded up
	}
	w.journal.note(event{at: clock(), process: c.index, class: c.class, accepted: got.StatusCode == http.StatusOK, wait: waited})
	time.Sleep(w.latency.draw(c.random) + latency{w.replies, w.latency.sigma}.draw(c.random))
	return got, c.process.pass()
}
