package pacer

import (
	"context"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// queueKey names the calls of a process that wait for the same.
type queueKey struct {
	kinds kinds
	batch bool
}

// queue holds the waiting calls of a kind. While there are some, one goroutine
// asks for them; who gets a grant is decided when it comes. The pacer's lock
// guards it.
type queue struct {
	queueKey
	forecast // by the pacer's clock; due is 0 where it is out of date
	line     line
	serving  bool
	placed   bool               // the state keeps a place for it
	wake     context.CancelFunc // ends the server's sleep
}

// claimAhead is how long before a turn a process asks for it, which hides the
// way to the store.
const claimAhead = 250 * int64(1000)

// enter gives a call a place in the line, or refuses it. A process on its own
// asks at once.
func (p *Pacer) enter(q *queue, w *waiter) {
	if before, now := q.line.before(w.tenant), p.time.now(); q.due > 0 && q.hopeless(w, before, now) {
		p.refuse(q, w, before, now)
		return
	}
	q.line.push(w)
	if p.fleet.down && w.came < p.fleet.retryAt && !q.serving {
		a, m := p.question(q), p.here()
		if p.pass(q, a, m.ask(a), p.fleet.offset); q.line.waiting == 0 {
			m.withdraw(a)
			q.due, q.placed = 0, false
		}
	}
	if q.line.waiting > 0 && !q.serving {
		q.serving = true
		go p.serve(q)
	}
}

// hopeless reports whether a call that has so many before it cannot go in time.
func (q *queue) hopeless(w *waiter, before int, now int64) bool {
	return q.opens-now > w.maxWait || w.deadline > 0 && max(now, q.turn(before)) > w.deadline
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
		if q.wake != nil {
			q.wake()
		}
	}
}

// serve asks for the calls of a queue until each has a grant.
func (p *Pacer) serve(q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for q.line.waiting > 0 {
		if wait := p.untilAsk(q); wait > 0 {
			p.sleep(q, wait)
			continue
		}
		a := p.question(q)
		var got answer
		p.mu.Unlock()
		offset := p.step(func(m *machine) { got = m.ask(a) })
		p.mu.Lock()
		p.pass(q, a, got, offset)
	}
	if a := p.question(q); q.placed {
		go p.report(func(m *machine) { m.withdraw(a) })
	}
	q.serving, q.due, q.placed = false, 0, false
}

// sleep gives the lock away meanwhile.
func (p *Pacer) sleep(q *queue, wait int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clock := p.time.clock
	q.wake = cancel
	p.mu.Unlock()
	defer p.mu.Lock()
	_ = clock.Sleep(ctx, time.Duration(wait)*time.Microsecond) // what ended it does not matter
}

// untilAsk is how long the server sleeps. It looks again after ten minutes, as a
// closed limit may open early.
func (p *Pacer) untilAsk(q *queue) int64 {
	at := q.due
	switch {
	case at == 0:
	case p.fleet.down:
		at = min(at, p.fleet.retryAt)
	default:
		at -= claimAhead * 7 / 8 // the two clocks are compared with an error
	}
	return min(at-p.time.now(), 600*second)
}

// question asks for the calls that wait now.
func (p *Pacer) question(q *queue) ask {
	a := ask{member: p.member, kinds: q.kinds, batch: q.batch, took: p.fleet.took, waits: int64(q.line.waiting)}
	if !p.fleet.down {
		a.ahead = claimAhead
	}
	return a
}

// pass hands the grants on, of a clock that is so much ahead of the pacer's.
func (p *Pacer) pass(q *queue, a ask, got answer, offset int64) {
	now, granted := p.time.now(), int64(got.n)
	isNew := q.due == 0 || got.due-offset > q.due+granted*q.gap+q.gap/2
	q.forecast = got.forecast
	q.due, q.opens = got.due-offset, got.opens-offset
	for _, at := range got.grants[:got.n] {
		leave := permit{pacer: p, kinds: q.kinds, at: at, early: max(0, at-offset-now)}
		if q.line.waiting == 0 {
			go leave.giveBack()
			continue
		}
		w := q.line.pop()
		if leave.waited = now + leave.early - w.came; leave.waited > 0 {
			leave.limit = p.keyOf(q)
		}
		w.permit = leave
		close(w.answered)
	}
	if q.placed = granted < a.waits; !q.placed {
		q.due = 0
	} else if isNew {
		p.refuseHopeless(q, now)
	}
}

// keyOf names the limit that keeps the queue waiting.
func (p *Pacer) keyOf(q *queue) string { return p.rules[min(q.limit, len(p.rules)-1)].key }

// refuseHopeless refuses those who cannot go in time any more.
func (p *Pacer) refuseHopeless(q *queue, now int64) {
	before := 0
	for _, w := range q.line.all() {
		if !q.hopeless(w, before, now) {
			before++
			continue
		}
		q.line.remove(w)
		p.refuse(q, w, before, now)
	}
}

// refuse answers a call that has so many before it with a 429.
func (p *Pacer) refuse(q *queue, w *waiter, before int, now int64) {
	wait := max(q.opens, q.turn(before)) - now
	w.err = &agentmessaging.Error{
		StatusCode: http.StatusTooManyRequests, Code: "rate_limited", LimitKey: p.keyOf(q),
		RetryAfter: time.Duration(max(1, wait)) * time.Microsecond,
	}
	close(w.answered)
}
