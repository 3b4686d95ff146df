package pacer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// fleet is what a pacer knows of the store and the other processes.
type fleet struct {
	offset int64 // what the state's clock is ahead of the pacer's
	took   int64 // how long a step takes

	down    bool      // there is no store, or it does not answer: the state is this process's share
	since   time.Time // when it went down; zero: it answers, or there is none
	retryAt int64     // when a step tries it again
	seen    string    // the key of the value that was seen last

	late   float64 // the part of the last swaps for which another process was quicker
	warned bool
}

const (
	claimAhead = 250 * int64(1000) // before its turn a process asks for it, which hides the way to the store
	storeRetry = 1700 * int64(1000)
	mostLate   = 0.3        // of all swaps
	returnHold = 2 * second // the last process has found the store by then
	lonelyPart = 0.25       // of Max, for a process that knows of no other
)

// onItsOwn reports whether steps do without the store for now.
func (p *Pacer) onItsOwn(now int64) bool { return p.fleet.down && now < p.fleet.retryAt }

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker. A
// store that panics is an error for those who wait: nobody knows what it has done.
func (p *Pacer) step(f func(*machine)) error {
	if now := p.now(); !p.onItsOwn(now) {
		p.fleet.retryAt = now + storeRetry
		err := p.stepShared(f)
		if err == nil || errors.Is(err, errPanic) {
			return err
		}
		p.storeFailed(err)
	}
	f(p.here(p.now()))
	return nil
}

// report takes a step that changes what the waiting calls were told. The
// caller does not wait for the store.
func (p *Pacer) report(f func(*machine)) {
	if p.store != nil {
		go func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := p.step(f); err != nil {
				p.storeFailed(err)
			}
			p.wakeAll()
		}()
		return
	}
	_ = p.step(f) // without a store nothing fails
	p.wakeAll()
}

// join brings in what a process knows: of each limit the fuller count holds. A
// level that was found by trial is a share, so it is left out.
func (m *machine) join(other *machine) {
	ahead := m.Now - other.Now
	for _, g := range other.Gates {
		m.shut(g.Kinds, g.Told+ahead, g.Key)
	}
	m.Fresh = m.Now
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
		b.pause(max(m.Now, m.last(nothing).Opens))
	}
}

// storeAnswered goes on from the state that the store has taken.
func (p *Pacer) storeAnswered(l *loaded) {
	f := &p.fleet
	f.late -= f.late / 200
	back, slow := f.down, f.late > mostLate && !f.warned
	f.offset, f.down, f.since, f.seen, f.warned = l.offset, false, time.Time{}, l.key, f.warned || slow
	if l.key == p.key() { // else SetLimits came in between
		p.machine.state = l.state
	}
	if back {
		p.wakeAll()
		p.log(slog.LevelInfo, "agentmessaging pacer's store answers again")
	}
	if l.lost {
		p.log(slog.LevelWarn, "agentmessaging pacer begins the shared state afresh: the store has lost it, holds something else, or its clock was set back")
	}
	if slow {
		p.log(slog.LevelWarn, "agentmessaging pacer's store is too far away for so many calls: part of the quota is not used; "+
			"use a store that is nearer, or fewer processes")
	}
}

// storeFailed makes the state this process's share: each call now counts once
// per known process, and the first goes when this process's ticket was due. A
// process that knows of no other begins with a part, and finds its share by
// refusals.
func (p *Pacer) storeFailed(err error) {
	if p.fleet.down {
		return
	}
	m := p.here(p.now())
	for b := range m.budgets(everything) {
		switch {
		case m.lonely:
			b.Level, b.Quiet = lonelyPart, m.Now
		case !b.isLong():
			b.Due = max(b.Due-b.credit, m.turnOf(b.counts, int64(len(m.Members))*b.pace))
		}
	}
	m.Tickets, m.Fresh = nil, m.Now
	p.fleet.down, p.fleet.since = true, time.Now()
	p.wakeAll()
	p.log(slog.LevelWarn, "agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int("processes", len(m.Members)), slog.String("error", printable.Line(err.Error(), 256)))
}

// turnOf is when this process would have been next; by chance if it did not wait.
func (m *machine) turnOf(counts kinds, round int64) int64 {
	for _, t := range m.Tickets {
		if t.Member == m.member && t.Kinds&counts != 0 {
			return t.Due
		}
	}
	return m.Now + rand.Int64N(round+1)
}

func (p *Pacer) log(level slog.Level, message string, attrs ...slog.Attr) {
	p.outside(func() { p.logger.LogAttrs(context.Background(), level, message, attrs...) })
}
