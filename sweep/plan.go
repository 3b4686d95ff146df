package sweep

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

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
	change func(*play, *Call) // before the request
	undo   func(*play)        // before the restart
}

var (
	fails = &fault{Fault: faults.Fault{Name: "fails", Says: "The application's own place fails."}}

	planEnds = &fault{
		Fault: faults.Fault{Name: "plan_ended", Says: "The plan ends."},
		change: func(p *play, _ *Call) {
			p.hits.subscribed = fakeserver.Plan(fakedoor.Of[fakeserver.Call](p.fake).Keys()[0].Plan)
			p.fake.SetPlan(p.fake.Key(), fakeserver.PlanFree)
		},
		undo: func(p *play) { p.fake.SetPlan(p.fake.Key(), p.hits.subscribed) },
	}
	keyRevoked = &fault{
		Fault:  faults.Fault{Name: "key_revoked", Says: "The key is revoked."},
		change: func(p *play, _ *Call) { p.fake.RevokeKey(p.fake.Key()) },
		undo:   func(p *play) { p.fake.ReinstateKey(p.fake.Key()) },
	}
	byokDown = &fault{
		Fault:  faults.Fault{Name: "byok_down", Says: "The store of provider keys is not available."},
		change: func(p *play, _ *Call) { p.fake.SetBYOKAvailable(false) },
		undo:   func(p *play) { p.fake.SetBYOKAvailable(true) },
	}
	agentGone = &fault{
		Fault: faults.Fault{Name: "agent_gone", Says: "The agent is gone, for good."},
		change: func(p *play, c *Call) {
			if _, found := p.fake.Agent(c.AgentID); found {
				p.fake.RemoveAgent(c.AgentID)
				p.disown(c)
			}
		},
	}
)

// plan is what goes wrong in one run; nil: nothing. It never changes.
type plan []hit

// hit is one fault at one call or point.
type hit struct {
	stage  int // of the play: 0, or 1 for the first restart
	target string
	fault  *fault
	lasts  string
}

func (p plan) String() string {
	names := make([]string, len(p))
	for i, h := range p {
		names[i] = h.place() + "/" + h.fault.Name + "/" + h.lasts
	}
	return strings.Join(names, "+")
}

func (h hit) place() string {
	if h.stage > 0 {
		return "restart." + h.target
	}
	return h.target
}

// hits is what a plan has struck so far. The lock of the play guards it.
type hits struct {
	plan       plan
	struck     []bool
	at         []*spec.Endpoint // what was struck; nil for a point
	subscribed fakeserver.Plan  // before a fault ended it
}

func newHits(p plan) *hits {
	return &hits{plan: p, struck: make([]bool, len(p)), at: make([]*spec.Endpoint, len(p))}
}

// all reports whether every fault of the plan has struck.
func (h *hits) all() bool { return !slices.Contains(h.struck, false) }

// next returns the fault that strikes the next attempt of a call, or a point,
// where c is nil.
func (h *hits) next(stage int, name string, c *Call) *fault {
	for i, hit := range h.plan {
		switch {
		case hit.stage == stage && hit.target == name:
			first := !h.struck[i]
			if h.struck[i] = true; c != nil {
				h.at[i] = c.spec
			}
			if first || hit.lasts != once && hit.fault.change == nil {
				return hit.fault
			}
		case h.struck[i] && hit.lasts == fromOn && hit.fault.befalls(h.at[i], c):
			return hit.fault
		}
	}
	return nil
}

// befalls reports whether a fault that began at an endpoint strikes a call. Points
// fail by themselves only, and a changed state needs no more help.
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

// plansFor are the plans of one call: each fault at one attempt, at the whole
// call, and from then on.
func (s *sweep) plansFor(c *Call) (plans []plan) {
	add := func(f *fault, lasts ...string) {
		for _, l := range lasts {
			plans = append(plans, plan{{target: c.Name, fault: f, lasts: l}})
		}
	}
	for _, f := range faults.For(c.spec) {
		switch {
		case s.skip != nil && s.skip(f.Name):
		case f.Status == http.StatusUnauthorized || f.Status == http.StatusPaymentRequired:
			add(&fault{Fault: f}, once) // from then on: keyRevoked and planEnds
		case c.onAgent() && f.Status == http.StatusNotFound:
			add(&fault{Fault: f}, once, fromOn)
		default:
			add(&fault{Fault: f}, once, atCall, fromOn)
		}
	}
	add(planEnds, fromOn)
	add(keyRevoked, fromOn)
	if c.spec.Lists(http.StatusServiceUnavailable) || c.spec == spec.CreateAgent {
		add(byokDown, fromOn)
	}
	if c.onAgent() {
		add(agentGone, fromOn)
	}
	return plans
}

// inRestart are the faults that a restart meets after a death: one without and one
// with an effect, and one that lasts longer than the client waits.
func inRestart(c *Call) (plans []plan) {
	for _, f := range faults.For(c.spec) {
		switch f.Name {
		case "refused":
			plans = append(plans, plan{{1, c.Name, &fault{Fault: f}, atCall}})
		case "reply_lost", "limited_day":
			plans = append(plans, plan{{1, c.Name, &fault{Fault: f}, once}})
		}
	}
	return plans
}

const mostPairs = 300

// pairsOf picks pairs of plans of which the second strikes after the first, in
// the same way for a seed.
func (s *sweep) pairsOf(plans []plan) []plan {
	var pairs []plan
	for i, a := range plans {
		for _, b := range plans[i+1:] {
			if a[0].target != b[0].target && slices.Contains(s.reached[a.String()], b[0].target) {
				pairs = append(pairs, plan{a[0], b[0]})
			}
		}
	}
	random := rand.New(rand.NewPCG(s.seed, 0))
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return pairs[:min(len(pairs), mostPairs)]
}
