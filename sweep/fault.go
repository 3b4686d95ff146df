package sweep

import (
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// How long a fault lasts.
const (
	once   = "once"    // for one attempt
	atCall = "call"    // for all attempts of the call
	fromOn = "from_on" // from the call on, until the restart
)

// fault is a fault of package faults, or a change of the service's state.
type fault struct {
	faults.Fault
	change func(*execution, *Call) (undo func()) // before the request, and before the restart
}

var (
	fails = &fault{Fault: faults.Fault{Name: "fails", Says: "The application's own place fails."}}

	planEnds = &fault{faults.Fault{Name: "plan_ended", Says: "The plan ends."}, func(p *execution, _ *Call) func() {
		subscribed := fakeserver.Plan(fakedoor.Of[fakeserver.Call](p.fake).Keys()[0].Plan)
		p.fake.SetPlan(p.fake.Key(), fakeserver.PlanFree)
		return func() { p.fake.SetPlan(p.fake.Key(), subscribed) }
	}}
	keyRevoked = &fault{faults.Fault{Name: "key_revoked", Says: "The key is revoked."}, func(p *execution, _ *Call) func() {
		p.fake.RevokeKey(p.fake.Key())
		return func() { p.fake.ReinstateKey(p.fake.Key()) }
	}}
	byokDown = &fault{faults.Fault{Name: "byok_down", Says: "The store of provider keys is not available."}, func(p *execution, _ *Call) func() {
		p.fake.SetBYOKAvailable(false)
		return func() { p.fake.SetBYOKAvailable(true) }
	}}
	agentGone = &fault{faults.Fault{Name: "agent_gone", Says: "The agent is gone, for good."}, func(p *execution, c *Call) func() {
		if _, found := p.fake.Agent(c.AgentID); found {
			p.fake.RemoveAgent(c.AgentID)
			p.note(func() { p.gone[c.AgentID] = true })
		}
		return func() {}
	}}
)

// plan is the fault of one run, at one call or point, and what it has done so far; nil:
// nothing goes wrong. The lock of the execution guards it.
type plan struct {
	stage  int    // of the execution: 0, or 1 for the first restart
	target string // the name of the call or of the point
	fault  *fault
	lasts  string

	struck bool
	at     *spec.Endpoint // of the call that it struck first; nil for a point
	undo   func()         // of a change of the service's state; nil where there is none
}

// String is the name of the plan; "" for none.
func (p *plan) String() string {
	if p == nil {
		return ""
	}
	return p.place() + "/" + p.fault.Name + "/" + p.lasts
}

func (p *plan) place() string {
	if p.stage > 0 {
		return "restart." + p.target
	}
	return p.target
}

// next returns the fault that strikes the next attempt of a call, or a point,
// where c is nil.
func (p *plan) next(stage int, name string, c *Call) *fault {
	switch {
	case p == nil:
	case p.stage == stage && p.target == name:
		first := !p.struck
		if p.struck = true; c != nil {
			p.at = c.spec
		}
		if first || p.lasts != once && p.fault.change == nil {
			return p.fault
		}
	case p.struck && p.lasts == fromOn && p.fault.befalls(p.at, c):
		return p.fault
	}
	return nil
}

// befalls reports whether a fault that began at an endpoint strikes a call. Points
// fail one by one, and a changed state does not need to be changed again.
func (f *fault) befalls(at *spec.Endpoint, c *Call) bool {
	switch {
	case c == nil || at == nil:
		return c == nil && at == nil
	case f.change != nil:
		return false
	case f.Own:
		return c.spec == at
	}
	return f.Status == 0 || c.spec.Lists(f.Status)
}

// inRestart are the faults that a restart meets after a death: one without and one
// with an effect, and one that lasts longer than the client waits.
func inRestart(c *Call) (plans []*plan) {
	for _, f := range faults.For(c.spec) {
		switch f.Name {
		case "refused":
			plans = append(plans, &plan{stage: 1, target: c.Name, fault: &fault{Fault: f}, lasts: atCall})
		case "reply_lost", "limited_day":
			plans = append(plans, &plan{stage: 1, target: c.Name, fault: &fault{Fault: f}, lasts: once})
		}
	}
	return plans
}
