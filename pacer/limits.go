package pacer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Counted is what a [Limit] counts.
type Counted string

// What the limits of interface 8.1 count. Status, GetBYOK and ClearBYOK list
// no status 429 (interface 4) and count as nothing.
const (
	CountsRequests       = Counted(spec.Requests)
	CountsAgentCreations = Counted(spec.AgentCreations)
	// CountsBYOKSets is SetBYOK, and CreateAgent with LLM.APIKey.
	CountsBYOKSets = Counted(spec.BYOKSets)
	CountsWarmUps  = Counted(spec.WarmUps)
)

// Limit is a budget: at most Max of what it counts in every Window
// (interface 8.1).
type Limit struct {
	// Key names the limit in errors and events. Those of the sets below are
	// the fake's, and nothing depends on the service using the same.
	Key string
	// Max is at least 1.
	Max int
	// Window is at least a second. Below an hour calls go at an even pace;
	// from an hour on they are counted only, and when Max are sent one more
	// finds out whether the service really refuses.
	Window time.Duration
	// Counts is what counts; empty means requests.
	Counts Counted
}

// PreviewLimits returns the preview defaults (interface 8.1). The limits per IP
// address are kept as though all that share the pacer had one address.
func PreviewLimits() []Limit { return limitsOf("preview") }

// ProLimits returns the limits of the Pro plan (interface 8.2).
func ProLimits() []Limit { return limitsOf("pro") }

// BYOKPlanLimits returns the limits of the BYOK plan (interface 8.2).
func BYOKPlanLimits() []Limit { return limitsOf("byok") }

func limitsOf(plan string) (limits []Limit) {
	p := spec.Plans[slices.IndexFunc(spec.Plans, func(p spec.Plan) bool { return p.Name == plan })]
	for i, l := range spec.Limits {
		limits = append(limits, Limit{Key: string(l.Key), Max: p.Max(i), Window: l.Window, Counts: Counted(l.Counts)})
	}
	return limits
}

// costSet is a set of what an attempt counts as.
type costSet uint8

const (
	nothing    costSet = 0
	request    costSet = 1      // the first of counted
	uncounted  costSet = 1 << 7 // an endpoint that no limit counts
	everything costSet = 1<<8 - 1
)

var counted = []Counted{CountsRequests, CountsAgentCreations, CountsBYOKSets, CountsWarmUps}

// rule is a limit as the state machine reads it.
type rule struct {
	Limit
	max    float64
	window int64 // microseconds
	counts costSet
}

const hour = int64(time.Hour / time.Microsecond)

func (r *rule) isLong() bool { return r.window >= hour }

// maxLimits bounds the value in the store.
const maxLimits = 30

func rulesOf(limits []Limit) ([]rule, error) {
	if len(limits) == 0 || len(limits) > maxLimits {
		return nil, invalid("limits", fmt.Sprintf("must be 1 to %d limits", maxLimits))
	}
	rules := make([]rule, len(limits))
	for i, l := range limits {
		kind := slices.Index(counted, cmp.Or(l.Counts, CountsRequests))
		field := fmt.Sprintf("limits[%d].", i)
		switch {
		case l.Max < 1:
			return nil, invalid(field+"Max", "must be at least 1")
		case l.Window < time.Second:
			return nil, invalid(field+"Window", "must be at least a second")
		case kind < 0:
			return nil, invalid(field+"Counts", "must be one of the Counts constants, or empty")
		}
		rules[i] = rule{l, float64(l.Max), l.Window.Microseconds(), 1 << kind}
	}
	return rules, nil
}

func invalid(field, reason string) error {
	return &agentmessaging.ValidationError{Field: field, Reason: reason}
}
