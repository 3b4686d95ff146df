package fakeserver

import (
	"net/http"
	"net/netip"
	"time"
)

// world is the part of a Server that Reset forgets. The server's lock guards
// it.
type world struct {
	state
	resets int // counts the Resets before this world
	traces int
	log    ring[*record] // the calls that Calls returns

	scripts    rulebook[*Script]
	injections rulebook[*Injection]
	refusals   rulebook[*Injection] // of RefuseConnection, asked before a call is sent
}

// state is the memory of the service itself, which Snapshot copies.
type state struct {
	keys    map[digest]*apiKey
	agents  map[string]*agent
	ordered []*agent               // in the order of creation
	numbers int                    // the number of the last agent
	ips     map[netip.Addr]*counts // of client addresses

	byokUnavailable bool
}

func newWorld(c *config, now time.Time) *world {
	w := &world{state: newState()}
	w.issue(c, KeyOptions{Plan: c.plan}, now)
	return w
}

func newState() state {
	return state{
		keys:   map[digest]*apiKey{},
		agents: map[string]*agent{},
		ips:    map[netip.Addr]*counts{},
	}
}

// nextTrace returns the next trace identifier. The interface does not show
// their form; the fake counts.
func (w *world) nextTrace() string {
	w.traces++
	return numbered("trace", w.traces)
}

func (w *world) label(r *record) string {
	switch k := w.keys[r.token]; {
	case !r.hasKey:
		return labelMissing
	case k == nil:
		return labelUnknown
	default:
		return k.Label
	}
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
	fresh := newWorld(&s.config, s.now())
	s.locked(func(w *world) {
		fresh.resets = w.resets + 1
		s.world = fresh
	})
	s.reportUnused(unused, calls)
}

// now is the fake's time. UTC also drops the monotonic reading: readings of a
// synctest bubble and of the outside cannot be compared.
func (s *Server) now() time.Time { return s.config.clock().UTC().Add(time.Duration(s.offset.Load())) }

func (s *Server) date() string { return s.now().Format(http.TimeFormat) }

// move sets the offset of the clock. It reports false, and does nothing, if the
// clock would go back.
func (s *Server) move(to func(offset time.Duration) time.Duration) (moved bool) {
	s.held(func() {
		old := time.Duration(s.offset.Load())
		offset := to(old)
		if moved = offset >= old; moved {
			s.offset.Store(int64(offset))
			s.rouse()
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
// shortened. A client's cool-down ends by the client's clock: give the client
// agentmessaging.WithClock(fake). A negative d panics.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		misuse("Advance", "%v is negative; the clock only moves forward", d)
	}
	if !s.move(func(offset time.Duration) time.Duration { return offset + d }) {
		misuse("Advance", "%v more would be beyond what a time.Duration holds", d)
	}
}

// countsOf returns the windows of a call's address. Bubbles and the outside may
// share an address, but not a key: another clock resets an address in silence.
func (s *Server) countsOf(req *request) *counts {
	ips := req.world.ips
	if c := ips[req.ip]; c == nil || c.behind(req.now) {
		ips[req.ip] = newCounts(s.config.sliding)
	}
	return ips[req.ip]
}

// oneClock resets the key's limits when the clock has run backwards. Limits
// cannot work across two clocks: a wait from the year 2000 of a bubble until
// today would be 26 years.
func (s *Server) oneClock(req *request) {
	if req.key.counts.behind(req.now) {
		req.key.counts = newCounts(s.config.sliding)
		req.twoClocks = true
	}
}
