package pacer

import (
	"context"
	"slices"
	"time"
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
	line    line
	serving bool
	claimed int                // grants that are not yet due
	placed  bool               // the state keeps a place for it
	wake    context.CancelFunc // ends the server's sleep

	due   int64 // when the next turn is expected; 0: not known
	opens int64 // when the limits let somebody go
	gap   int64 // between turns
	extra int64 // and how much more it is after a burst
	limit int   // that keeps it waiting
}

const (
	// claimAhead is how long before a turn a process asks for it, which hides
	// the way to the store.
	claimAhead = 250 * int64(1000)
	// wakeAhead is a bit less, as the two clocks are compared with an error.
	wakeAhead = 220 * int64(1000)
	// longestSleep bounds a sleep of the server: a closed limit may open early.
	longestSleep = 600 * second
	longestWait  = 1 << 62
)

func (p *Pacer) queue(key queueKey) *queue {
	q := p.queues[key]
	if q == nil {
		q = &queue{queueKey: key}
		p.queues[key] = q
	}
	return q
}

// told notes an answer; offset is what the pacer's clock is behind the state's.
func (q *queue) told(got answer, offset int64) {
	q.due, q.opens, q.gap, q.extra, q.limit = got.due-offset, got.opens-offset, got.gap, got.extra, got.limit
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

// wakeUp ends the server's sleep. The lock is held.
func (q *queue) wakeUp() {
	if q.wake != nil {
		q.wake()
	}
}

// wakeAll makes all queues ask anew: something has come free, or has closed.
func (p *Pacer) wakeAll() {
	for _, q := range p.queues {
		q.due = 0
		q.wakeUp()
	}
}

// serve asks for the calls of a queue until each has a grant.
func (p *Pacer) serve(q *queue) {
	for {
		p.mu.Lock()
		if q.line.len() <= q.claimed {
			a, placed := p.question(q), q.placed
			q.serving, q.due, q.placed = false, 0, false
			p.mu.Unlock()
			if placed {
				p.step(func(m *machine) { m.withdraw(a) })
			}
			return
		}
		wait := p.untilAsk(q)
		if wait <= 0 {
			p.mu.Unlock()
			p.askFor(q)
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		clock := p.time.clock
		q.wake = cancel
		p.mu.Unlock()
		_ = clock.Sleep(ctx, time.Duration(wait)*time.Microsecond) // what ended it does not matter
		cancel()
	}
}

// untilAsk is how long the server sleeps; the lock is held.
func (p *Pacer) untilAsk(q *queue) int64 {
	if q.due == 0 {
		return 0
	}
	ahead := int64(0)
	if p.shared() {
		ahead = wakeAhead
	}
	return min(q.due-ahead-p.time.now(), longestSleep)
}

// question is what the queue asks.
func (p *Pacer) question(q *queue) ask {
	return ask{
		member: p.member, spread: p.spread.guard(), kinds: q.kinds, batch: q.batch,
		took: p.fleet.took, waits: int64(q.line.len() - q.claimed),
	}
}

// askFor asks once, and passes the answer on.
func (p *Pacer) askFor(q *queue) {
	p.mu.Lock()
	a := p.question(q)
	p.mu.Unlock()
	var got answer
	offset := p.step(func(m *machine) {
		if m.shared {
			a.ahead = claimAhead
		}
		got = m.ask(a)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	q.told(got, offset)
	q.placed = int64(got.n) < a.waits
	if !q.placed {
		q.due = 0
	}
	for _, g := range got.grants[:got.n] {
		q.claimed++
		p.deliver(q, g, g.at-offset)
	}
	p.refuseHopeless(q)
}

// deliver hands a grant to the first call when it is due. The lock is held.
func (p *Pacer) deliver(q *queue, g grant, due int64) {
	wait := due - p.time.now()
	if wait <= 0 {
		p.hand(q, g)
		return
	}
	clock, ctx := p.time.clock, p.busy()
	go func() {
		_ = clock.Sleep(ctx, time.Duration(wait)*time.Microsecond)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.hand(q, g)
	}()
}

// busy is a context that ends when no call waits. The lock is held.
func (p *Pacer) busy() context.Context {
	if p.idle == nil {
		p.atWork, p.idle = context.WithCancel(context.Background())
	}
	return p.atWork
}

// waiting counts the calls that wait. The lock is held.
func (p *Pacer) waiting() (n int) {
	for _, q := range p.queues {
		n += q.line.len()
	}
	return n
}

// hand gives a grant to the first call, or back. The lock is held.
func (p *Pacer) hand(q *queue, g grant) {
	q.claimed--
	leave := &permit{pacer: p, kinds: q.kinds, granted: g.at, probe: g.probe, sent: p.time.now()}
	if q.line.len() == 0 {
		go leave.giveBack()
		return
	}
	leave.limit = p.rules[min(q.limit, len(p.rules)-1)].key
	q.line.pop().ready <- &verdict{permit: leave}
	p.attend(q)
}

// attend starts the server where a call needs one, or lets it end. Where no
// call waits at all, it ends what else sleeps for them. The lock is held.
func (p *Pacer) attend(q *queue) {
	if p.idle != nil && p.waiting() == 0 {
		p.idle()
		p.idle = nil
	}
	if needed := q.line.len() > q.claimed; !needed {
		q.wakeUp()
	} else if !q.serving {
		q.serving = true
		go p.serve(q)
	}
}

// refuseHopeless refuses those who cannot go in time any more: the nearest
// deadlines first, and all where the limits have shut for longer than somebody
// would wait. The lock is held.
func (p *Pacer) refuseHopeless(q *queue) {
	if q.due == 0 {
		return
	}
	now := p.time.now()
	for len(q.line.deadlines.list) > 0 {
		w := q.line.deadlines.list[0]
		before := q.line.ranks.upTo(w.round) - 1
		if !q.hopeless(w, max(0, before-q.claimed), now) {
			break
		}
		p.refuse(q, w, now)
	}
	if q.opens-now > q.line.maxWait {
		p.refuseImpatient(q, now)
	}
	p.attend(q)
}

func (p *Pacer) refuse(q *queue, w *waiter, now int64) {
	err := p.refusal(q, max(0, q.line.ranks.upTo(w.round)-1), now)
	q.line.remove(w)
	w.ready <- &verdict{err: err}
}

func (p *Pacer) refuseImpatient(q *queue, now int64) {
	waiting := slices.Clone(q.line.turns.list)
	q.line.maxWait = longestWait
	for _, w := range waiting {
		if q.opens-now > w.maxWait {
			p.refuse(q, w, now)
		} else {
			q.line.maxWait = min(q.line.maxWait, w.maxWait)
		}
	}
}
