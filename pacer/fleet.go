package pacer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
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
	storeWait  = 250 * time.Millisecond
	storeRetry = 1700 * int64(1000)
	mostTries  = 20
	mostLate   = 0.3        // of all swaps
	lonelyPart = 0.25       // of Max, for a process that knows of no other
	returnHold = 2 * second // the last process has found the store by then
)

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker.
// While the store is away, a step tries it every now and then. The lock is held,
// but given away while the store works.
func (p *Pacer) step(f func(*machine)) {
	if now := p.now(); !p.fleet.down || now >= p.fleet.retryAt {
		p.fleet.retryAt = now + storeRetry
		err := p.stepShared(f)
		if err == nil {
			return
		}
		p.lost(err)
	}
	f(p.here(p.now()))
}

// loaded is a value of the store, ready to be changed and swapped.
type loaded struct {
	machine
	key, version string
	took         int64
	lost         bool // it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, until it is the quickest.
func (p *Pacer) stepShared(f func(*machine)) error {
	for range mostTries {
		l, err := p.load()
		if err != nil {
			return err
		}
		f(&l.machine)
		longest := slices.MaxFunc(l.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).window
		var swapped bool
		err = p.bounded(func(ctx context.Context) (err error) {
			swapped, err = p.store.Swap(ctx, l.key, l.version, l.encode(), time.Duration(2*longest)*time.Microsecond+time.Hour)
			return err
		})
		if err != nil {
			return err
		}
		if swapped {
			p.found(l)
			return nil
		}
		p.fleet.late += (1 - p.fleet.late) / 200
		_ = p.bounded(func(context.Context) error {
			time.Sleep(time.Duration(rand.Int64N(l.took+1)) * time.Microsecond)
			return nil
		})
	}
	return errors.New("too many processes change the value at once")
}

// bounded gives the lock away for a call of the store, which has storeWait
// whatever the store does.
func (p *Pacer) bounded(call func(context.Context) error) error {
	p.mu.Unlock()
	defer p.mu.Lock()
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// load reads the store's state, and brings in what this process knows: if that
// is another state, or a share.
func (p *Pacer) load() (*loaded, error) {
	l, rules, began := &loaded{key: p.key()}, p.rules, p.now()
	var value []byte
	var at time.Time
	err := p.bounded(func(ctx context.Context) (err error) {
		value, l.version, at, err = p.store.Load(ctx, l.key)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := decode(value, len(rules))
	if s == nil || at.UnixMicro() < s.Now-setBack {
		s = newState(rules, at.UnixMicro())
		l.lost = len(value) > 0 || p.fleet.seen == l.key
	}
	now := p.now()
	l.machine, l.took = s.at(rules, at.UnixMicro()), max(0, now-began)
	l.member, l.ahead, l.offset = p.member, max(claimAhead, 6*p.fleet.took), l.now-began-l.took/2
	l.Members[p.member] = l.now
	maps.DeleteFunc(l.Members, func(_, seen int64) bool { return seen < l.now-memberFor })
	if p.fleet.down && l.last(nothing).Opens == 0 { // others may still be on their shares
		l.shut(nothing, l.now+returnHold, "")
	}
	if p.fleet.down || l.lost || p.fleet.size > 0 && p.fleet.seen != l.key {
		l.join(p.here(now))
	}
	return l, nil
}

// join brings in what a process knows: of each limit the fuller count holds. A
// level that was found by trial is a share, so it is left out.
func (m *machine) join(other *machine) {
	ahead := m.now - other.now
	for _, g := range other.Gates {
		m.shut(g.Kinds, g.Opens+ahead, g.Key)
	}
	m.Fresh = m.now
	for b := range m.spent(everything) {
		for o := range other.spent(b.counts) {
			if o.Key != b.Key || o.window != b.window || o.counts != b.counts {
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

// found notes that the store has taken a step, and says what is new about it.
func (p *Pacer) found(l *loaded) {
	f := &p.fleet
	f.late -= f.late / 200
	back, slow := f.down, f.late > mostLate && !f.warned
	f.took += (2*l.took - f.took) / 4
	f.offset, f.down, f.size, f.seen, f.warned = l.offset, false, 1, l.key, f.warned || slow
	if l.key == p.key() { // else SetLimits came in between
		p.state = l.state
	}
	if back {
		p.wakeAll()
	}
	p.mu.Unlock()
	defer p.mu.Lock()
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

// lost goes on with a share of the limits, and says so once: the calls of this
// process count for all, and begin when it would have been its turn. One that
// knows of no other begins with a part, and finds its share by refusals.
func (p *Pacer) lost(err error) {
	if p.fleet.down {
		return
	}
	p.fleet.down, p.fleet.since = true, time.Now()
	m := p.here(p.now())
	if !m.lonely {
		p.fleet.size = max(1, int64(len(m.Members)))
	}
	processes := p.fleet.size
	for b := range m.spent(everything) {
		switch {
		case m.lonely:
			b.Level, b.Quiet = lonelyPart, m.now
		case !b.isLong():
			b.Due = max(b.Due-b.credit, m.turnOf(b.counts, processes*b.pace))
		}
	}
	m.Tickets, m.Fresh = nil, m.now
	p.wakeAll()
	p.mu.Unlock()
	defer p.mu.Lock()
	p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int64("processes", processes), slog.String("error", scrub.Line(err.Error(), 256)))
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
