package pacer

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// call is an attempt that waits for its turn, and then the permit to send it.
type call struct {
	pacer    *Pacer // nil: nothing limits it
	kinds    kinds
	tenant   string
	came     int64
	deadline int64
	maxWait  int64 // until the limits let anybody go

	round    int           // tenants take turns, each with a call in every round
	waits    bool          // in the line
	answered chan struct{} // closed when it may be sent, or is refused; nil where it was at once
	err      error
	at       int64  // when it may be sent, by the state's clock
	early    int64  // it sleeps for so long, until then
	limit    string // that it waited for
	waited   int64

	key    string // of the limit that the outcome closed
	closed time.Duration
}

// newCall takes the attempt's clock for the pacer's.
func (p *Pacer) newCall(ctx context.Context, attempt agentmessaging.LimitedAttempt) *call {
	p.clock = cmp.Or(attempt.Clock, p.clock)
	c := &call{
		pacer: p, kinds: kindsOf(attempt), came: p.now(), deadline: math.MaxInt64,
		maxWait: cmp.Or(attempt.MaxWait, quota.DefaultMaxWait).Microseconds(),
	}
	c.tenant, _ = ctx.Value(tenantKey{}).(string)
	if deadline, has := ctx.Deadline(); has {
		c.deadline = c.came + time.Until(deadline).Microseconds()
	}
	return c
}

// wait is for the call's turn. A call whose context ends leaves the line, or
// gives its permit back.
func (p *Pacer) wait(ctx context.Context, q *queue, c *call) {
	p.outside(func() {
		select {
		case <-c.answered:
		case <-ctx.Done():
		}
	})
	if q.line.remove(c) {
		if c.err = ctx.Err(); q.line.waiting == 0 {
			q.wake()
		}
	}
	if c.err != nil {
		return
	}
	if c.early > 0 {
		clock := p.clock
		p.outside(func() { _ = clock.Sleep(ctx, time.Duration(c.early)*time.Microsecond) })
	}
	if c.err = ctx.Err(); c.err != nil {
		c.giveBack()
	}
}

// Waited is asked by the client, for what it tells of the call.
func (c *call) Waited() (limitKey string, wait time.Duration) {
	return c.limit, time.Duration(c.waited) * time.Microsecond
}

// Closed is asked by the client after Done.
func (c *call) Closed() (limitKey string, wait time.Duration) { return c.key, c.closed }

// Done: most outcomes teach nothing.
func (c *call) Done(outcome agentmessaging.AttemptOutcome) {
	refused, unsent := outcome.StatusCode == http.StatusTooManyRequests, outcome.StatusCode == 0 && !outcome.Sent
	if c.pacer == nil || !refused && !unsent {
		return
	}
	c.pacer.mu.Lock()
	defer c.pacer.mu.Unlock()
	if unsent {
		c.giveBack()
		return
	}
	c.refused(max(outcome.RetryAfter.Microseconds(), second), printable.Name(outcome.LimitKey))
}

func (c *call) giveBack() { c.pacer.report(func(m *machine) { m.giveBack(c.kinds, c.at) }) }

func (c *call) refused(wait int64, key string) {
	m := c.pacer.here(c.pacer.now())
	if m.Now+wait-max(m.Now, m.last(c.kinds).Told) >= second {
		c.key, c.closed = key, time.Duration(wait)*time.Microsecond
		m.shut(c.kinds, m.Now+wait, key) // before the store has it, so that the others know that it is no news
	}
	c.pacer.report(func(m *machine) { m.refused(c.kinds, c.at, wait, key) })
}
