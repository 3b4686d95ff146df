package pacer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// queue holds the waiting calls of a kind. While there are some, one goroutine
// asks for them; who gets a grant is decided when it comes.
type queue struct {
	class
	answer  // zero where the state keeps no place for it; due is 0 where it is out of date
	line    line
	serving bool
	wake    context.CancelFunc // ends the server's sleep
}

// enter gives a call a place in the line, or refuses it. Where nobody waits, a
// process that is on its own asks for it at once.
func (p *Pacer) enter(q *queue, c *call) {
	atOnce := !q.serving && p.onItsOwn(c.came)
	if atOnce {
		if q.answer = p.here(c.came).ask(q.class, 1); len(q.grants) > 0 {
			c.at, q.answer = q.grants[0], answer{}
			return
		}
	}
	if before := q.line.before(c.tenant); q.due > 0 && q.hopeless(c, before, c.came) {
		if q.refuse(c, before, c.came); atOnce {
			p.machine.withdraw(q.class)
			q.answer = answer{}
		}
		return
	}
	c.answered = make(chan struct{})
	if q.line.push(c); !q.serving {
		q.serving = true
		go p.serve(q)
	}
}

func (q *queue) hopeless(c *call, before int, now int64) bool {
	return q.opens-now > c.maxWait || max(now, q.turn(before)) > c.deadline
}

// turn is when a call goes that has so many before it. A burst makes the line
// slower until the window has room again.
func (q *queue) turn(before int) int64 {
	n := int64(before)
	return q.due + n*q.gap + min(n*q.extra, (mostAtOnce+3)*q.gap)
}

// wakeAll makes all queues ask anew: something has come free, or has closed.
func (p *Pacer) wakeAll() {
	for _, q := range p.queues {
		q.due = 0
		q.wake()
	}
}

// serve asks for the calls of a queue until none waits.
func (p *Pacer) serve(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q.line.waiting > 0 {
		if wait := p.untilDue(q); wait > 0 {
			ctx, wake := context.WithCancel(context.Background())
			q.wake = wake
			p.sleep(ctx, q, wait)
			wake()
		} else {
			p.ask(q)
		}
	}
	if q.limit != nil {
		p.report(func(m *machine) { m.withdraw(q.class) })
	}
	q.serving, q.answer = false, answer{}
}

// sleep waits by the clock. One that does not wait ends the calls: there is no other
// way to wait, and to ask without a pause would take a processor.
func (p *Pacer) sleep(ctx context.Context, q *queue, wait int64) {
	clock := p.clock
	var err error
	p.outside(func() {
		err = protect(func() error { return clock.Sleep(ctx, time.Duration(wait)*time.Microsecond) })
	})
	if err != nil && ctx.Err() == nil {
		q.fail(fmt.Errorf("the clock does not wait: %w", err))
	}
}

// fail ends the waiting calls.
func (q *queue) fail(err error) {
	for _, c := range q.line.all() {
		if q.line.remove(c) {
			c.err = err
			close(c.answered)
		}
	}
}

// untilDue is how long the queue has to wait before it asks: at most ten minutes,
// as a closed limit may open early.
func (p *Pacer) untilDue(q *queue) int64 {
	at := q.due - claimAhead*7/8 // the two clocks are compared with an error
	if p.fleet.down {
		at = min(q.due, p.fleet.retryAt)
	}
	return min(at-p.now(), 600*second)
}

// ask takes a step for the calls that wait. It hands the grants on, and refuses
// those who cannot go in time any more.
func (p *Pacer) ask(q *queue) {
	waits, got := int64(q.line.waiting), answer{}
	if err := p.step(func(m *machine) { got = m.ask(q.class, waits) }); err != nil {
		q.fail(err)
		return
	}
	now, granted := p.now(), int64(len(got.grants))
	isNew := q.due == 0 || got.due > q.due+granted*q.gap+q.gap/2
	q.answer = got
	for _, at := range got.grants {
		if q.line.waiting == 0 {
			p.report(func(m *machine) { m.giveBack(q.Kinds, at) })
			continue
		}
		c := q.line.pop()
		c.at, c.early = at, max(0, at-got.offset-now)
		if c.waited = now + c.early - c.came; c.waited > 0 {
			c.limit = q.key
		}
		close(c.answered)
	}
	if granted == waits {
		q.answer = answer{}
	} else if isNew {
		q.refuseHopeless(now)
	}
}

// refuseHopeless looks at all calls that wait.
func (q *queue) refuseHopeless(now int64) {
	before := 0
	for _, c := range q.line.all() {
		if !q.hopeless(c, before, now) {
			before++
		} else if q.line.remove(c) {
			q.refuse(c, before, now)
		}
	}
}

func (q *queue) refuse(c *call, before int, now int64) {
	wait := max(q.opens, q.turn(before)) - now
	c.err = &agentmessaging.Error{
		StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, LimitKey: q.key,
		RetryAfter: time.Duration(max(1, wait)) * time.Microsecond,
	}
	if c.answered != nil {
		close(c.answered)
	}
}
