package pacer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/scrub"
)

// fleet holds what a pacer knows of the other processes. The pacer's lock guards
// it.
type fleet struct {
	seen   *state // what the store held last
	offset int64  // what the store's clock is ahead of the pacer's
	took   int64  // how long a step takes

	down    bool      // the store does not answer: the local state is a share
	since   time.Time // when it went down
	retryAt int64     // when a step tries it again
	size    int64     // how many processes share the limits meanwhile
	lonely  bool      // the store was never seen: nobody knows how many

	steps, conflicts int
	warned           bool
}

const (
	storeWait   = 250 * time.Millisecond
	storeRetry  = 1500 * int64(1000) // and up to a quarter more
	mostTries   = 20
	lonelyPart  = 4 // a process that knows of no other begins with such a part
	slowAfter   = 200
	slowPercent = 30
	returnHold  = 2 * second // the last process has found the store by then
)

// carriedOver is the Born of a state that SetLimits has made of another.
const carriedOver = 0

var errBusy = errors.New("too many processes change the value at once")

// step applies f to the shared state or, without a store that answers, to the
// state of this process. It applies f again where another process was quicker.
// It returns how far the state's clock is ahead of the pacer's.
func (p *Pacer) step(f func(*machine)) (offset int64) {
	if p.present() {
		offset, err := p.stepShared(f)
		if err == nil {
			return offset
		}
		p.lost(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p.here(p.time.now() + p.fleet.offset))
	return p.fleet.offset
}

// present reports whether there is a store, and it answers. While it is away,
// some step tries it every now and then, beside the calls.
func (p *Pacer) present() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.time.now(); p.fleet.down && now >= p.fleet.retryAt {
		p.fleet.retryAt = now + storeRetry + rand.Int64N(storeRetry/4)
		a := ask{member: p.member, spread: p.spread.guard()}
		go p.stepShared(func(m *machine) { m.note(a) })
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
		if swapped {
			p.found(l)
			return l.offset, nil
		}
		p.mu.Lock()
		p.fleet.conflicts++
		p.mu.Unlock()
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

// load reads the store's state, and brings in what this process knows.
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
	now := at.UnixMicro()
	l.took = p.time.now() - began
	l.offset = now - began - l.took/2
	s, err := decode(value, len(rules))
	if err != nil {
		s, l.lost = newState(rules, now, rand.Int64()), p.loss(value, err)
	}
	l.machine = s.at(rules, now)
	p.bringIn(l)
	return l, nil
}

// loss says why a state begins afresh that was there before; nil if it was not.
func (p *Pacer) loss(value []byte, err error) error {
	if len(value) > 0 {
		return err
	}
	if mine := p.mine(); mine != nil && mine.Born != carriedOver {
		return errLost
	}
	return nil
}

// bringIn joins what this process knows to another state than before, or to the
// store's when the process returns from its share. The lock is held.
func (p *Pacer) bringIn(l *loaded) {
	mine := p.mine()
	isOther := mine != nil && (p.fleet.down || mine.Born != l.Born)
	if isOther && len(mine.Limits) == len(l.rules) {
		mine = mine.clone()
		mine.move(l.offset - p.fleet.offset) // until now its times were those of its own clock
		l.join(mine.at(l.rules, l.now), &p.fleet)
	}
}

// mine is the state that this process works on, or has seen in the store.
func (p *Pacer) mine() *state {
	if p.store == nil || p.fleet.down {
		return p.local
	}
	return p.fleet.seen
}

// join brings in what a process knows and the store does not: of each limit the
// fuller count holds. A level that was found by trial is a share, so it is left
// out. After an outage nobody goes for a moment, since others may still be on
// their shares.
func (m *machine) join(other *machine, f *fleet) {
	for b := range m.spent(everything) {
		o := other.budget(b.index)
		if o.Sent > b.Sent {
			b.long = o.long
		}
		if calls := o.sent(); !b.isLong() && calls > b.sent() {
			b.even(min(calls, int64(b.allowed)-1))
		}
		if o.Corrected > b.Corrected && !f.lonely {
			b.Level, b.Top, b.Corrected, b.Quiet = o.Level, o.Top, o.Corrected, o.Quiet
		}
	}
	for _, g := range other.Gates {
		m.Gates.shut(g.Kinds, g.Opens, g.Key)
	}
	if f.down && m.Gates.opens(nothing) == 0 {
		m.Gates.shut(nothing, m.now+returnHold, "")
	}
	m.Fresh = m.now
	m.resume(1)
}

// found notes that the store has taken a step, and says what is new about it.
func (p *Pacer) found(l *loaded) {
	p.mu.Lock()
	f := &p.fleet
	back := f.down
	f.took += (2*l.took - f.took) / 4
	if l.key == p.key() { // else SetLimits came in between
		f.seen = l.state
	}
	f.offset, f.down, f.lonely, f.size = l.offset, false, false, 1
	if back {
		p.wakeAll()
	}
	slow := f.tooSlow()
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

// tooSlow is true once, when too many of the last steps had to be repeated.
func (f *fleet) tooSlow() bool {
	if f.steps++; f.steps < slowAfter {
		return false
	}
	slow := !f.warned && f.conflicts*100 > (f.steps+f.conflicts)*slowPercent
	f.steps, f.conflicts, f.warned = 0, 0, f.warned || slow
	return slow
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
	p.local = p.share(p.time.now() + p.fleet.offset)
	processes := p.fleet.size
	p.wakeAll()
	p.mu.Unlock()
	p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int64("processes", processes), slog.String("error", scrub.Line(err.Error(), 256)))
}

// share is the state of a process that works alone for a while: its calls count
// for all, and begin when it would have been its turn. The lock is held.
func (p *Pacer) share(now int64) *state {
	if p.fleet.seen == nil {
		return p.trial(now)
	}
	s := p.fleet.seen.clone()
	m := s.at(p.rules, now)
	size := max(1, int64(len(m.Members)))
	p.fleet.size, p.fleet.lonely = size, false
	m.Tickets = slices.DeleteFunc(m.Tickets, func(t ticket) bool { return t.Member != p.member })
	for b := range m.spent(everything) {
		if b.isLong() {
			continue
		}
		turn := m.now + rand.Int64N(size*b.pace+1)
		for _, t := range m.Tickets {
			if t.Kinds&b.counts != 0 {
				turn = t.Due
			}
		}
		b.Due = max(b.Due-b.credit(), turn)
	}
	m.Fresh = m.now
	return s
}

// trial is the state of a process that knows of no other: it begins with a part
// and finds its share by refusals.
func (p *Pacer) trial(now int64) *state {
	p.fleet.size, p.fleet.lonely = 1, true
	s := newState(p.rules, now, 0)
	for i, r := range p.rules {
		if l := &s.Limits[i]; !r.isLong() {
			l.Level, l.Corrected, l.Quiet = max(1, r.max/lonelyPart), 1, now
		}
	}
	return s
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
