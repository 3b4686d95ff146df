package pacer

import (
	"log/slog"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// fleet is what a pacer knows of the store and the other processes. The pacer's
// lock guards it.
type fleet struct {
	offset int64 // what the state's clock is ahead of the pacer's
	took   int64 // how long a step takes

	down    bool      // there is no store, or it does not answer: the state is this process's share
	since   time.Time // when it went down
	retryAt int64     // when a step tries it again
	size    int64     // how many processes work on shares; 0: nobody knows, as the store was never seen
	seen    string    // the key of the value that was seen last

	late   float64 // the part of the last swaps for which another process was quicker
	warned bool
}

const (
	storeRetry = 1700 * int64(1000)
	mostLate   = 0.3        // of all swaps
	returnHold = 2 * second // the last process has found the store by then
	lonelyPart = 0.25       // of Max, for a process that knows of no other
)

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker.
// While the store is away, a step tries it every now and then. Once the step is
// taken it calls then, with the lock held.
func (p *Pacer) step(f func(*machine), then func()) {
	p.mu.Lock()
	now := p.now()
	here := p.fleet.down && now < p.fleet.retryAt
	if !here {
		p.fleet.retryAt = now + storeRetry
		p.mu.Unlock()
		err := p.stepShared(f)
		if here = err != nil; here {
			p.storeFailed(err)
		}
		p.mu.Lock()
	}
	if here {
		f(p.here(p.now()))
	}
	then()
	p.mu.Unlock()
}

// report takes a step that changes what the waiting calls were told. The
// caller does not wait for the store.
func (p *Pacer) report(f func(*machine)) {
	if p.store != nil {
		go p.step(f, p.wakeAll)
	} else {
		p.step(f, p.wakeAll)
	}
}

// bringIn adds to a loaded state what this process knows: that it is a member,
// and all else where it worked on another state, or a share. The lock is held.
func (p *Pacer) bringIn(l *loaded, began int64) {
	now := p.now()
	l.took = max(0, now-began)
	l.member, l.ahead, l.offset = p.member, max(claimAhead, 6*p.fleet.took), l.now-began-l.took/2
	l.Members[p.member] = l.now
	maps.DeleteFunc(l.Members, func(_, seen int64) bool { return seen < l.now-memberFor })
	if p.fleet.down && l.last(nothing).Opens == 0 { // others may still be on their shares
		l.shut(nothing, l.now+returnHold, "")
	}
	if p.fleet.down || l.lost || p.fleet.size > 0 && p.fleet.seen != l.key {
		l.join(p.here(now))
	}
}

// join brings in what a process knows: of each limit the fuller count holds. A
// level that was found by trial is a share, so it is left out.
func (m *machine) join(other *machine) {
	ahead := m.now - other.now
	for _, g := range other.Gates {
		m.shut(g.Kinds, g.Opens+ahead, g.Key)
	}
	m.Fresh = m.now
	for b := range m.budgets(everything) {
		for o := range other.budgets(b.counts) {
			if o.Key != b.Key || o.window != b.window {
				continue
			}
			if o.Sent > b.Sent {
				b.Begins, b.Sent, b.Most, b.Lasts = o.Begins+ahead, o.Sent, o.Most, o.Lasts
			}
			if calls := o.sent(); !b.isLong() && calls > b.sent() {
				b.even(min(calls, int64(b.allowed)-1))
			}
			if o.Corrected > 0 && o.Corrected+ahead > b.Corrected && o.max == b.max && !other.lonely {
				b.Level, b.Corrected, b.Quiet = o.Level, o.Corrected+ahead, o.Quiet+ahead
			}
		}
		b.pause(max(m.now, m.last(nothing).Opens))
	}
}

// storeAnswered notes that the store has taken a step, and logs what is new.
func (p *Pacer) storeAnswered(l *loaded) {
	var back, slow bool
	p.locked(func() {
		f := &p.fleet
		f.late -= f.late / 200
		back, slow = f.down, f.late > mostLate && !f.warned
		f.took += (2*l.took - f.took) / 4
		f.offset, f.down, f.size, f.seen, f.warned = l.offset, false, 1, l.key, f.warned || slow
		if l.key == p.key() { // else SetLimits came in between
			p.state = l.state
		}
		if back {
			p.wakeAll()
		}
	})
	if l.lost {
		p.logger.Warn("agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its clock was set back")
	}
	if back {
		p.logger.Info("agentmessaging pacer's store answers again")
	}
	if slow {
		p.logger.Warn("agentmessaging pacer's store is too far away for so many calls: part of the quota is not used; " +
			"use a store that is nearer, or fewer processes")
	}
}

// storeFailed goes on with a share of the limits, and logs that once.
func (p *Pacer) storeFailed(err error) {
	var isNew bool
	var processes int64
	p.locked(func() {
		if isNew = !p.fleet.down; isNew {
			p.beginShare()
			processes = p.fleet.size
		}
	})
	if isNew {
		p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
			slog.Int64("processes", processes), slog.String("error", scrub.Line(err.Error(), 256)))
	}
}

// beginShare makes the state this process's share: each call now counts once
// per known process, and the first goes when this process's ticket was due. A
// process that knows of no other begins with a part, and finds its share by
// refusals. The lock is held.
func (p *Pacer) beginShare() {
	p.fleet.down, p.fleet.since = true, time.Now()
	m := p.here(p.now())
	if !m.lonely {
		p.fleet.size = max(1, int64(len(m.Members)))
	}
	for b := range m.budgets(everything) {
		switch {
		case m.lonely:
			b.Level, b.Quiet = lonelyPart, m.now
		case !b.isLong():
			b.Due = max(b.Due-b.credit, m.turnOf(b.counts, p.fleet.size*b.pace))
		}
	}
	m.Tickets, m.Fresh = nil, m.now
	p.wakeAll()
}

// turnOf is when this process would have been next; by chance if it did not wait.
func (m *machine) turnOf(counts kinds, round int64) int64 {
	for _, t := range m.Tickets {
		if t.Member == m.member && t.Kinds&counts != 0 {
			return t.Due
		}
	}
	return m.now + rand.Int64N(round+1)
}
