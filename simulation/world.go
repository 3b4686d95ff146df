package simulation

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

const tooMany = http.StatusTooManyRequests

// world is a scenario that runs.
type world struct {
	scenario
	service     *service
	coordinator *coordinator
	processes   []*process
	journal     journal
	callers     sync.WaitGroup

	stepsBefore, stepsAfter int // the measured span
}

// run plays the scenario to its end. It belongs into a bubble.
func run(s scenario) *world {
	if s.latency == (latency{}) {
		s.latency = usualLatency
	}
	w := &world{scenario: s, service: s.service(), coordinator: newCoordinator(s.tuning)}
	time.Sleep(s.starts - clock())
	ctx, cancel := context.WithTimeout(context.Background(), s.warm+s.span)
	defer cancel()
	w.startProcesses(ctx)
	w.startLoads()
	if s.meanwhile != nil {
		w.callers.Go(func() { s.meanwhile(ctx, w) })
	}
	w.callers.Go(w.useElsewhere)
	time.Sleep(s.warm)
	w.stepsBefore = w.coordinator.count()
	<-ctx.Done()
	w.stepsAfter = w.coordinator.count()
	w.coordinator.goOn()
	w.callers.Wait()
	time.Sleep(time.Minute) // in a bubble time ends with this function: let timeouts pass
	return w
}

func (w *world) startProcesses(ctx context.Context) {
	for i := range w.workers {
		p := &process{}
		p.ctx, p.end = context.WithCancel(ctx)
		w.processes = append(w.processes, p)
		p.limiter = w.policy.limiter(w, i)
	}
}

func (w *world) startLoads() {
	loads := append([]load{{endpoint: sendMessage, workers: w.workers}}, w.loads...)
	for i, l := range loads {
		for process, n := range l.workers {
			for worker := range n {
				w.callers.Go(w.newCaller(l, process, i, worker).loop)
			}
		}
		if l.perMinute > 0 {
			w.callers.Go(func() { w.arrivals(l, i) })
		}
	}
}

// arrivals come to a process at random; none comes to one that was killed.
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
	process int
	random  *rand.Rand
}

func (w *world) newCaller(l load, process, number, worker int) *caller {
	return &caller{load: l, world: w, process: process, random: source(w.seed, number, process, worker)}
}

func (c *caller) loop() {
	for c.call() {
	}
}

// call makes a call, with as many attempts as it takes; false at the end.
func (c *caller) call() bool {
	w, p := c.world, c.world.processes[c.process]
	ctx, began := prioritized(p.ctx, c.class), clock()
	for attempt := 1; ; attempt++ {
		c.endpoint.Number = attempt
		permit, err := p.limiter.Acquire(ctx, c.endpoint)
		if err != nil {
			return false
		}
		got, decided, ok := c.send(p)
		if !ok {
			return false // killed: the permit is lost
		}
		permit.Done(outcomeOf(got))
		w.journal.note(event{at: decided, process: c.process, class: c.class, accepted: got.accepted, wait: clock() - began})
		if got.accepted {
			return true
		}
		if w.policy.pauses && !sleep(ctx, pause(c.random, attempt, got.retryAfter)) {
			return false
		}
	}
}

// send reports the answer and when the service decided.
func (c *caller) send(p *process) (got answer, decided time.Duration, ok bool) {
	time.Sleep(c.world.latency.draw(c.random))
	if !p.pass() {
		return answer{}, 0, false
	}
	got, decided = c.world.service.call(clock(), c.endpoint), clock()
	time.Sleep(c.world.latency.draw(c.random))
	return got, decided, p.pass()
}

func outcomeOf(a answer) agentmessaging.AttemptOutcome {
	if a.accepted {
		return agentmessaging.AttemptOutcome{StatusCode: http.StatusOK, Sent: true}
	}
	return agentmessaging.AttemptOutcome{StatusCode: tooMany, Sent: true, LimitKey: a.key, RetryAfter: a.retryAfter}
}
