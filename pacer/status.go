package pacer

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

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
	now := p.engine.Now()
	s := State{
		Interactive: p.engine.Waiting(func(c quota.Class) bool { return !c.Batch }),
		Batch:       p.engine.Waiting(func(c quota.Class) bool { return c.Batch }),
	}
	c := p.coordinator
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.here(now)
	s.Processes, s.StoreDown = len(l.Members), c.peers.since
	for b := range l.budgets(everything) {
		s.Limits = append(s.Limits, b.status(l.Gates))
	}
	return s
}

func (b budget) status(gates []gate) LimitState {
	opens, s := b.next(0), LimitState{Limit: b.Limit, Used: int(b.sent()), Level: b.allowed}
	if b.isLong() {
		s.Used, s.Level = int(b.Sent), b.max
	}
	if opens > b.now {
		s.ClosedBy = "used up"
	}
	for _, g := range gates {
		if g.Kinds&b.counts != 0 && g.Kinds&^(b.counts|request) == 0 && g.Told > opens {
			opens, s.ClosedBy = g.Told, g.Key
		}
	}
	s.ClosedFor = time.Duration(max(0, opens-b.now)) * time.Microsecond
	return s
}
