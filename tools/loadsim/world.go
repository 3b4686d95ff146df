// Package loadsim simulates programs that share an API key, in virtual time: their pacers,
// if they have any, a store, a network, and a service that counts calls in one of the usual
// ways.
package loadsim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Scenario is a simulation to run. The same seed gives the same random numbers.
type Scenario struct {
	Model     Model
	Limits    []pacer.Limit // the limits that the pacers know; nil: clients without a pacer
	Real      []pacer.Limit // the limits of the service; nil: Limits
	Processes int           // 0: one
	Loads     []Load
	Latency   time.Duration // to the service, each way, in the median
	Replies   time.Duration // how long an accepted call takes at the service, in the median

	Client  []agentmessaging.Option
	Options []pacer.Option
	Store   *Store // nil: the processes share no store

	Starts     time.Duration // time of day
	Warm, Span time.Duration // the measured span follows the warm time; no span: until all calls are made
	Seed       uint64
	Meanwhile  func(*World) // runs from the start
}

// Class is a class of calls. Each is measured separately.
type Class int

const (
	// Batch calls have pacer.PriorityBatch.
	Batch Class = iota
	// Interactive calls go first.
	Interactive
	// Elsewhere are the calls of another program with the same key, without a pacer.
	Elsewhere
)

// Load is a stream of calls of one kind. Either workers in each process make them one after the
// other (Workers), or they come at random times (PerMinute, for all processes together).
type Load struct {
	Class     Class
	Call      *spec.Endpoint // GetAgent, CreateAgent; nil: SendMessage
	Workers   []int          // the number in each process; the last number is for all later processes
	Calls     int            // the calls of each worker; 0: until the end
	Begin     time.Duration  // when the workers begin
	Every     time.Duration  // the pause of a worker after each call
	PerMinute float64
}

// do makes a call.
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

// World is the run of a scenario.
type World struct {
	Scenario
	Fleet   []*Process
	Events  []Event // complete when Run has returned
	service *service
	callers sync.WaitGroup
	ctx     context.Context
	mu      sync.Mutex // guards Events
}

// Process is a program that shares the key. It is also the transport of its client.
type Process struct {
	*pacer.Pacer        // nil: the client has no Pacer
	Kill         func() // ends the process at any point of its work
	world        *World
	index        int
	client       *agentmessaging.Client
	ctx          context.Context
	frozen       deadline
}

// Freeze stops the process's network for this time, as a long pause of the process would.
func (p *Process) Freeze(during time.Duration) { p.frozen.set(during) }

// pass takes a message across the network: it sleeps for travel, and for as long as the
// process is frozen. It fails if the process was killed. After the end of the run it does
// not fail, so that calls can finish.
func (p *Process) pass(travel time.Duration) error {
	time.Sleep(travel)
	time.Sleep(p.frozen.left())
	if p.world.ctx.Err() != nil {
		return nil
	}
	return p.ctx.Err()
}

// Key is the API key that all processes share.
const Key = "amk_canary_9f2c71"

// Run runs the scenario to its end. Call it in a synctest bubble.
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
	time.Sleep(time.Minute) // the bubble's time stops when this function returns, so let timeouts pass first
	return w
}

// Resize changes the first limit of the service.
func (w *World) Resize(maxCalls int) {
	w.service.mu.Lock()
	defer w.service.mu.Unlock()
	w.service.limits[0].Max = maxCalls
}

// Start starts a process and its workers. It replaces an earlier process with the same
// number. Its pacer has unlimited patience.
func (w *World) Start(i int) {
	p := &Process{world: w, index: i}
	p.ctx, p.Kill = context.WithCancel(w.ctx)
	w.Fleet[i] = p
	opts := append([]agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: p})}, w.Client...)
	if w.Limits != nil {
		shared := w.Options
		if w.Store != nil {
			shared = append([]pacer.Option{pacer.WithStore(&Store{w.Store.server, p.pass, w.note}, Key)}, shared...)
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

// work is the loop of a worker.
func (p *Process) work(load int, random *rand.Rand) {
	l := p.world.Loads[load]
	time.Sleep(l.Begin)
	for n := 0; (l.Calls == 0 || n < l.Calls) && p.ctx.Err() == nil; n++ {
		p.call(load, random)
		time.Sleep(l.Every)
	}
}

// arrivals makes calls at random times, each in a random process. Calls from elsewhere do not
// wait for limits.
func (w *World) arrivals(load int) {
	l, random := w.Loads[load], source(w.Seed, load, 2)
	for n := 0; w.ctx.Err() == nil; n++ {
		time.Sleep(time.Duration(random.ExpFloat64() / l.PerMinute * float64(time.Minute)))
		p := w.Fleet[random.IntN(len(w.Fleet))]
		if l.Class != Elsewhere {
			w.callers.Go(func() { p.call(load, source(w.Seed, p.index, load, n)) })
		} else if w.service.call(spec.SendMessage, clock()) == 0 {
			w.note(Event{Kind: elsewhere})
		}
	}
}

// call is a call under way.
type call struct {
	load   int
	began  time.Duration
	random *rand.Rand
}

type callKey struct{}

// call makes a call, and records how it ended.
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

// RoundTrip implements http.RoundTripper: it takes the request to the service and back.
func (p *Process) RoundTrip(req *http.Request) (*http.Response, error) {
	w, c := p.world, req.Context().Value(callKey{}).(*call)
	attempt := Event{Kind: Accepted, Load: c.load, Wait: clock() - c.began, process: p.index}
	if err := p.pass(randomDelay(w.Latency, c.random)); err != nil {
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
		time.Sleep(randomDelay(w.Replies, c.random))
		answer.WriteString(`{"reply_text": "Hi", "agent_id": "agent", "status": "active", "trace_id": "t"}`)
	}
	if err := p.pass(randomDelay(w.Latency, c.random)); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// randomDelay returns a random travel time of a message: log-normal, as between data
// centres, where most messages are quick and a few are late.
func randomDelay(median time.Duration, random *rand.Rand) time.Duration {
	return time.Duration(float64(median) * math.Exp(0.6*random.NormFloat64()))
}

// source returns a random source that depends on the seed and on the numbers that
// identify its user.
func source(seed uint64, who ...int) *rand.Rand {
	second := uint64(0)
	for _, n := range who {
		second = second*1_000_003 + uint64(n) + 1
	}
	return rand.New(rand.NewPCG(seed, second))
}

func (w *World) note(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.At = clock()
	w.Events = append(w.Events, e)
}

// Measures are the results of a span of a run.
type Measures struct {
	Accepted, Refused int           // attempts
	Done, Lost        int           // calls
	Used              float64       // Accepted calls as a share of the usable quota
	Jain              float64       // Jain's index; 1: each process got the same share
	P99               time.Duration // the 99th percentile of the waits
	Longest           time.Duration // the longest wait of an interactive call that was carried out
	Last              time.Duration // when the last call ended, from the beginning of the span
	Pause             time.Duration // the longest time without an accepted call
	StoreOps          float64       // operations of the store for each accepted call
	Conflicts         float64       // share of the swaps that failed because of a conflict
}

// RefusedPerCall returns the number of refusals for each accepted call.
func (m Measures) RefusedPerCall() float64 { return share(m.Refused, m.Accepted) }

// share returns part/whole; whole counts as 1 if it is 0.
func share(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }

// Measure measures a span of the run. from and to count from the end of the warm-up; if
// to is 0, the span lasts until the end of the run. Measure counts the calls of the given
// classes, or of all classes if none is given.
func (w *World) Measure(from, to time.Duration, classes ...Class) (m Measures) {
	begins := w.Starts + w.Warm
	from, to = begins+from, begins+cmp.Or(to, w.Span, clock()-begins)
	allowed, last := w.Model.service(w.Real).allowed(w.Starts, from, to), from
	var waits []time.Duration
	count := map[Kind]int{}
	shares := make([]int, len(w.Fleet))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.Events {
		class := w.Loads[e.Load].Class
		if e.At < from || e.At >= to || classes != nil && e.Kind < elsewhere && !slices.Contains(classes, class) {
			continue
		}
		count[e.Kind]++
		switch e.Kind {
		case Accepted:
			m.Pause, last = max(m.Pause, e.At-last), e.At
			waits = append(waits, e.Wait)
			shares[e.process]++
		case Done, Lost:
			m.Last = e.At - from
			if e.Kind == Done && class == Interactive {
				m.Longest = max(m.Longest, e.Wait)
			}
		}
	}
	m.Accepted, m.Refused, m.Done, m.Lost = count[Accepted], count[Refused], count[Done], count[Lost]
	m.Used, m.Jain, m.Pause = share(m.Accepted, allowed-count[elsewhere]), jain(shares), max(m.Pause, to-last)
	swaps := count[swapped] + count[conflicted]
	m.StoreOps, m.Conflicts = share(count[loaded]+swaps, m.Accepted), share(count[conflicted], swaps)
	if slices.Sort(waits); len(waits) > 0 {
		m.P99 = waits[len(waits)*99/100]
	}
	return m
}

// jain returns Jain's fairness index: 1 if all n shares are equal, 1/n if one process has
// everything.
func jain(shares []int) float64 {
	sum, squares := 0, 0
	for _, n := range shares {
		sum += n
		squares += n * n
	}
	return share(sum*sum, len(shares)*squares)
}
