package agentmessaging

import (
	"context"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// lane are the calls of a process that spend the same limits. One of them at a
// time has a place in the queue of limits or fleet; who gets the grant is
// decided when it comes. While there are waiting calls one goroutine asks for
// all of them.
type lane struct {
	spends  quota.Set
	id      uint64 // of the ask that is under way; 0: none
	waiting []*waiter
	serving bool
	kick    chan struct{} // ends the server's sleep

	passed       int // grants to interactive calls while a batch call waited
	askedAsBatch bool
	due          time.Duration // when to ask again
	opens        time.Duration // when the next grant is expected; 0: not known
	alone        time.Duration // when it would be if nobody were before
	gap          time.Duration // between grants from then on
	limit        int           // that keeps the lane waiting
}

// waiter is one call that waits.
type waiter struct {
	batch    bool
	deadline time.Duration // as time left when it came; as a time of the pacer's clock from then on
	maxWait  time.Duration // until the limits let anybody go
	ready    chan verdict  // holds one
}

type verdict struct {
	permit Permit
	err    error
}

const noDeadline = time.Duration(1<<63 - 1)

func untilDeadline(ctx context.Context) time.Duration {
	if deadline, has := ctx.Deadline(); has {
		return time.Until(deadline)
	}
	return noDeadline
}

// later is t and d more, or noDeadline where that is too long.
func later(t, d time.Duration) time.Duration {
	if t > noDeadline-d {
		return noDeadline
	}
	return t + d
}

// batchTurn is that of so many grants one goes to a batch call that waits, if
// interactive ones would take them all.
const batchTurn = 8

// next is who gets the grant: the first, interactive ones being before batch ones.
func (l *lane) next() int {
	batch := slices.IndexFunc(l.waiting, func(w *waiter) bool { return w.batch })
	if batch <= 0 {
		l.passed = 0
		return 0
	}
	if l.passed++; l.passed < batchTurn {
		return 0
	}
	l.passed = 0
	return batch
}

// enter gives the waiter its verdict at once, or a place in its lane.
func (p *Pacer) enter(spends quota.Set, w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.deadline = later(w.deadline, p.clock.now())
	l := p.lane(spends)
	l.add(w)
	switch {
	case l.serving:
		p.refuseHopeless(l)
		if len(l.waiting) == 0 || l.askedAsBatch && !l.waiting[0].batch {
			l.wake()
		}
	case p.fleet == nil && p.askHere(l):
	default:
		l.serving, l.kick = true, make(chan struct{}, 1)
		go p.serve(l)
	}
}

// askHere asks without a goroutine, and reports whether nobody waits after it.
func (p *Pacer) askHere(l *lane) bool {
	step := p.ask(l)
	p.settle(l, step, p.doHere(step))
	if len(l.waiting) > 0 {
		return false
	}
	if l.id != 0 {
		p.doHere(p.withdraw(l))
	}
	return true
}

func (p *Pacer) lane(spends quota.Set) *lane {
	l := p.lanes[spends]
	if l == nil {
		l = &lane{spends: spends}
		p.lanes[spends] = l
	}
	return l
}

// add keeps waiting in order.
func (l *lane) add(w *waiter) {
	at := len(l.waiting)
	for at > 0 && l.waiting[at-1].batch && !w.batch {
		at--
	}
	l.waiting = slices.Insert(l.waiting, at, w)
}

// leave takes out a waiter whose context has ended. Had it been given a permit
// at the same moment, the permit goes back.
func (p *Pacer) leave(spends quota.Set, w *waiter) {
	p.mu.Lock()
	l := p.lane(spends)
	at := slices.Index(l.waiting, w)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		if len(l.waiting) == 0 {
			l.wake()
		}
	}
	p.mu.Unlock()
	if at >= 0 {
		return
	}
	if v := <-w.ready; v.permit != nil {
		v.permit.Done(AttemptOutcome{})
	}
}

// wake makes the lane's server ask at once. The lock is held.
func (l *lane) wake() {
	if !l.serving {
		return
	}
	l.due = 0
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// wake makes all servers ask at once: something has come free, or has closed.
func (p *Pacer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		l.wake()
	}
}

// serve asks for the lane's waiting calls until there are none.
func (p *Pacer) serve(l *lane) {
	for {
		sleep, more := p.serveOnce(l)
		if !more {
			return
		}
		timer := time.NewTimer(sleep)
		select {
		case <-timer.C:
		case <-l.kick:
			timer.Stop()
		}
	}
}

// serveOnce asks until told to wait, and reports whether anybody waits.
func (p *Pacer) serveOnce(l *lane) (sleep time.Duration, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(l.waiting) > 0 {
		if sleep := l.due - p.clock.now(); sleep > 0 {
			return sleep, true
		}
		step := p.ask(l)
		answer := p.doUnlocked(step)
		if unused := p.settle(l, step, answer); unused {
			step.Kind = quota.Unused
			p.doUnlocked(step)
		}
	}
	if l.id != 0 {
		p.doUnlocked(p.withdraw(l))
	}
	if len(l.waiting) > 0 { // one came in the meantime
		return 0, true
	}
	l.serving = false
	return 0, false
}

// doUnlocked is do for one who holds the lock: it is let go meanwhile.
func (p *Pacer) doUnlocked(step quota.Step) quota.Answer {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.do(step)
}

// ask is the step that asks for the lane's first.
func (p *Pacer) ask(l *lane) quota.Step {
	if l.id == 0 {
		p.calls++
		l.id = uint64(p.member)<<32 | uint64(p.calls)
	}
	l.askedAsBatch = l.waiting[0].batch
	return quota.Step{Kind: quota.Ask, Limits: p.limits, Spends: l.spends, ID: l.id, Batch: l.askedAsBatch}
}

func (p *Pacer) withdraw(l *lane) quota.Step {
	step := quota.Step{Kind: quota.Unused, Limits: p.limits, Spends: l.spends, ID: l.id}
	l.id, l.due, l.opens = 0, 0, 0 // what was told is not for those who come later
	return step
}

// settle gives a grant to who is first by now, and reports whether nobody is
// there. Told to wait, it refuses those for whom that is too long.
func (p *Pacer) settle(l *lane, step quota.Step, answer quota.Answer) (unused bool) {
	now := p.clock.now()
	if !answer.Granted {
		l.opens, l.alone, l.gap, l.limit = now+answer.Wait, now+answer.Alone, answer.Gap, answer.Limit
		l.due = now + min(answer.Wait, pacing.Patience)
		p.refuseHopeless(l)
		if step.Batch && len(l.waiting) > 0 && !l.waiting[0].batch {
			l.due = now // an interactive call came while it was asked
		}
		return false
	}
	l.id, l.due, l.opens = 0, 0, 0
	if len(l.waiting) == 0 {
		return true
	}
	at := l.next()
	first := l.waiting[at]
	l.waiting = slices.Delete(l.waiting, at, at+1)
	first.ready <- verdict{permit: &pacerPermit{pacer: p, step: step, probe: answer.Probe}}
	return false
}

// refuseHopeless refuses those whose turn would come after their deadline, or
// for whom nobody's turn comes soon enough.
func (p *Pacer) refuseHopeless(l *lane) {
	if l.opens == 0 {
		return
	}
	now, turn := p.clock.now(), l.opens
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		if turn <= w.deadline && l.alone-now <= w.maxWait {
			turn = later(turn, l.gap)
			return false
		}
		w.ready <- verdict{err: refusal(p.limits[l.limit].Key, turn-now)}
		return true
	})
}
