// Package loadsim plays programs that share an API key, with pacers or without, a
// store, a network and a service that counts calls in one of the usual ways, in
// virtual time.
package loadsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Scenario is what is played: the same seed gives the same draws.
type Scenario struct {
	Model     Model
	Limits    []pacer.Limit // as the pacers know them; nil: 60 a minute
	Real      []pacer.Limit // what the service allows; nil: Limits
	Processes int           // 0: one
	Loads     []Load
	Latency   time.Duration // to the service, each way, in the median
	Replies   time.Duration // what an accepted call takes beyond that, in the median

	Unpaced bool // clients without a pacer
	Client  []agentmessaging.Option
	Options []pacer.Option
	Store   *Store // nil: each process is alone

	Starts     time.Duration // time of day
	Warm, Span time.Duration // the measured span follows the warm time; no span: until all calls are made
	Seed       uint64
	Meanwhile  func(ctx context.Context, w *World) // runs from the start
}

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

// Load is one sort of calls. Either workers of each process make them one after the
// other, or they arrive at random, that many a minute in the whole fleet.
type Load struct {
	Class     Class
	Call      Call          // nil: SendMessage
	Workers   []int         // of each process; the last number is for all that follow
	Calls     int           // of each worker; 0: until the end
	Begin     time.Duration // of the workers
	Every     time.Duration // between two calls of a worker
	PerMinute float64
}

// Call makes a call of a client.
type Call func(context.Context, *agentmessaging.Client) error

// SendMessage is a Call.
func SendMessage(ctx context.Context, c *agentmessaging.Client) error {
	_, err := c.SendMessage(ctx, "agent", agentmessaging.MessageParams{Text: "Hello"})
	return err
}

// GetAgent is a Call.
func GetAgent(ctx context.Context, c *agentmessaging.Client) error {
	_, err := c.GetAgent(ctx, "agent")
	return err
}

// CreateAgent is a Call.
func CreateAgent(ctx context.Context, c *agentmessaging.Client) error {
	_, err := c.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	return err
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

// Process is one of those that share the key, and the transport of its client.
type Process struct {
	*pacer.Pacer // nil: the client does without
	world        *World
	index        int
	client       *agentmessaging.Client
	ctx          context.Context
	kill         context.CancelCauseFunc
	network      barrier
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
	if s.Limits == nil {
		s.Limits = []pacer.Limit{{Max: 60, Window: time.Minute}}
	}
	w := &World{Scenario: s, Fleet: make([]*Process, max(1, s.Processes))}
	w.service = w.newService()
	time.Sleep(s.Starts - clock())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if s.Span > 0 {
		time.AfterFunc(s.Warm+s.Span, cancel)
	}
	for i := range w.Fleet {
		w.Start(ctx, i)
	}
	for i, l := range w.Loads {
		if l.PerMinute > 0 {
			w.callers.Go(func() { w.arrivals(ctx, l, i) })
		}
	}
	if s.Meanwhile != nil {
		w.callers.Go(func() { s.Meanwhile(ctx, w) })
	}
	if s.Store != nil {
		w.count(ctx)
	}
	if s.Span > 0 {
		<-ctx.Done()
	}
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
	p := &Process{world: w, index: i}
	p.ctx, p.kill = context.WithCancelCause(ctx)
	p.connect()
	w.Fleet[i] = p
	for number, l := range w.Loads {
		if l.Workers == nil {
			continue
		}
		for worker := range l.Workers[min(i, len(l.Workers)-1)] {
			w.callers.Go(func() { p.work(l, source(w.Seed, i, number, worker)) })
		}
	}
}

// connect makes the process's client, with a pacer of unlimited patience.
func (p *Process) connect() {
	opts := append([]agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: p})}, p.world.Client...)
	if !p.world.Unpaced {
		shared := p.world.Options
		if p.world.Store != nil {
			shared = append([]pacer.Option{pacer.WithStore(&Store{p.world.Store.server, p}, Key)}, shared...)
		}
		p.Pacer = must(pacer.New(p.world.Limits, shared...))
		const patience = 1000 * time.Hour
		opts = append(opts, agentmessaging.WithLimiter(p.Pacer), agentmessaging.WithTimeout(patience),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: patience}))
	}
	p.client = must(agentmessaging.NewClient("https://service.invalid", Key, opts...))
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// work makes the calls of a worker.
func (p *Process) work(l Load, random *rand.Rand) {
	time.Sleep(l.Begin)
	for n := 0; (l.Calls == 0 || n < l.Calls) && p.ctx.Err() == nil; n++ {
		p.call(l, random)
		time.Sleep(l.Every)
	}
}

// arrivals come to a process at random. Somebody else does not wait.
func (w *World) arrivals(ctx context.Context, l Load, number int) {
	random := source(w.Seed, number, 2)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.ExpFloat64() / l.PerMinute * float64(time.Minute))):
		}
		p := w.Fleet[random.IntN(len(w.Fleet))]
		if l.Class == Elsewhere {
			w.note(event{at: clock(), class: Elsewhere, accepted: w.service.call(Message, clock()) == 0})
			continue
		}
		w.callers.Go(func() { p.call(l, source(w.Seed, p.index, number, n)) })
	}
}

// made is a call that is being made.
type made struct {
	class  Class
	began  time.Duration
	random *rand.Rand
}

type madeKey struct{}

func (p *Process) call(l Load, random *rand.Rand) {
	m := &made{l.Class, clock(), random}
	ctx := context.WithValue(p.ctx, madeKey{}, m)
	if l.Class == Batch {
		ctx = pacer.WithPriority(ctx, pacer.PriorityBatch)
	}
	do := l.Call
	if do == nil {
		do = SendMessage
	}
	if err := do(ctx, p.client); p.ctx.Err() == nil {
		p.world.note(event{at: clock(), process: p.index, class: l.Class, ended: true, accepted: err == nil, wait: clock() - m.began})
	}
}

// RoundTrip answers as the service does.
func (p *Process) RoundTrip(req *http.Request) (*http.Response, error) {
	w, m := p.world, req.Context().Value(madeKey{}).(*made)
	waited := clock() - m.began
	time.Sleep(draw(w.Latency, m.random))
	if !p.pass() {
		return nil, errKilled
	}
	path := strings.Replace(req.URL.Path, "/agents/agent", "/agents/{agent_id}", 1)
	wait := w.service.call(agentmessaging.LimitedAttempt{Method: req.Method, Path: path}, clock())
	w.note(event{at: clock(), process: p.index, class: m.class, accepted: wait == 0, wait: waited})
	answer, body := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}, answered
	if wait > 0 {
		answer.StatusCode, body = http.StatusTooManyRequests, `{"error": "rate_limited", "limit_key": "theirs"}`
		answer.Header.Set("Retry-After", fmt.Sprint(retryAfter(wait).Seconds()))
	} else {
		time.Sleep(draw(w.Replies, m.random))
	}
	time.Sleep(draw(w.Latency, m.random))
	if !p.pass() {
		return nil, errKilled
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	return answer, nil
}

// answered is read by all methods.
const answered = `{"reply_text": "Hi", "agent_id": "agent", "status": "active", "trace_id": "t"}`

// draw is how long a message travels: log-normal, as between data centres, where
// most are quick and a few are late.
func draw(median time.Duration, random *rand.Rand) time.Duration {
	return time.Duration(float64(median) * math.Exp(0.6*random.NormFloat64()))
}

// source is another random source for each who draws.
func source(seed uint64, who ...int) *rand.Rand {
	second := uint64(0)
	for _, n := range who {
		second = second*1_000_003 + uint64(n) + 1
	}
	return rand.New(rand.NewPCG(seed, second))
}
