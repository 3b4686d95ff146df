package loadsim

import (
	"cmp"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// arrivals come to a process at random. Somebody else does not wait.
func (w *World) arrivals(l Load, number int) {
	random, ends := source(w.Seed, number, 2), w.Starts+w.Warm+w.Span
	for n := 0; ; n++ {
		next := time.Duration(random.ExpFloat64() / l.PerMinute * float64(time.Minute))
		time.Sleep(min(next, ends-clock()))
		switch process := random.IntN(len(w.Fleet)); {
		case clock() >= ends:
			return
		case l.Class == Elsewhere:
			w.note(event{at: clock(), class: Elsewhere, accepted: w.service.call(Message, clock()) == 0})
		default:
			w.callers.Go(func() { w.newCaller(l, process, number, n).call() })
		}
	}
}

// caller makes calls one after the other.
type caller struct {
	Load
	world   *World
	process *Process
	index   int
	random  *rand.Rand
}

func (w *World) newCaller(l Load, process, number, worker int) *caller {
	l.Attempt = cmp.Or(l.Attempt, Message)
	return &caller{l, w, w.Fleet[process], process, source(w.Seed, number, process, worker)}
}

func (c *caller) loop() {
	for c.call() {
	}
}

// call makes a call, with as many attempts as it takes; false at the end.
func (c *caller) call() bool {
	ctx, began := c.process.ctx, clock()
	if c.Class == Batch {
		ctx = pacer.WithPriority(ctx, pacer.PriorityBatch)
	}
	for {
		permit, err := c.process.Acquire(ctx, c.Attempt)
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
	time.Sleep(draw(w.Latency, c.random))
	if !c.process.pass() {
		return got, false
	}
	got = agentmessaging.AttemptOutcome{StatusCode: http.StatusOK, Sent: true}
	if wait := w.service.call(c.Attempt, clock()); wait > 0 {
		got.StatusCode, got.LimitKey = http.StatusTooManyRequests, "theirs"
		got.RetryAfter = retryAfter(wait)
	}
	w.note(event{at: clock(), process: c.index, class: c.Class, accepted: got.StatusCode == http.StatusOK, wait: waited})
	time.Sleep(draw(w.Latency, c.random) + draw(w.Replies, c.random))
	return got, c.process.pass()
}
