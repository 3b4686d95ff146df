package fakeserver

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// world is the part of a Server that Reset forgets. The server's lock guards
// it.
type world struct {
	state
	resets int // counts the Resets before this world
	traces int
	log    callLog

	scripts    rulebook[*Script]
	injections rulebook[*Injection]
	refusals   rulebook[*Injection] // of RefuseConnection, asked before a call is sent
}

// state is the memory of the service itself, which Snapshot copies.
type state struct {
	keys    map[digest]*apiKey
	agents  map[string]*agent
	ordered []*agent // in the order of creation
	numbers int      // the number of the last agent
	ips     map[netip.Addr]*counts
	sweepAt int // at so many addresses sweep drops those whose windows have closed

	byokUnavailable bool
}

func newWorld(c config, now time.Time) *world {
	w := &world{state: newState(), log: callLog{limit: c.callLimit}}
	w.issue(c, KeyOptions{Plan: c.plan}, now)
	return w
}

func newState() state {
	return state{
		keys:    map[digest]*apiKey{},
		agents:  map[string]*agent{},
		ips:     map[netip.Addr]*counts{},
		sweepAt: minSweep,
	}
}

// nextTrace returns the next trace identifier. The interface does not show
// their form; the fake counts.
func (w *world) nextTrace() string {
	w.traces++
	return numbered("trace", w.traces)
}

// Reset brings the fake back to the state after New. The default key keeps its
// text and is valid. Every other key, agent, configuration, limit, script,
// injection and recorded call is forgotten, and identifiers start again at 1. A
// call that is under way ends on the old state, and its record is forgotten
// with it. The clock keeps what Advance has added, since it must not run
// backwards. Reset reports required scripts and injections that were not used
// until now.
func (s *Server) Reset() {
	unused, calls := s.rules(), s.records()
	fresh := newWorld(s.config, s.now())
	s.locked(func(w *world) {
		fresh.resets = w.resets + 1
		s.world = fresh
	})
	s.reportUnused(unused, calls)
}

// clock is a fake's time, and those who wait for it.
type clock struct {
	read    func() time.Time // time.Now or WithClock
	offset  atomic.Int64     // nanoseconds that Advance and Sleep have added
	touches atomic.Int64     // counts the calls that arrive, the answers, and the beginnings and ends of Sleep

	// lineMu guards what follows, and writes of offset. It is not the server's lock,
	// since sleepers take it all the time, which must not hold up calls.
	lineMu   sync.Mutex
	sleepers []*sleeper // in the order in which they wake
}

func (c *clock) inLine(f func()) {
	c.lineMu.Lock()
	defer c.lineMu.Unlock()
	f()
}

// now is the fake's time. UTC also drops the monotonic reading: readings of a
// synctest bubble and of the outside cannot be compared.
func (c *clock) now() time.Time { return c.read().UTC().Add(time.Duration(c.offset.Load())) }

// move sets the offset, and wakes those for whom something has changed. It
// reports false, and does nothing, if the clock would go back.
func (c *clock) move(to func(time.Duration) time.Duration) (moved bool) {
	c.inLine(func() {
		old := c.offset.Load()
		offset := int64(to(time.Duration(old)))
		if moved = offset >= old; moved {
			c.offset.Store(offset)
			c.rouse()
		}
	})
	return moved
}

// Now returns the fake's time in UTC: time.Now or WithClock, and what Advance
// and Sleep have added.
func (s *Server) Now() time.Time { return s.now() }

// Advance moves the fake's clock forward by d. Windows of limits close, and the
// times in later answers, the Date header included, are later by d. It ends
// each Sleep whose time has come. Other waits, such as a Latency, are not
// shortened. A negative d panics.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		misuse("Advance", "%v is negative; the clock only moves forward", d)
	}
	if !s.move(func(offset time.Duration) time.Duration { return offset + d }) {
		misuse("Advance", "%v more would be beyond what a time.Duration holds", d)
	}
}

// countsOf returns the windows of a client address. Each time the number of
// addresses has doubled, those whose windows have closed are dropped. So memory
// follows the addresses in use, and no call pays for a scan.
func (w *world) countsOf(ip netip.Addr, now time.Time, sliding bool) *counts {
	c := w.ips[ip]
	// Bubbles and the outside may share an address, but not a key. So another clock
	// resets an address in silence.
	if c == nil || c.behind(now) {
		w.sweep(now)
		c = newCounts(sliding)
		w.ips[ip] = c
	}
	return c
}

// minSweep is the number of addresses that are kept in any case.
const minSweep = 1024

func (w *world) sweep(now time.Time) {
	if len(w.ips) < w.sweepAt {
		return
	}
	for ip, c := range w.ips {
		if c.closed(now) {
			delete(w.ips, ip)
		}
	}
	w.sweepAt = max(minSweep, 2*len(w.ips))
}
