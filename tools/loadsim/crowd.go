package loadsim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Crowd is programs on one API key that use the client as it comes, without a
// Pacer. All their 429s name the same limit.
type Crowd struct {
	Model    Model
	Limits   []pacer.Limit // nil: 60 a minute
	Programs int           // 0: one
	Groups   []Group       // of callers, in each program
	Latency  time.Duration // to the service, each way, in the median
	Replies  time.Duration // what an accepted call takes beyond that, in the median
	Span     time.Duration // after which nobody begins a call; 0: all calls are made
	Options  []agentmessaging.Option
	Seed     uint64
}

// Group is callers who make the same calls.
type Group struct {
	Callers int
	Calls   int // that each makes, one after the other; 0: until the span is over
	Begin   time.Duration
	Every   time.Duration // between two calls
	Call    func(context.Context, *agentmessaging.Client) error
}

// Calls of a Group.
var (
	SendMessage = func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.SendMessage(ctx, "agent", agentmessaging.MessageParams{Text: "Hello"})
		return err
	}
	GetAgent = func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.GetAgent(ctx, "agent")
		return err
	}
	CreateAgent = func(ctx context.Context, c *agentmessaging.Client) error {
		_, err := c.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
		return err
	}
)

// Outcome is what a group's calls came to.
type Outcome struct {
	Done, Lost   int
	Longest      time.Duration // of a call that was carried out
	Last         time.Duration // when the last call ended, since the begin
	Requests     int           // of all groups
	Refused      int           // of them
	LongestPause time.Duration // of all groups, without an accepted request
}

// Play plays it in a bubble, and returns the outcome of each group.
func (c Crowd) Play() []Outcome {
	if c.Limits == nil {
		c.Limits = []pacer.Limit{{Max: 60, Window: time.Minute}}
	}
	wire := &wire{Crowd: c, service: c.Model.service(c.Limits...), random: source(c.Seed)}
	time.Sleep(time.Duration(wire.random.Int64N(int64(time.Minute)))) // a moment of the clock's window
	outcomes, began := make([]Outcome, len(c.Groups)), clock()
	wire.last = began
	var callers sync.WaitGroup
	for range max(1, c.Programs) {
		client, err := agentmessaging.NewClient("https://service.invalid", Key,
			append([]agentmessaging.Option{agentmessaging.WithHTTPClient(&http.Client{Transport: wire})}, c.Options...)...)
		if err != nil {
			panic(err)
		}
		for i, g := range c.Groups {
			for range g.Callers {
				callers.Go(func() { wire.caller(client, g, &outcomes[i], began) })
			}
		}
	}
	callers.Wait()
	for i := range outcomes {
		outcomes[i].Requests, outcomes[i].Refused, outcomes[i].LongestPause = wire.requests, wire.refused, wire.pause
	}
	return outcomes
}

// wire is the transport of all programs, and the service behind it.
type wire struct {
	Crowd
	service *service

	mu                sync.Mutex
	random            *rand.Rand
	requests, refused int
	last, pause       time.Duration
}

func (w *wire) caller(client *agentmessaging.Client, g Group, o *Outcome, began time.Duration) {
	time.Sleep(g.Begin)
	for n := 0; (g.Calls == 0 || n < g.Calls) && (w.Span == 0 || clock() < began+w.Span); n++ {
		at := clock()
		err := g.Call(context.Background(), client)
		w.mu.Lock()
		if o.Last = clock() - began; err == nil {
			o.Done, o.Longest = o.Done+1, max(o.Longest, clock()-at)
		} else {
			o.Lost++
		}
		w.mu.Unlock()
		time.Sleep(g.Every)
	}
}

// RoundTrip answers as the service does.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.sleep(w.Latency)
	attempt := agentmessaging.LimitedAttempt{Method: req.Method, Path: strings.Replace(req.URL.Path, "/agents/agent", "/agents/{agent_id}", 1)}
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}}
	body := `{"reply_text": "Hi", "agent_id": "agent", "status": "active", "trace_id": "t"}`
	wait := w.service.call(attempt, clock())
	w.count(wait > 0)
	if wait > 0 {
		answer.StatusCode, body = http.StatusTooManyRequests, `{"error": "rate_limited", "limit_key": "theirs"}`
		answer.Header.Set("Retry-After", fmt.Sprint(retryAfter(wait).Seconds()))
	} else {
		w.sleep(w.Replies)
	}
	answer.Body = io.NopCloser(strings.NewReader(body))
	w.sleep(w.Latency)
	return answer, nil
}

func (w *wire) count(refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.requests++; refused {
		w.refused++
		return
	}
	w.pause, w.last = max(w.pause, clock()-w.last), clock()
}

func (w *wire) sleep(median time.Duration) {
	w.mu.Lock()
	d := draw(median, w.random)
	w.mu.Unlock()
	time.Sleep(d)
}
