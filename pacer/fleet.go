package pacer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// fleet is what a pacer knows of the store and the other processes. The pacer's
// lock guards it.
type fleet struct {
	offset int64 // what the state's clock is ahead of the pacer's
	took   int64 // how long a step takes

	down    bool      // the store does not answer: the state is a share
	since   time.Time // when it went down
	retryAt int64     // when a step tries it again
	size    int64     // how many processes work on shares, or 1; 0: nobody knows, as the store was never seen

	late   float64 // the part of the last swaps for which another process was quicker
	warned bool
}

const (
	storeWait  = 250 * time.Millisecond
	storeRetry = 1500 * int64(1000) // and up to a quarter more
	mostTries  = 20
	lonelyPart = 4 // a process that knows of no other begins with such a part
	mostLate   = 0.3
	returnHold = 2 * second // the last process has found the store by then
)

// carriedOver is the Born of a state that SetLimits has made of another.
const carriedOver = 0

var errBusy = errors.New("too many processes change the value at once")

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker.
// It returns how far the state's clock is ahead of the pacer's.
func (p *Pacer) step(f func(*machine)) (offset int64) {
	if p.tries() {
		offset, err := p.stepShared(f)
		if err == nil {
			return offset
		}
		p.lost(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.here())
	return p.fleet.offset
}

// tries reports whether a step goes to the store: while that is away, one does
// every now and then.
func (p *Pacer) tries() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.time.now(); p.fleet.down && now >= p.fleet.retryAt {
		p.fleet.retryAt = now + storeRetry + rand.Int64N(storeRetry/4)
		return true
	}
	return p.shared()
}

// shared reports whether the state is the store's. The lock is held.
func (p *Pacer) shared() bool { return p.store != nil && !p.fleet.down }

// loaded is a value of the store, ready to be changed and swapped.
type loaded struct {
	*machine
	key, version string
	offset, took int64
	lost         error // why it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, until it is the quickest.
func (p *Pacer) stepShared(f func(*machine)) (offset int64, err error) {
	for range mostTries {
		l, err := p.load()
		if err != nil {
			return 0, err
		}
		f(l.machine)
		var swapped bool
		err = bounded(func(ctx context.Context) (err error) {
			swapped, err = p.store.Swap(ctx, l.key, l.version, l.encode(), l.ttl())
			return err
		})
		if err != nil {
			return 0, err
		}
		if p.swapped(l, swapped); swapped {
			return l.offset, nil
		}
		time.Sleep(time.Duration(rand.Int64N(l.took+1)) * time.Microsecond)
	}
	return 0, errBusy
}

// ttl keeps the value for longer than anything in it matters.
func (m *machine) ttl() time.Duration {
	longest := hour
	for _, r := range m.rules {
		longest = max(longest, 2*r.window)
	}
	return time.Duration(longest)*time.Microsecond + time.Hour
}

// load reads the store's state, and brings in what this process knows: if that
// is another state, or a share.
func (p *Pacer) load() (*loaded, error) {
	p.mu.Lock()
	l := &loaded{key: p.key()}
	rules, began := p.rules, p.time.now()
	p.mu.Unlock()
	var value []byte
	var at time.Time
	err := bounded(func(ctx context.Context) (err error) {
		value, l.version, at, err = p.store.Load(ctx, l.key)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.state
	s, err := decode(value, len(rules))
	if err != nil {
		s = newState(rules, at.UnixMicro(), rand.Int64())
		if len(value) > 0 {
			l.lost = err
		} else if mine != nil && mine.Born != carriedOver {
			l.lost = errLost
		}
	}
	l.machine = s.at(rules, at.UnixMicro())
	l.took = p.time.now() - began
	l.offset = l.now - began - l.took/2
	if mine != nil && (p.fleet.down || mine.Born != l.Born) && len(mine.Limits) == len(rules) {
		l.join(p.here(), &p.fleet)
	}
	return l, nil
}

// join brings in what a process knows and the store does not: of each limit the
// fuller count holds. A level that was found by trial is a share, so it is left
// out. After an outage nobody goes for a moment, since others may still be on
// their shares.
func (m *machine) join(other *machine, f *fleet) {
	ahead := m.now - other.now
	for b := range m.spent(everything) {
		o := other.budget(b.index)
		if o.Sent > b.Sent {
			b.Begins, b.Sent, b.Most, b.Lasts = o.Begins+ahead, o.Sent, o.Most, o.Lasts
		}
		if calls := o.sent(); !b.isLong() && calls > b.sent() {
			b.even(min(calls, int64(b.allowed)-1))
		}
		if o.Corrected > 0 && o.Corrected+ahead > b.Corrected && f.size > 0 {
			b.Level, b.Corrected, b.Quiet = o.Level, o.Corrected+ahead, o.Quiet+ahead
		}
	}
	for k, g := range other.Gates {
		m.Gates.shut(k, g.Opens+ahead, g.Key)
	}
	if f.down && m.Gates.opens(nothing) == 0 {
		m.Gates.shut(nothing, m.now+returnHold, "")
	}
	m.Fresh = m.now
	m.resume(1)
}

// swapped notes that the store has taken a step, or that another process was
// quicker, and says what is new about it.
func (p *Pacer) swapped(l *loaded, swapped bool) {
	p.mu.Lock()
	f := &p.fleet
	f.late -= f.late / 200
	if !swapped {
		f.late += 1.0 / 200
		p.mu.Unlock()
		return
	}
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

// lost goes on without the store, and says so once.
func (p *Pacer) lost(err error) {
	p.mu.Lock()
	if p.fleet.down {
		p.mu.Unlock()
		return
	}
	p.fleet.down, p.fleet.since = true, time.Now()
	p.fleet.retryAt = p.time.now() + storeRetry
	if p.fleet.size > 0 {
		p.share()
	} else {
		p.trial()
	}
	processes := p.fleet.size
	p.wakeAll()
	p.mu.Unlock()
	p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int64("processes", processes), slog.String("error", scrub.Line(err.Error(), 256)))
}

// share makes the state the one of a process that works alone for a while: its
// calls count for all, and begin when it would have been its turn.
func (p *Pacer) share() {
	m := p.here()
	p.fleet.size = max(1, int64(len(m.Members)))
	for b := range m.spent(everything) {
		if b.isLong() {
			continue
		}
		turn := m.now + rand.Int64N(p.fleet.size*b.pace+1)
		for _, t := range m.Tickets {
			if t.Member == p.member && t.Kinds&b.counts != 0 {
				turn = t.Due
			}
		}
		b.Due = max(b.Due-b.credit(), turn)
	}
	m.Tickets, m.Fresh = nil, m.now
}

// trial is the state of a process that knows of no other: it begins with a part
// and finds its share by refusals.
func (p *Pacer) trial() {
	p.fleet.size = 0
	m := p.here()
	for b := range m.spent(everything) {
		b.Level, b.Quiet = 1.0/lonelyPart, m.now
	}
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
