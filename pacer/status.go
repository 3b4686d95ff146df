package pacer

import "time"

// State is what a [Pacer] knows at a moment: of a fleet, what its last step saw.
type State struct {
	Limits []LimitState
	// Interactive and Batch count the calls that wait in this process.
	Interactive, Batch int
	// Processes is how many took a step within the last two minutes; 1 without
	// a store. While the store is away, as many as were seen last, and 0 where
	// it was never seen.
	Processes int
	// StoreDown is since when the store does not answer; zero if it does, or
	// there is none.
	StoreDown time.Time
}

// LimitState is the state of one limit.
type LimitState struct {
	Limit
	// Used counts the calls of the last window. For limits of an hour or more,
	// those since the window's supposed begin.
	Used int
	// Level is how many calls a window is thought to hold: Max, or what
	// refusals have taught.
	Level float64
	// ClosedFor is how long calls wait that spend the limit alone; 0 if they
	// do not. ClosedBy says why: the limit_key of the refusal, or the words
	// "used up".
	ClosedFor time.Duration
	ClosedBy  string
}

// State returns what the pacer knows. It calls nobody.
func (p *Pacer) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, now := p.view()
	s := State{Processes: len(m.members)}
	if p.store == nil {
		s.Processes = 1
	}
	if p.fleet.down {
		s.Processes, s.StoreDown = int(p.fleet.size), p.fleet.since
		if p.fleet.lonely {
			s.Processes = 0
		}
	}
	for i, l := range p.limits {
		s.Limits = append(s.Limits, m.limitState(i, l, now))
	}
	for key, q := range p.queues {
		if key.batch {
			s.Batch += q.line.len()
		} else {
			s.Interactive += q.line.len()
		}
	}
	return s
}

// view is a copy of the state. The lock is held.
func (p *Pacer) view() (*machine, int64) {
	now := p.time.now() + p.fleet.offset
	known := p.fleet.seen
	if p.store == nil || p.fleet.down {
		known = p.local
	}
	if known == nil {
		known = newState(p.rules, now, 0)
	}
	return known.clone().at(p.rules, now), now
}

func (m *machine) limitState(i int, limit Limit, now int64) LimitState {
	r, l := &m.rules[i], &m.limits[i]
	s := LimitState{Limit: limit, Level: r.max, Used: int(l.sent)}
	opens := int64(0)
	if r.long() {
		l.roll(now)
		opens, _ = l.long.next(r, now, 0)
	} else {
		s.Used, s.Level = int(l.forget(r, now, m.guard(r))), l.allowed(r, now)
		opens = l.short.next(r, now, m.guard(r), 0, m.calls == 1)
	}
	if opens > now {
		s.ClosedBy = "used up"
	}
	for _, g := range m.gates {
		if g.kinds&r.counts != 0 && g.kinds&^(r.counts|request) == 0 && g.opens > opens {
			opens, s.ClosedBy = g.opens, g.key
		}
	}
	s.ClosedFor = time.Duration(max(0, opens-now)) * time.Microsecond
	return s
}
