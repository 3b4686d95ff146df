package pacer

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// State is the state of a [Pacer] at one moment. With a store, it is as old as this
// process's last use of the store.
type State struct {
	Limits []LimitState // in the order of New or SetLimits
	// Interactive and Batch are the numbers of calls that wait in this process.
	Interactive, Batch int
	// Processes is the number of processes that used the store in the last two
	// minutes; 1 without a store. While the store does not answer, Processes keeps the
	// last number, which is 0 if the store has never answered.
	Processes int
	// StoreDown is when the store stopped answering, by this machine's clock. It is the
	// zero time while the store answers, and without a store.
	StoreDown time.Time
}

// LimitState is the state of one limit.
type LimitState struct {
	Limit
	// Used is the number of calls in the last window, refused calls included. If Window
	// is an hour or more, a refusal starts the count again.
	Used int
	// Level is the pacer's estimate of the calls that a window allows: Max, or fewer
	// after refusals. If Window is an hour or more, Level is always Max.
	Level float64
	// ClosedFor is how long a call waits that spends only this limit; 0 if the call need
	// not wait. ClosedBy is the reason: the limit_key of the refusal, or "used up". A refusal
	// closes all limits on the same operations, because the service's names may differ from
	// yours. So ClosedBy may name another limit.
	ClosedFor time.Duration
	ClosedBy  string
}

// State returns the state of the pacer; the zero Pacer has none. It makes no call to the
// service or the store.
func (p *Pacer) State() (s State) {
	if p.validate() != nil {
		return s
	}
	c := p.coordinator
	c.engine.Update(func(now time.Duration) {
		s.Batch = c.engine.WaitingLocked(func(class quota.Class) bool { return class.Batch })
		s.Interactive = c.engine.WaitingLocked(func(class quota.Class) bool { return !class.Batch })
		l := c.ledgerAtLocked(now)
		s.Processes, s.StoreDown = len(l.Members), c.downSince
		for b := range l.budgets(everything) {
			g := l.Gates[b.operation|request] // of a call that spends only this limit
			opens, reason := b.next(0), "used up"
			if g.Opens >= opens {
				opens, reason = g.Opens, g.Key
			}
			limit := LimitState{Limit: b.Limit, Used: int(b.Held), Level: b.allowed, ClosedFor: opens - b.now}
			if limit.ClosedFor > 0 {
				limit.ClosedBy = reason
			}
			s.Limits = append(s.Limits, limit)
		}
	})
	return s
}
