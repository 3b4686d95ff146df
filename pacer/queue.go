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
// asks for them; who gets a grant is decided when it comes.
type queue struct {
	queueKey
	forecast // by the pacer's clock; due is 0 where it is out of date
	line     line
	serving  bool
	placed   bool               // the state keeps a place for it
	wake     context.CancelFunc // ends the server's sleep
}

const (
	// claimAhead is how long before a turn a process asks for it, which hides
	// the way to the store.
	claimAhead = 250 * int64(1000)
	// wakeAhead is a bit less, as the two clocks are compared with an error.
	wakeAhead = 220 * int64(1000)
	// longestSleep bounds a sleep of the server: a closed limit may open early.
	longestSleep = 600 * second
	// defaultMaxWait is agentmessaging.RetryPolicy's.
	defaultMaxWait = 90 * time.Second
)

func (p *Pacer) queue(key queueKey) *queue {
	q := p.queues[key]
	if q == nil {
		q = &queue{queueKey: key}
		p.queues[key] = q
	}
	return q
}

// told notes a forecast of a clock that is so much ahead of the pacer's.
func (q *queue) told(f forecast, offset int64) {
	f.due, f.opens = f.due-offset, f.opens-offset
	q.forecast = f
}

func (q *queue) known(now int64) bool { return q.due > 0 && (q.due >= now-second || q.line.len() > 0) }

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
// The lock is held.
func (p *Pacer) wakeAll() {
	for _, q := range p.queues {
		q.due = 0
		if q.wake != nil {
			q.wake()
		}
	}
}

// attend starts the server where calls wait, or lets it end. The lock is held.
func (p *Pacer) attend(q *queue) {
	switch {
	case q.line.len() == 0 && q.wake != nil:
		q.wake()
	case q.line.len() > 0 && !q.serving:
		q.serving = true
		go p.serve(q)
	}
}

// serve asks for the calls of a queue until each has a grant.
func (p *Pacer) serve(q *queue) {
	for {
		p.mu.Lock()
		a := p.question(q)
		if a.waits == 0 {
			placed := q.placed
			q.serving, q.due, q.placed = false, 0, false
			p.mu.Unlock()
			if placed {
				p.report(func(m *machine) { m.withdraw(a) })
			}
			return
		}
		wait, clock := p.untilAsk(q), p.time.clock
		ctx, cancel := context.WithCancel(context.Background())
		q.wake = cancel
		p.mu.Unlock()
		if wait <= 0 {
			p.askFor(q, a)
		} else {
			_ = clock.Sleep(ctx, time.Duration(wait)*time.Microsecond) // what ended it does not matter
		}
		cancel()
	}
}

// untilAsk is how long the server sleeps; the lock is held.
func (p *Pacer) untilAsk(q *queue) int64 {
	at := q.due
	switch {
	case q.due == 0:
	case p.shared():
		at -= wakeAhead
	case p.store != nil:
		at = min(at, p.fleet.retryAt)
	}
	return min(at-p.time.now(), longestSleep)
}

// question asks for the calls that wait now. The lock is held.
func (p *Pacer) question(q *queue) ask {
	a := ask{
		member: p.member, spread: p.spread.guard(), kinds: q.kinds, batch: q.batch,
		took: p.fleet.took, waits: int64(q.line.len()),
	}
	if p.shared() {
		a.ahead = claimAhead
	}
	return a
}

// askFor asks once, and passes the answer on.
func (p *Pacer) askFor(q *queue, a ask) {
	var got answer
	offset := p.step(func(m *machine) { got = m.ask(a) })
	p.mu.Lock()
	defer p.mu.Unlock()
	granted := int64(got.n)
	expected := q.due + granted*q.gap + q.gap/2
	isNew := q.due == 0 || got.due-offset > expected
	q.told(got.forecast, offset)
	for _, g := range got.grants[:got.n] {
		p.hand(q, g, g.at-offset)
	}
	if isNew {
		p.refuseHopeless(q)
	}
	if q.placed = granted < a.waits; !q.placed {
		q.due = 0
	}
}

// hand gives a grant to the call whose turn it is. The lock is held.
func (p *Pacer) hand(q *queue, g grant, due int64) {
	leave := &permit{pacer: p, kinds: q.kinds, grant: g, due: due, limit: p.keyOf(q)}
	if q.line.len() == 0 {
		go leave.giveBack()
		return
	}
	w := q.line.pop()
	w.permit = leave
	close(w.answered)
}

// keyOf names the limit that keeps the queue waiting.
func (p *Pacer) keyOf(q *queue) string { return p.rules[min(q.limit, len(p.rules)-1)].key }

// refuseHopeless refuses those who cannot go in time any more. The lock is held.
func (p *Pacer) refuseHopeless(q *queue) {
	now, before := p.time.now(), 0
	for _, w := range q.line.all() {
		if !q.hopeless(w, before, now) {
			before++
			continue
		}
		q.line.remove(w)
		w.err = p.refusal(q, before, now)
		close(w.answered)
	}
}

// refusal is the 429 of a call that has so many before it.
func (p *Pacer) refusal(q *queue, before int, now int64) error {
	wait := max(q.opens, q.turn(before)) - now
	return &agentmessaging.Error{
		StatusCode: http.StatusTooManyRequests, Code: "rate_limited", LimitKey: p.keyOf(q),
		RetryAfter: time.Duration(max(1, wait)) * time.Microsecond,
	}
}
