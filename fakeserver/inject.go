package fakeserver

import (
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
)

// Injection is a fault and the calls that it acts on. Inject makes one.
type Injection struct {
	rule
	fault *wire.Fault
}

// Inject makes a fault act on the calls that all matchers match, even on calls
// that the service would refuse. Without matchers it acts on all calls. It is
// in force at once and until Remove or Reset, unless Times, Nth, From or
// Chance narrow it. It may come too late for calls that are already under way.
//
// Where several injections match a call, their latencies add up. Of the other
// faults only one acts: the newest whose turn it is. The zero Fault and a zero
// Matcher panic.
func (s *Server) Inject(fault Fault, matchers ...Matcher) *Injection {
	if fault.f == nil {
		misuse("Inject", "the fault is the zero Fault; %s make faults", faultMakers)
	}
	in := &Injection{rule: newRule(s, "Inject", fault.String(), matchers), fault: fault.f}
	defer s.lock().Unlock()
	list := &s.gen.injections
	if in.fault.Phase == wire.BeforeConnecting {
		list = &s.gen.refusals
	}
	*list = append(*list, in)
	in.withdraw = func() { *list = without(*list, in) }
	return in
}

// Times ends the injection once it has acted on n calls. On its own, it acts on
// the first n calls that match. Times, Nth, From and Chance may be combined:
// the fault acts where all of them allow it. An n below 1 panics.
func (in *Injection) Times(n int) *Injection { in.count("Times", n, &in.times); return in }

// Nth makes the fault act only on the n-th call that matches, counted from 1. A
// call counts whether or not another fault acts on it. An n below 1 panics.
func (in *Injection) Nth(n int) *Injection { in.count("Nth", n, &in.nth); return in }

// From makes the fault act only from the n-th call that matches on, counted from
// 1. An n below 1 panics.
func (in *Injection) From(n int) *Injection { in.count("From", n, &in.from); return in }

// Chance makes the fault act with probability p. The seed fixes the decisions:
// the n-th call that matches gets the same decision in every run. Which of
// several concurrent calls is the n-th is not fixed. A p outside 0 to 1 panics.
func (in *Injection) Chance(p float64, seed uint64) *Injection { in.setChance(p, seed); return in }

// Required fails the test if the injection has not acted until the fake is
// closed or reset.
func (in *Injection) Required() *Injection { in.require(); return in }

// Hits counts the calls that the fault has acted on.
func (in *Injection) Hits() int { return in.countHits() }

// Remove ends the injection and its requirement. A call that the fault already
// acts on stays as it is. Removing it again does nothing.
func (in *Injection) Remove() { in.remove() }

// applyFaults decides which of the matching injections act on a call, in one
// critical section, so that concurrent calls never share a turn.
func (s *Server) applyFaults(c *call, matching []*Injection) {
	if len(matching) == 0 {
		return
	}
	defer s.lock().Unlock()
	var names []string
	for _, in := range matching {
		slows := in.fault.Phase == wire.OnTheWay
		if !in.due() || !slows && c.fault != nil {
			continue
		}
		in.hits++
		names = append(names, in.fault.Name)
		switch {
		case in.fault.Change != nil:
			c.changes = append(c.changes, in)
		case slows:
			c.latencies = append(c.latencies, in.fault.Delay)
		default:
			c.fault = in.fault
		}
	}
	c.entry.call.Fault = strings.Join(names, ", ")
}
