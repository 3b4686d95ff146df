package sweep

import (
	"net/http"

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
	change func(*fakeserver.Server, *Call) (undo func()) // before the request, and before the restart
}

var fails = &fault{Fault: faults.Fault{Name: "fails", Says: "The application's own place fails."}}

// changes are the faults that change the service's state, with the calls that meet them.
var changes = []struct {
	fault
	meets func(*Call) bool
}{
	{fault{faults.Fault{Name: "plan_ended", Says: "The plan ends."}, func(fake *fakeserver.Server, _ *Call) func() {
		subscribed := fakeserver.Plan(fakedoor.Of[fakeserver.Call](fake).Keys()[0].Plan)
		fake.SetPlan(fake.Key(), fakeserver.PlanFree)
		return func() { fake.SetPlan(fake.Key(), subscribed) }
	}}, func(*Call) bool { return true }},
	{fault{faults.Fault{Name: "key_revoked", Says: "The key is revoked."}, func(fake *fakeserver.Server, _ *Call) func() {
		fake.RevokeKey(fake.Key())
		return func() { fake.ReinstateKey(fake.Key()) }
	}}, func(*Call) bool { return true }},
	{fault{faults.Fault{Name: "byok_down", Says: "The store of provider keys is not available."}, func(fake *fakeserver.Server, _ *Call) func() {
		fake.SetBYOKAvailable(false)
		return func() { fake.SetBYOKAvailable(true) }
	}}, func(c *Call) bool { return c.spec.Lists(http.StatusServiceUnavailable) || c.spec == spec.CreateAgent }},
	{fault{faults.Fault{Name: "agent_gone", Says: "The agent is gone, for good.", Status: http.StatusNotFound}, func(fake *fakeserver.Server, c *Call) func() {
		if _, found := fake.Agent(c.AgentID); found {
			fake.RemoveAgent(c.AgentID)
		}
		return func() {}
	}}, (*Call).onAgent},
}

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

// plansAt are the plans of one call: each fault at one attempt, at the whole call, and from
// then on.
func plansAt(c *Call) (plans []*plan) {
	add := func(f *fault, lasts ...string) {
		for _, l := range lasts {
			plans = append(plans, &plan{target: c.Name, fault: f, lasts: l})
		}
	}
	for _, f := range faults.For(c.spec) {
		switch {
		case f.Status == http.StatusUnauthorized || f.Status == http.StatusPaymentRequired: // from then on: key_revoked and plan_ended
			add(&fault{Fault: f}, once)
		case c.onAgent() && f.Status == http.StatusNotFound:
			add(&fault{Fault: f}, once, fromOn)
		default:
			add(&fault{Fault: f}, once, atCall, fromOn)
		}
	}
	for i := range changes {
		if changes[i].meets(c) {
			add(&changes[i].fault, fromOn)
		}
	}
	return plans
}

// plansInRestart are the plans of a call in a restart after a death: one fault without and
// one with an effect, and one that lasts longer than the client waits.
func plansInRestart(c *Call) (plans []*plan) {
	lasts := map[string]string{"refused": atCall, "reply_lost": once, "limited_day": once}
	for _, f := range faults.For(c.spec) {
		if lasts[f.Name] != "" {
			plans = append(plans, &plan{stage: 1, target: c.Name, fault: &fault{Fault: f}, lasts: lasts[f.Name]})
		}
	}
	return plans
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
