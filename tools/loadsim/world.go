// Package loadsim plays programs that share an API key, with pacers or without, a
// store, a network and a service that counts calls in one of the usual ways, in
// virtual time.
package loadsim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Scenario is what is played: the same seed gives the same draws.
type Scenario struct {
	Model     Model
	Limits    []pacer.Limit // as the pacers know them; nil: clients without a pacer
	Real      []pacer.Limit // what the service allows; nil: Limits
	Processes int           // 0: one
	Loads     []Load
	Latency   time.Duration // to the service, each way, in the median
	Replies   time.Duration // what an accepted call takes beyond that, in the median

	Client  []agentmessaging.Option
	Options []pacer.Option
	Store   *Store // nil: each process is alone

	Starts     time.Duration // time of day
	Warm, Span time.Duration // the measured span follows the warm time; no span: until all calls are made
	Seed       uint64
	Meanwhile  func(*World) // runs from the start
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
	Call      *spec.Endpoint // GetAgent, CreateAgent; nil: SendMessage
	Workers   []int          // of each process; the last number is for all that follow
	Calls     int            // of each worker; 0: until the end
	Begin     time.Duration  // of the workers
	Every     time.Duration  // between two calls of a worker
	PerMinute float64
}

// do makes a call with the client.
func (l Load) do(ctx context.Context, client *agentmessaging.Client) (err error) {
	switch l.Call {
	case spec.GetAgent:
		_, err = client.GetAgent(ctx, "agent")
	case spec.CreateAgent:
		_, err = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	default:
		_, err = client.SendMessage(ctx, "agent", agentmessaging.MessageParams{Text: "Hello"})
	}
	return err
}

// World is a scenario that runs, or has run.
type World struct {
	Scenario
	Fleet   []*Process
	Events  []Event // complete when Run has returned
	service *service
	callers sync.WaitGroup
	ctx     context.Context
	mu      sync.Mutex // guards Events
}

// Process is one of those that share the key, and the transport of its client.
type Process struct {
	*pacer.Pacer        // nil: the client does without
	Kill         func() // ends the process in the middle of what it does
	world        *World
	index        int
	client       *agentmessaging.Client
	ctx          context.Context
	frozen       moment
}

// Freeze stops the process's network for a while, as a long pause would.
func (p *Process) Freeze(during time.Duration) { p.frozen.set(during) }

// pass travels for so long, and waits while the process is frozen. A killed
// process cannot pass. At the end of the run all may finish what they do.
func (p *Process) pass(travel time.Duration) error {
	time.Sleep(travel)
	time.Sleep(p.frozen.left())
	if p.world.ctx.Err() != nil {
		return nil
	}
	return p.ctx.Err()
}

// Key is the API key of all.
const Key = "amk_canary_9f2c71"

// midnight is when the clock of a bubble starts.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time since midnight of the first day.
func clock() time.Duration { return time.Since(midnight) }

// Run plays the scenario to its end. It belongs into a bubble.
func Run(s Scenario) *World {
	if s.Real == nil {
		s.Real = s.Limits
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := &World{Scenario: s, Fleet: make([]*Process, max(1, s.Processes)), service: s.Model.service(s.Real), ctx: ctx}
	time.Sleep(s.Starts - clock())
	if s.Span > 0 {
		time.AfterFunc(s.Warm+s.Span, cancel)
	}
	for i := range w.Fleet {
		w.Start(i)
	}
	for i, l := range w.Loads {
		if l.PerMinute > 0 {
			w.callers.Go(func() { w.arrivals(i) })
		}
	}
	if s.Meanwhile != nil {
		w.callers.Go(func() { s.Meanwhile(w) })
	}
	w.callers.Wait()
	time.Sleep(time.Minute) // in a bubble time ends with this function: let timeouts pass
	return w
}

// Resize changes the first limit of the service.
func (w *World) Resize(most int) {
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	w.service.limits[0].Max = most
}

// Start begins a process and its workers, maybe in the place of another. Its pacer
// has unlimited patience.
func (w *World) Start(i int) {
	p := &Process{world: w, index: i}
	p.ctx, p.Kill = context.WithCancel(w.ctx)
	w.Fleet[i] = p
	opts := append([]agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: p})}, w.Client...)
	if w.Limits != nil {
		shared := w.Options
		if w.Store != nil {
			shared = append([]pacer.Option{pacer.WithStore(&Store{w.Store.server, p}, Key)}, shared...)
		}
		p.Pacer = must(pacer.New(w.Limits, shared...))
		const patience = 1000 * time.Hour
		opts = append(opts, agentmessaging.WithLimiter(p.Pacer), agentmessaging.WithTimeout(patience),
			agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: patience}))
	}
	p.client = must(agentmessaging.NewClient("https://service.invalid", Key, opts...))
	for load, l := range w.Loads {
		if last := len(l.Workers) - 1; last >= 0 {
			for worker := range l.Workers[min(i, last)] {
				w.callers.Go(func() { p.work(load, source(w.Seed, i, load, worker)) })
			}
		}
	}
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// work makes the calls of a worker.
func (p *Process) work(load int, random *rand.Rand) {
	l := p.world.Loads[load]
	time.Sleep(l.Begin)
	for n := 0; (l.Calls == 0 || n < l.Calls) && p.ctx.Err() == nil; n++ {
		p.call(load, random)
		time.Sleep(l.Every)
	}
}

// arrivals come to a process at random. Somebody else does not wait.
func (w *World) arrivals(load int) {
	l, random := w.Loads[load], source(w.Seed, load, 2)
	for n := 0; ; n++ {
		time.Sleep(time.Duration(random.ExpFloat64() / l.PerMinute * float64(time.Minute)))
		if w.ctx.Err() != nil {
			return
		}
		p := w.Fleet[random.IntN(len(w.Fleet))]
		switch {
		case l.Class != Elsewhere:
			w.callers.Go(func() { p.call(load, source(w.Seed, p.index, load, n)) })
		case w.service.call(spec.SendMessage, clock()) == 0:
			w.note(Event{Kind: elsewhere})
		}
	}
}

// call is one that is being made.
type call struct {
	load   int
	began  time.Duration
	random *rand.Rand
}

type callKey struct{}

// call makes a call, and notes how it ended.
func (p *Process) call(load int, random *rand.Rand) {
	c, l := &call{load, clock(), random}, p.world.Loads[load]
	ctx := context.WithValue(p.ctx, callKey{}, c)
	if l.Class == Batch {
		ctx = pacer.WithPriority(ctx, pacer.PriorityBatch)
	}
	kind := Done
	if err := l.do(ctx, p.client); err != nil {
		kind = Lost
	}
	if p.ctx.Err() == nil {
		p.world.note(Event{Kind: kind, Load: load, Wait: clock() - c.began})
	}
}

// RoundTrip answers as the service does.
func (p *Process) RoundTrip(req *http.Request) (*http.Response, error) {
	w, c := p.world, req.Context().Value(callKey{}).(*call)
	attempt := Event{Kind: Accepted, Load: c.load, Wait: clock() - c.began, process: p.index}
	if err := p.pass(draw(w.Latency, c.random)); err != nil {
		return nil, err
	}
	answer := httptest.NewRecorder()
	endpoint := spec.Find(req.Method, strings.Replace(req.URL.Path, "/agents/agent", "/agents/{agent_id}", 1))
	if wait := w.service.call(endpoint, clock()); wait > 0 {
		attempt.Kind = Refused
		answer.Header().Set("Retry-After", fmt.Sprint(math.Ceil(wait.Seconds())))
		answer.WriteHeader(http.StatusTooManyRequests)
		answer.WriteString(`{"error": "rate_limited", "limit_key": "theirs"}`)
	}
	w.note(attempt)
	if attempt.Kind == Accepted {
		time.Sleep(draw(w.Replies, c.random))
		answer.WriteString(`{"reply_text": "Hi", "agent_id": "agent", "status": "active", "trace_id": "t"}`)
	}
	if err := p.pass(draw(w.Latency, c.random)); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

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
