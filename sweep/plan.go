package sweep

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/catalog"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// How long a fault lasts.
const (
	once   = "once"    // for one attempt
	atCall = "call"    // for all attempts of the call
	fromOn = "from_on" // from the call on, until the restart
)

// fault is a fault of the catalog, or a change of the service's state.
type fault struct {
	catalog.Fault
	change func(*play, *Call) // before the request
	undo   func(*run)         // before the restart
}

var (
	fails = &fault{Fault: catalog.Fault{Name: "fails", Says: "The application's own place fails."}}

	planEnds = &fault{
		Fault: catalog.Fault{Name: "plan_ended", Says: "The plan ends."},
		change: func(p *play, _ *Call) {
			p.run.subscribed = fakeserver.Plan(fakedoor.Of[fakeserver.Call](p.run.fake).Keys()[0].Plan)
			p.run.fake.SetPlan(p.run.fake.Key(), fakeserver.PlanFree)
		},
		undo: func(r *run) { r.fake.SetPlan(r.fake.Key(), r.subscribed) },
	}
	keyRevoked = &fault{
		Fault:  catalog.Fault{Name: "key_revoked", Says: "The key is revoked."},
		change: func(p *play, _ *Call) { p.run.fake.RevokeKey(p.run.fake.Key()) },
		undo:   func(r *run) { r.fake.ReinstateKey(r.fake.Key()) },
	}
	byokDown = &fault{
		Fault:  catalog.Fault{Name: "byok_down", Says: "The store of provider keys is not available."},
		change: func(p *play, _ *Call) { p.run.fake.SetBYOKAvailable(false) },
		undo:   func(r *run) { r.fake.SetBYOKAvailable(true) },
	}
	agentGone = &fault{
		Fault:  catalog.Fault{Name: "agent_gone", Says: "The agent is gone, for good."},
		change: func(p *play, c *Call) { p.remove(c.AgentID) },
	}
)

// plan is what goes wrong in one run; nil: nothing.
type plan []hit

// hit is one fault at one call or point.
type hit struct {
	target string
	fault  *fault
	lasts  string

	struck bool           // in the run whose plan it is
	at     *spec.Endpoint // of the target, once struck; nil for a point
}

func (p plan) name() string {
	names := make([]string, len(p))
	for i, h := range p {
		names[i] = h.target + "/" + h.fault.Name + "/" + h.lasts
	}
	return strings.Join(names, "+")
}

// struck reports whether every fault of the plan has befallen something.
func (p plan) struck() bool {
	return !slices.ContainsFunc(p, func(h hit) bool { return !h.struck })
}

// plansFor are the plans of one call: each fault at one attempt, at the whole
// call, and from then on.
func plansFor(c *Call) (plans []plan) {
	add := func(f *fault, lasts ...string) {
		for _, l := range lasts {
			plans = append(plans, plan{{target: c.Name, fault: f, lasts: l}})
		}
	}
	onAgent := c.AgentID != "" && c.spec != spec.CreateAgent
	for _, f := range catalog.For(c.spec) {
		if onAgent && f.Status == http.StatusNotFound {
			continue // a 404 for an agent that is there would be a lie
		}
		add(&fault{Fault: f}, lasting(f.Name)...)
	}
	add(planEnds, fromOn)
	add(keyRevoked, fromOn)
	if c.spec.Lists(http.StatusServiceUnavailable) || c.spec == spec.CreateAgent {
		add(byokDown, fromOn)
	}
	if onAgent {
		add(agentGone, fromOn)
	}
	return plans
}

// lasting is how long a fault of the catalog lasts. From then on, a key or a plan
// is bad because the service's state says so: see keyRevoked and planEnds.
func lasting(name string) []string {
	if name == "unauthorized" || name == "payment_required" {
		return []string{once}
	}
	return []string{once, atCall, fromOn}
}

// strikes returns the fault that befalls the next attempt of a call, or a
// point, where c is nil. The play's lock is held.
func (r *run) strikes(p *play, name string, c *Call) *fault {
	if p.restart {
		return nil
	}
	for i := range r.plan {
		switch h := &r.plan[i]; {
		case h.target == name:
			first := !h.struck
			h.strike(c)
			if first || h.lasts != once && h.fault.change == nil {
				return h.fault
			}
		case h.struck && h.lasts == fromOn && h.befalls(c):
			return h.fault
		}
	}
	return nil
}

func (h *hit) strike(c *Call) {
	h.struck = true
	if c != nil {
		h.at = c.spec
	}
}

// befalls reports whether a fault that has begun hits a call. Points fail by
// themselves only, and a changed state needs no more help.
func (h *hit) befalls(c *Call) bool {
	switch {
	case c == nil || h.at == nil:
		return c == nil && h.at == nil
	case h.fault.change != nil:
		return false
	case h.fault.Own:
		return c.spec == h.at
	}
	return h.fault.Status == 0 || c.spec.Lists(h.fault.Status)
}

const mostPairs = 300

// pairsOf picks pairs of plans of which the second strikes after the first, in
// the same way for a seed.
func (s *sweep) pairsOf(plans []plan) []plan {
	var pairs []plan
	for i, a := range plans {
		for _, b := range plans[i+1:] {
			if a[0].target != b[0].target && slices.Contains(s.reached[a.name()], b[0].target) {
				pairs = append(pairs, plan{a[0], b[0]})
			}
		}
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return pairs[:min(len(pairs), mostPairs)]
}
