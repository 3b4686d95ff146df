package agentmessaging

import (
	"fmt"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// Counted is what a [Limit] counts.
type Counted string

// What the limits of interface 8.1 count. Status, GetBYOK and ClearBYOK list
// no status 429 (interface 4) and count as nothing.
const (
	CountsRequests       Counted = "requests"
	CountsAgentCreations Counted = "agent creations"
	// CountsBYOKSets is SetBYOK, and CreateAgent with LLM.APIKey.
	CountsBYOKSets Counted = "BYOK sets"
	CountsWarmUps  Counted = "warm-ups"
)

// Limit is a budget that a [Pacer] keeps: at most Max of what it counts in
// every Window (interface 8.1).
type Limit struct {
	// Key names the limit in errors. The service's own names are not
	// documented; those of the sets below are the fake's.
	Key string
	// Max is at least 1.
	Max int
	// Window is at least a second. How the service counts a window of an hour
	// or more is found out by sending a call when Max are sent, and again for
	// as long as that is not refused: so a long limit that the service does not
	// have is not kept.
	Window time.Duration
	// Counts is what counts; empty means requests.
	Counts Counted
}

// PreviewLimits are the preview defaults (interface 8.1). Those per IP address
// are kept as though all that share the pacer had one address.
func PreviewLimits() []Limit { return limitsOf(spec.Plans[0]) }

// ProLimits are those of the Pro plan (interface 8.2).
func ProLimits() []Limit { return limitsOf(planNamed("pro")) }

// BYOKLimits are those of the BYOK plan (interface 8.2).
func BYOKLimits() []Limit { return limitsOf(planNamed("byok")) }

func planNamed(name string) spec.Plan {
	for _, plan := range spec.Plans {
		if plan.Name == name {
			return plan
		}
	}
	return spec.Plan{}
}

func limitsOf(plan spec.Plan) []Limit {
	limits := make([]Limit, len(spec.Limits))
	for i, l := range spec.Limits {
		limits[i] = Limit{Key: string(l.Key), Max: plan.Max(i), Window: l.Window, Counts: Counted(l.Counts)}
	}
	return limits
}

// counts reports whether the attempt spends a limit that counts what.
func (a LimitedAttempt) counts(what Counted) bool {
	return spec.Find(a.Method, a.Path).Counts(spec.Counted(what), a.SetsBYOK)
}

// checkLimits converts limits, or says what is wrong with one.
func checkLimits(limits []Limit) ([]quota.Limit, error) {
	if len(limits) == 0 || len(limits) > quota.MaxLimits {
		return nil, &ValidationError{Field: "limits", Reason: fmt.Sprintf("must be 1 to %d limits", quota.MaxLimits)}
	}
	checked := make([]quota.Limit, len(limits))
	for i, l := range limits {
		if err := l.validate(i); err != nil {
			return nil, err
		}
		checked[i] = quota.Limit{Key: l.Key, Max: l.Max, Window: l.Window}
	}
	return checked, nil
}

func (l Limit) validate(i int) error {
	invalid := func(member, reason string) error {
		return &ValidationError{Field: fmt.Sprintf("limits[%d].%s", i, member), Reason: reason}
	}
	switch {
	case l.Max < 1:
		return invalid("Max", "must be at least 1")
	case l.Window < time.Second:
		return invalid("Window", "must be at least a second")
	}
	switch l.Counts {
	case "", CountsRequests, CountsAgentCreations, CountsBYOKSets, CountsWarmUps:
		return nil
	}
	return invalid("Counts", "must be one of the Counts constants, or empty")
}
