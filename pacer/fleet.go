package pacer

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	madeHere   = 0          // Born of a state that was in no store
)

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker.
// While the store is away, a step tries it every now and then.
func (p *Pacer) step(f func(*machine)) {
	p.mu.Lock()
	if now := p.now(); !p.fleet.down || now >= p.fleet.retryAt {
		p.fleet.retryAt = now + storeRetry
		p.mu.Unlock()
		err := p.stepShared(f)
		if err == nil {
			return
		}
		p.lost(err)
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	f(p.here())
}

// loaded is a value of the store, ready to be changed and swapped.
type loaded struct {
	*machine
	key, version string
	value        []byte
	at           time.Time
	took         int64
	lost         error // why it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, until it is the quickest.
func (p *Pacer) stepShared(f func(*machine)) error {
	for range mostTries {
		l, err := p.load()
		if err != nil {
			return err
		}
		f(l.machine)
		longest := slices.MaxFunc(l.rules, func(a, b rule) int { return cmp.Compare(a.window, b.window) }).window
		var swapped bool
		value, ttl := l.encode(), time.Duration(2*longest)*time.Microsecond+time.Hour
		err = bounded(func(ctx context.Context) (err error) {
			swapped, err = p.store.Swap(ctx, l.key, l.version, value, ttl)
			return err
		})
		if err != nil {
			return err
		}
		if swapped {
			p.found(l)
			return nil
		}
		p.mu.Lock()
		p.fleet.late += (1 - p.fleet.late) / 200
		p.mu.Unlock()
		time.Sleep(time.Duration(rand.Int64N(l.took+1)) * time.Microsecond)
	}
	return errors.New("too many processes change the value at once")
}

// bounded calls the store, for storeWait at most whatever the store does.
func bounded(call func(context.Context) error) error {
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
	p.mu.Lock()
	l, rules, began := &loaded{key: p.key()}, p.rules, p.now()
	p.mu.Unlock()
	err := bounded(func(ctx context.Context) (err error) {
		l.value, l.version, l.at, err = p.store.Load(ctx, l.key)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := decode(l.value, len(rules))
	if err != nil {
		s = newState(rules, l.at.UnixMicro(), rand.Int64())
		if len(l.value) > 0 {
			l.lost = err
		} else if p.fleet.size > 0 && p.state.Born != madeHere {
			l.lost = errors.New("the store has lost the value")
		}
	}
	l.machine, l.took = s.at(rules, l.at.UnixMicro()), max(0, p.now()-began)
	l.offset = l.now - began - l.took/2
	if p.fleet.down && l.Gates.last(nothing).Opens == 0 { // others may still be on their shares
		l.Gates.shut(nothing, l.now+returnHold, "")
	}
	if p.fleet.down || p.fleet.size > 0 && p.state.Born != l.Born {
		l.join(p.here())
	}
	return l, nil
}

// join brings in what a process knows: of each limit the fuller count holds. A
// level that was found by trial is a share, so it is left out.
func (m *machine) join(other *machine) {
	ahead := m.now - other.now
	for k, g := range other.Gates {
		m.Gates.shut(k, g.Opens+ahead, g.Key)
	}
	m.Fresh = m.now
	for b := range m.spent(everything) {
		for o := range other.spent(b.counts) {
			if o.key != b.key || o.window != b.window || o.counts != b.counts {
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
		b.pause(max(m.now, m.Gates.last(nothing).Opens))
	}
}

// found notes that the store has taken a step, and says what is new about it.
func (p *Pacer) found(l *loaded) {
	p.mu.Lock()
	f := &p.fleet
	f.late -= f.late / 200
	back, slow := f.down, f.late > mostLate && !f.warned
	f.took += (2*l.took - f.took) / 4
	f.offset, f.down, f.size, f.warned = l.offset, false, 1, f.warned || slow
	if l.key == p.key() { // else SetLimits came in between
		l.Ahead = 0 // the offset includes it
		p.state = l.state
	}
	if back {
		p.wakeAll()
	}
	p.mu.Unlock()
	if l.lost != nil {
		p.logger.Warn("agentmessaging pacer begins the shared state afresh", slog.String("reason", l.lost.Error()))
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
	p.mu.Lock()
	if p.fleet.down {
		p.mu.Unlock()
		return
	}
	p.fleet.down, p.fleet.since = true, time.Now()
	m := p.here()
	if !m.lonely {
		p.fleet.size = max(1, int64(len(m.Members)))
	}
	processes := p.fleet.size
	for b := range m.spent(everything) {
		switch {
		case m.lonely:
			b.Level, b.Quiet = lonelyPart, m.now
		case !b.isLong():
			b.Due = max(b.Due-b.credit, m.turnOf(p.member, b.counts, processes*b.pace))
		}
	}
	m.Tickets, m.Fresh = nil, m.now
	p.wakeAll()
	p.mu.Unlock()
	p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int64("processes", processes), slog.String("error", scrub.Line(err.Error(), 256)))
}

// turnOf is when a process would have been next; by chance if it did not wait.
func (m *machine) turnOf(member int64, counts kinds, round int64) int64 {
	for _, t := range m.Tickets {
		if t.Member == member && t.Kinds&counts != 0 {
			return t.Due
		}
	}
	return m.now + rand.Int64N(round+1)
}
