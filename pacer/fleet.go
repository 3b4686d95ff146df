package pacer

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// fleet is what a pacer knows of the others. The pacer's lock guards it.
type fleet struct {
	key    string
	seen   *state // what the store held last
	offset int64  // what the store's clock is ahead of the pacer's

	down    bool // the store is, and the pacer's local state a share
	since   time.Time
	looking bool
	retryAt int64
	took    int64 // a step
	size    int64 // how many processes share the limits meanwhile
	lonely  bool  // nobody knows

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
)

var errBusy = errors.New("too many processes change the value at once")

// step carries out f on the state that is shared, or on that of this process
// where there is no store or it is away. It returns what the state's clock is
// ahead of the pacer's.
func (p *Pacer) step(f func(*machine)) (offset int64) {
	if p.store != nil && p.present() {
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

// shared reports whether the next step goes to the store. The lock is held.
func (p *Pacer) shared() bool { return p.store != nil && !p.fleet.down }

// loaded is what the store holds, and the state in it.
type loaded struct {
	*machine
	key, version string
	value        []byte
	at           time.Time
	offset, took int64
	lost         error // why it begins afresh, though it was there before
}

// stepShared loads the state, changes it and swaps it, again where another
// process was quicker.
func (p *Pacer) stepShared(f func(*machine)) (int64, error) {
	for range mostTries {
		l, err := p.load()
		if err != nil {
			return 0, err
		}
		f(l.machine)
		swapped, err := bounded(func(ctx context.Context) (bool, error) {
			return p.store.Swap(ctx, l.key, l.version, l.encode(), l.ttl())
		})
		if err != nil {
			return 0, err
		}
		if p.count(swapped); swapped {
			p.found(l)
			return l.offset, nil
		}
		time.Sleep(time.Duration(rand.Int64N(l.took+1)) * time.Microsecond)
	}
	return 0, errBusy
}

// ttl keeps the value for longer than anything in it matters.
func (l *loaded) ttl() time.Duration {
	longest := hour
	for _, r := range l.rules {
		longest = max(longest, 2*r.window)
	}
	return time.Duration(longest)*time.Microsecond + time.Hour
}

// load is the store's state by now. What this process knows is brought in where
// the state is another than before, or the process returns from its share.
func (p *Pacer) load() (*loaded, error) {
	p.mu.Lock()
	key, rules, began := p.fleet.key, p.rules, p.time.now()
	p.mu.Unlock()
	l, err := bounded(func(ctx context.Context) (l *loaded, err error) {
		l = &loaded{key: key}
		l.value, l.version, l.at, err = p.store.Load(ctx, key)
		return l, err
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.took = p.time.now() - began
	now := l.at.UnixMicro()
	l.offset = now - began - l.took/2
	var s *state
	if len(l.value) > 0 {
		s, l.lost = decode(l.value, len(rules))
	}
	if s == nil {
		s = newState(rules, now, rand.Int64())
	}
	l.machine = s.at(rules, now)
	l.shared = true
	if mine := p.mine(); mine != nil && (p.fleet.down || mine.born != s.born) && len(mine.limits) == len(rules) {
		mine.move(rules, l.offset-p.fleet.offset) // until now its times were those of its own clock
		l.join(mine, p.fleet.down)
	}
	return l, nil
}

// mine is a copy of the state that this process has seen, or works on. A level
// that was found by trial is a share, and no level of all.
func (p *Pacer) mine() *state {
	known := p.fleet.seen
	if p.fleet.down {
		known = p.local
	}
	if known == nil {
		return nil
	}
	known = known.clone()
	for i := range known.limits {
		if l := &known.limits[i]; p.fleet.lonely {
			l.level, l.top, l.corrected = 0, 0, 0
		}
	}
	return known
}

func (s *state) clone() *state {
	c, _ := decode(s.encode(), len(s.limits))
	return c
}

// join brings in what a process knows that was away, or remembers more than the
// store: of each limit the fuller state holds. One that returns from its share
// lets nobody go for a moment, as others may still be on theirs.
func (m *machine) join(mine *state, returns bool) {
	other := mine.at(m.rules, m.now)
	for i := range m.rules {
		r, l, o := &m.rules[i], &m.limits[i], &other.limits[i]
		if o.long.sent > l.sent {
			l.long = o.long
		}
		guard := m.guard(r)
		if calls := o.forget(r, m.now, guard); !r.long() && calls > l.forget(r, m.now, guard) {
			l.even(r, m.now, guard, min(calls, int64(l.allowed(r, m.now))-1))
		}
		if o.corrected > l.corrected && m.calls == 1 {
			l.level, l.top, l.corrected, l.quiet = o.level, o.top, o.corrected, o.quiet
		}
	}
	for _, g := range other.gates {
		m.shut(g.kinds, g.opens, g.key)
	}
	if returns && m.now > m.opens+10*second {
		m.opens = m.now + returnHold
	}
	m.fresh = m.now
	m.resume(1)
}

// found notes that the store has taken a step.
func (p *Pacer) found(l *loaded) {
	p.mu.Lock()
	f := &p.fleet
	back, lost := f.down, l.lost
	f.took += (2*l.took - f.took) / 4
	if lost == nil && f.seen != nil && f.seen.born != newSet && l.version == "" {
		lost = errLost
	}
	if l.key == f.key { // else SetLimits came in between
		f.seen = l.state
	}
	f.offset, f.down, f.looking, f.lonely = l.offset, false, false, false
	if back {
		p.local = nil
		p.wakeAll()
	}
	p.mu.Unlock()
	if lost != nil {
		p.logger.Warn("agentmessaging pacer begins the shared state afresh", slog.String("reason", lost.Error()))
	}
	if back {
		p.logger.Info("agentmessaging pacer's store answers again")
	}
}

// newSet is the born of a state that SetLimits has carried over to another value.
const newSet = 0

var errLost = errors.New("the store has lost the value")

// present reports whether the store is to be asked. While it is away, it is
// looked for beside the calls, so that none of them waits for it.
func (p *Pacer) present() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookOut()
	return !p.fleet.down
}

// lookOut starts a look-out, if none is under way. The lock is held.
func (p *Pacer) lookOut() {
	if f := &p.fleet; f.down && !f.looking && p.waiting() > 0 {
		f.looking = true
		go p.look(p.busy())
	}
}

// look asks for the store until it is back, or no call waits.
func (p *Pacer) look(ctx context.Context) {
	for (realClock{}).Sleep(ctx, p.untilLook()) == nil {
		p.mu.Lock()
		a := ask{member: p.member, spread: p.spread.guard()}
		p.fleet.retryAt = p.time.now() + storeRetry + rand.Int64N(storeRetry/4)
		p.mu.Unlock()
		if _, err := p.stepShared(func(m *machine) { m.note(a) }); err == nil {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fleet.looking = false
}

func (p *Pacer) untilLook() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(max(0, p.fleet.retryAt-p.time.now())) * time.Microsecond
}

// lost goes on without the store, and says so once.
func (p *Pacer) lost(err error) {
	p.mu.Lock()
	if p.fleet.down {
		p.mu.Unlock()
		return
	}
	p.fleet.down, p.fleet.since = true, time.Now()
	p.fleet.retryAt = p.time.now() + storeRetry + rand.Int64N(storeRetry/4)
	p.lookOut()
	p.local = p.share(p.time.now() + p.fleet.offset)
	processes := p.fleet.size
	p.wakeAll()
	p.mu.Unlock()
	p.logger.Warn("agentmessaging pacer's store does not answer; working on a share of the limits",
		slog.Int64("processes", processes), slog.String("error", oneLine(err.Error(), 256)))
}

// share is the state of a process that works alone for a while: its calls count
// for all, and begin when it would have been its turn. The lock is held.
func (p *Pacer) share(now int64) *state {
	f := &p.fleet
	if f.seen == nil {
		return p.trial(now)
	}
	s := f.seen.clone()
	m := s.at(p.rules, now)
	f.size, f.lonely = max(1, int64(len(s.members))), false
	s.tickets = slices.DeleteFunc(s.tickets, func(t ticket) bool { return t.member != p.member })
	for i := range m.rules {
		if r, l := &m.rules[i], &m.limits[i]; !r.long() {
			pace := l.pace(r, m.now, m.guard(r))
			l.due = max(l.due-l.credit(r, m.now, m.guard(r), true), s.turn(r, m.now+rand.Int64N(f.size*pace+1)))
		}
	}
	s.fresh = m.now
	return s
}

// turn is when the process's next turn would have been, or otherwise.
func (s *state) turn(r *rule, otherwise int64) int64 {
	for _, t := range s.tickets {
		if t.kinds&r.counts != 0 {
			return t.due
		}
	}
	return otherwise
}

// trial is the state of a process that knows of no other: it begins with a part
// and finds its share by refusals.
func (p *Pacer) trial(now int64) *state {
	p.fleet.size, p.fleet.lonely = 1, true
	s := newState(p.rules, now, 0)
	for i, r := range p.rules {
		if l := &s.limits[i]; !r.long() {
			l.level, l.corrected, l.quiet = max(1, r.max/lonelyPart), 1, now
		}
	}
	return s
}

// count says once that the store is too slow for what is asked of it.
func (p *Pacer) count(swapped bool) {
	p.mu.Lock()
	f := &p.fleet
	if f.steps++; !swapped {
		f.conflicts++
	}
	slow := !f.warned && f.steps >= slowAfter && f.conflicts*100 > f.steps*slowPercent
	conflicts := f.conflicts * 100 / f.steps
	f.warned = f.warned || slow
	if f.steps >= slowAfter {
		f.steps, f.conflicts = 0, 0
	}
	p.mu.Unlock()
	if slow {
		p.logger.Warn("agentmessaging pacer's store is too far away for so many calls: part of the quota is not used; "+
			"use a store that is nearer, or fewer processes", slog.Int("percent of swaps that failed", conflicts))
	}
}

// bounded calls the store, for storeWait at most whatever the store does.
func bounded[T any](call func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := call(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
