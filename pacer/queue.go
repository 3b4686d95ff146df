package pacer

import (
	"context"
	"net/http"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// queue holds the waiting calls of a kind. While there are some, one goroutine
// asks for them; who gets a grant is decided when it comes. The pacer's lock
// guards it.
type queue struct {
	class
	answer  // zero where the state keeps no place for it; due is 0 where it is out of date
	line    line
	serving bool
	wake    context.CancelFunc // ends the server's sleep
}

// claimAhead is how long before a turn a process asks for it, which hides the
// way to the store.
const claimAhead = 250 * int64(1000)

// enter gives a call a place in the line, or refuses it. Where nobody waits, a
// process that is on its own asks for it at once. The lock is held.
func (p *Pacer) enter(q *queue, w *waiter) {
	atOnce := p.fleet.down && w.came < p.fleet.retryAt && !q.serving
	if atOnce {
		if q.answer = p.here(w.came).ask(q.class, 1); len(q.grants) > 0 {
			w.permit = permit{pacer: p, kinds: q.Kinds, at: q.grants[0]}
			q.answer = answer{}
			return
		}
	}
	if before := q.line.before(w.tenant); q.due > 0 && q.hopeless(w, before, w.came) {
		p.refuse(q, w, before, w.came)
		if atOnce {
			p.here(w.came).withdraw(q.class)
			q.answer = answer{}
		}
		return
	}
	w.answered = make(chan struct{})
	if q.line.push(w); !q.serving {
		q.serving = true
		go p.serve(q)
	}
}

// wait is for the call's turn. A call whose context ends leaves the line, or
// gives its permit back.
func (p *Pacer) wait(ctx context.Context, q *queue, w *waiter) {
	select {
	case <-w.answered:
	case <-ctx.Done():
		p.leave(ctx, q, w)
	}
	if w.err != nil {
		return
	}
	if w.permit.early > 0 {
		_ = w.clock.Sleep(ctx, time.Duration(w.permit.early)*time.Microsecond)
	}
	if w.err = ctx.Err(); w.err != nil {
		go w.permit.giveBack()
	}
}

func (p *Pacer) leave(ctx context.Context, q *queue, w *waiter) {
	p.locked(func() {
		if q.line.remove(w) {
			w.err = ctx.Err()
			if q.line.waiting == 0 {
				q.wake()
			}
		}
	})
}

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
// The lock is held.
func (p *Pacer) wakeAll() {
	for _, q := range p.queues {
		q.due = 0
		q.wake()
	}
}

// serve asks for the calls of a queue until none waits.
func (p *Pacer) serve(q *queue) {
	p.mu.Lock()
	for q.line.waiting > 0 {
		if wait, clock := p.untilDue(q), p.clock; wait > 0 {
			ctx, wake := context.WithCancel(context.Background())
			q.wake = wake
			p.mu.Unlock()
			_ = clock.Sleep(ctx, time.Duration(wait)*time.Microsecond) // what ended it does not matter
			wake()
		} else {
			waits, got := int64(q.line.waiting), answer{}
			p.mu.Unlock()
			p.step(func(m *machine) { got = m.ask(q.class, waits) }, func() { p.pass(q, waits, got) })
		}
		p.mu.Lock()
	}
	if q.limit != nil {
		go p.report(func(m *machine) { m.withdraw(q.class) })
	}
	q.serving, q.answer = false, answer{}
	p.mu.Unlock()
}

// untilDue is how long the queue has to wait before it asks: at most ten minutes,
// as a closed limit may open early. The lock is held.
func (p *Pacer) untilDue(q *queue) int64 {
	at := q.due
	switch {
	case at == 0:
	case p.fleet.down:
		at = min(at, p.fleet.retryAt)
	default:
		at -= claimAhead * 7 / 8 // the two clocks are compared with an error
	}
	return min(at-p.now(), 600*second)
}

// pass hands the grants on, and refuses those who cannot go in time any more.
// The lock is held.
func (p *Pacer) pass(q *queue, waits int64, got answer) {
	now, granted := p.now(), int64(len(got.grants))
	isNew := q.due == 0 || got.due > q.due+granted*q.gap+q.gap/2
	q.answer = got
	for _, at := range got.grants {
		leave := permit{pacer: p, kinds: q.Kinds, at: at, early: max(0, at-got.offset-now)}
		if q.line.waiting == 0 {
			go leave.giveBack()
			continue
		}
		w := q.line.pop()
		if leave.waited = now + leave.early - w.came; leave.waited > 0 {
			leave.limit = q.key
		}
		w.permit = leave
		close(w.answered)
	}
	if granted == waits {
		q.answer = answer{}
	} else if isNew {
		before := 0
		for _, w := range q.line.all() {
			if !q.hopeless(w, before, now) {
				before++
			} else if q.line.remove(w) {
				p.refuse(q, w, before, now)
			}
		}
	}
}

func (p *Pacer) refuse(q *queue, w *waiter, before int, now int64) {
	wait := max(q.opens, q.turn(before)) - now
	w.err = &agentmessaging.Error{
		StatusCode: http.StatusTooManyRequests, Code: spec.RateLimited, LimitKey: q.key,
		RetryAfter: time.Duration(max(1, wait)) * time.Microsecond,
	}
	if w.answered != nil {
		close(w.answered)
	}
}
