// Package loadsim plays programs that share an API key, with their pacers, a
// store, a network and a service that counts calls in one of the usual ways, in
// virtual time.
package loadsim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Class of calls, which are measured apart.
type Class int

const (
	// Batch calls have pacer.PriorityBatch.
	Batch Class = iota
	// Interactive calls go first.
	Interactive
	// Elsewhere is somebody else who has the key, and no pacer.
	Elsewhere
)

// Message is the attempt that all make who are not told otherwise, with all the
// patience there is.
var Message = agentmessaging.LimitedAttempt{Method: "POST", Path: "/v1/agents/{agent_id}/messages", MaxWait: 1000 * time.Hour}

// Load is one sort of calls. Either workers of each process call again as soon as
// their last call was accepted; or calls arrive at random, that many a minute
// in the whole fleet.
type Load struct {
	Class     Class
	Attempt   agentmessaging.LimitedAttempt // zero: Message
	Workers   []int
	PerMinute float64
}

// Scenario is what is played: the same seed gives the same draws.
type Scenario struct {
	Model     Model
	Limits    []pacer.Limit // as the pacers are told
	Real      []pacer.Limit // what the service allows; nil: Limits
	Options   []pacer.Option
	Store     *Store // nil: each process is alone
	Processes int
	Loads     []Load
	Latency   time.Duration // to the service, each way, in the median
	Replies   time.Duration // what the answer takes beyond that, in the median

	Starts     time.Duration // time of day
	Warm, Span time.Duration // the measured span follows the warm time
	Seed       uint64
	Meanwhile  func(ctx context.Context, w *World) // runs beside, from the start
}

// World is a scenario that runs, or has run.
type World struct {
	Scenario
	Fleet   []*Process
	service *service
	callers sync.WaitGroup
	did     operations // in the measured span

	mu     sync.Mutex
	events []event
}

// Process is one of those that share the key.
type Process struct {
	*pacer.Pacer
	ctx     context.Context
	kill    context.CancelCauseFunc
	network barrier
}

// Freeze stops the process's network, as a long pause would.
func (p *Process) Freeze(frozen bool) { p.network.set(frozen) }

// Kill ends the process in the middle of what it does.
func (p *Process) Kill() { p.kill(errKilled) }

var errKilled = errors.New("killed")

// pass waits while the process is frozen, and reports whether it lives.
func (p *Process) pass() bool {
	p.network.pass()
	return context.Cause(p.ctx) != errKilled
}

// Key is the API key of all.
const Key = "amk_canary_9f2c71"

// midnight is when the clock of a bubble starts.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time since midnight of the first day.
func clock() time.Duration { return time.Since(midnight) }

// Run plays the scenario to its end. It belongs into a bubble.
func Run(s Scenario) *World {
	w := &World{Scenario: s, Fleet: make([]*Process, s.Processes)}
	w.service = w.newService()
	time.Sleep(s.Starts - clock())
	ctx, cancel := context.WithTimeout(context.Background(), s.Warm+s.Span)
	defer cancel()
	for i := range w.Fleet {
		w.Start(ctx, i)
	}
	for i, l := range w.Loads {
		if l.PerMinute > 0 {
			w.callers.Go(func() { w.arrivals(l, i) })
		}
	}
	if s.Meanwhile != nil {
		w.callers.Go(func() { s.Meanwhile(ctx, w) })
	}
	if s.Store != nil {
		w.count(ctx)
	}
	<-ctx.Done()
	for _, p := range w.Fleet {
		p.Freeze(false)
	}
	w.callers.Wait()
	time.Sleep(time.Minute) // in a bubble time ends with this function: let timeouts pass
	return w
}

func (w *World) newService() *service {
	if w.Real == nil {
		return w.Model.service(w.Limits...)
	}
	return w.Model.service(w.Real...)
}

// count notes what the store is asked in the measured span.
func (w *World) count(ctx context.Context) {
	time.Sleep(w.Warm)
	before := w.Store.count()
	<-ctx.Done()
	after := w.Store.count()
	w.did = operations{after.loads - before.loads, after.swaps - before.swaps, after.conflicts - before.conflicts}
	w.Store.Kill(false)
	w.Store.Hang(false)
}

// Resize changes the first limit of the service.
func (w *World) Resize(most int) { w.service.resize(most) }

// Start begins a process and its workers, maybe in the place of another.
func (w *World) Start(ctx context.Context, i int) {
	p, opts := &Process{}, w.Options
	p.ctx, p.kill = context.WithCancelCause(ctx)
	if w.Store != nil {
		opts = append([]pacer.Option{pacer.WithStore(&Store{w.Store.server, p}, Key)}, opts...)
	}
	var err error
	if p.Pacer, err = pacer.New(w.Limits, opts...); err != nil {
		panic(err)
	}
	w.Fleet[i] = p
	for number, l := range w.Loads {
		if l.Workers == nil {
			continue
		}
		for worker := range l.Workers[i] {
			w.callers.Go(w.newCaller(l, i, number, worker).loop)
		}
	}
}

// draw is how long a message travels: log-normal, as between data centres, where
// most are quick and a few are late.
func draw(median time.Duration, random *rand.Rand) time.Duration {
	return time.Duration(float64(median) * math.Exp(0.6*random.NormFloat64()))
}

// source is a random source of its own for each who draws.
func source(seed uint64, who ...int) *rand.Rand {
	second := uint64(0)
	for _, n := range who {
		second = second*1_000_003 + uint64(n) + 1
	}
	return rand.New(rand.NewPCG(seed, second))
}
