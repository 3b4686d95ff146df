package sweep

import (
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// How long a fault lasts.
const (
	once      = "once"    // one attempt
	wholeCall = "call"    // all attempts of the call
	fromOn    = "from_on" // from the call on, until the restart
)

// The faults that are not in package faults: an Env.Point that returns an error, and an agent
// that is removed before the request.
var (
	fails     = faults.Fault{Name: "fails", Description: "The application's own Env.Point returns an error."}
	agentGone = faults.Fault{Name: "agent_gone", Description: "The agent is gone, for good.", Status: 404}
)

// plan is the fault of one run at one call or point, and its effects so far. A nil plan
// has no fault. The lock of the execution guards a plan.
type plan struct {
	stage  int    // the stage of the execution: 0, or 1 for the first restart
	target string // the name of the call or of the point
	fault  faults.Fault
	lasts  string

	hasHit bool
	at     *spec.Endpoint // the endpoint of the first call that the fault hit; nil for a point
}

// plansOf returns the plans for the calls and points of an execution: each fault at one
// attempt of each call, at the whole call, and from the call on.
func plansOf(calls []*Call, points []string, single bool) (plans []*plan) {
	add := func(target string, f faults.Fault, lasts ...string) {
		for _, l := range lasts {
			plans = append(plans, &plan{target: target, fault: f, lasts: l})
		}
	}
	if !single { // the order of goroutines must not decide which run is reported
		calls = slices.SortedFunc(slices.Values(calls), func(a, b *Call) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, c := range calls {
		for _, f := range faults.For(c.spec) {
			add(c.Name, f, once, wholeCall, fromOn)
		}
		if c.onAgent() {
			add(c.Name, agentGone, once)
		}
	}
	for _, point := range points {
		add(point, fails, once, fromOn)
	}
	return plans
}

// plansInRestart returns the plans for a call in a restart after a death. There are three
// faults: the call has no effect, the client does not see the effect, and the client does
// not wait.
func plansInRestart(c *Call) (plans []*plan) {
	lasts := map[string]string{faults.Refused: wholeCall, faults.ReplyLost: once, faults.LimitedDay: once}
	for _, f := range faults.For(c.spec) {
		if lasts[f.Name] != "" {
			plans = append(plans, &plan{stage: 1, target: c.Name, fault: f, lasts: lasts[f.Name]})
		}
	}
	return plans
}

// String returns the name of the plan.
func (p *plan) String() string {
	return p.place() + "/" + p.fault.Name + "/" + p.lasts
}

// place names the call or the point, and the restart if the plan is for a restart.
func (p *plan) place() string {
	if p.stage > 0 {
		return "restart." + p.target
	}
	return p.target
}

// hit reports whether the fault hits the next attempt of a call of the endpoint at, or a point
// if at is nil. It records the hit.
func (p *plan) hit(stage int, name string, at *spec.Endpoint) bool {
	switch {
	case p == nil:
		return false
	case p.stage != stage || p.target != name:
		return p.hasHit && p.lasts == fromOn && p.hitsLater(at)
	case p.hasHit && p.lasts == once:
		return false
	}
	p.hasHit, p.at = true, at
	return true
}

// hitsLater reports whether a fault that lasts from a call on also hits a later call of an
// endpoint. A fault that lasts from a point on hits all later points (later is nil), and no
// calls.
func (p *plan) hitsLater(later *spec.Endpoint) bool {
	if later == nil || p.at == nil || p.fault.SameEndpointOnly {
		return later == p.at
	}
	return p.fault.Status == 0 || later.Lists(p.fault.Status)
}
