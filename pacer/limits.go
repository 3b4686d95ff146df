package pacer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Counted is the kind of operation that a [Limit] counts.
type Counted string

// The operations that the limits of interface 8.1 count. The service may not answer
// Status, GetBYOK and ClearBYOK with 429 (interface 4), so no limit counts these calls.
const (
	CountsRequests       = Counted(spec.Requests)       // every call but Status, GetBYOK and ClearBYOK
	CountsAgentCreations = Counted(spec.AgentCreations) // CreateAgent
	CountsBYOKSets       = Counted(spec.BYOKSets)       // SetBYOK, and CreateAgent with LLM.APIKey
	CountsWarmUps        = Counted(spec.WarmUps)        // WarmUp
)

// Limit allows at most Max of the operations that it counts in every Window
// (interface 8.1).
type Limit struct {
	// Key names the limit in errors, events and LimitState. It is printable, and has at most
	// 64 bytes. PreviewLimits and the other sets use the names of package fakeserver. The
	// service may use other names.
	Key string
	// Max is at least 1.
	Max int
	// Window is at least a second, and at most 100 years. If Window is shorter than an
	// hour, calls go at an even pace. Otherwise the calls are only counted: only the service
	// knows when such a window starts again, so its refusal closes the limit, for all
	// processes that share a store. Once Max calls have gone, the pacer finds out by trials
	// whether the window has started again: it sends one call, one more, then two, four and so
	// on, and waits for a second after each group.
	Window time.Duration
	// Counts is the kind of operation that the limit counts; empty means CountsRequests.
	Counts Counted
}

// PreviewLimits returns the preview defaults (interface 8.1). For the two limits per IP
// address, the pacer assumes that all processes that share its limits have one address.
func PreviewLimits() []Limit { return limitsOf(spec.PreviewPlan) }

// ProLimits returns the limits of the Pro plan (interface 8.2).
func ProLimits() []Limit { return limitsOf(spec.ProPlan) }

// BYOKPlanLimits returns the limits of the BYOK plan (interface 8.2).
func BYOKPlanLimits() []Limit { return limitsOf(spec.BYOKPlan) }

func limitsOf(plan string) (limits []Limit) {
	for _, l := range spec.Limits {
		limits = append(limits, Limit{Key: string(l.Key), Max: l.Max[spec.PlanIndex(plan)], Window: l.Window, Counts: Counted(l.Counts)})
	}
	return limits
}

// costSet is the set of operations that an attempt counts as: a bit for each of operations.
type costSet uint8

const (
	noCosts    costSet = 0      // the empty set is part of every set, so the gate with this key holds back all calls
	request    costSet = 1      // CountsRequests
	uncounted  costSet = 1 << 7 // an endpoint that no limit counts
	everything costSet = 1<<8 - 1
)

var operations = []Counted{CountsRequests, CountsAgentCreations, CountsBYOKSets, CountsWarmUps}

// bound is a Limit in the terms of the ledger.
type bound struct {
	Limit
	max       float64
	operation costSet // the one that the limit counts
}

// paced reports whether calls go at an even pace. In a window of an hour or more they are only
// counted.
func (b *bound) paced() bool { return b.Window < time.Hour }

// longestWindow is so short that the sum of a time since 1970 and two windows fits into a
// time.Duration.
const longestWindow = 100 * 365 * spec.Day

// maxLimits bounds the number of limits, and so the size of the value in the store.
const maxLimits = 30

func boundsOf(limits []Limit) ([]bound, error) {
	if len(limits) == 0 || len(limits) > maxLimits {
		return nil, invalid("limits", fmt.Sprintf("must be 1 to %d limits", maxLimits))
	}
	bounds := make([]bound, len(limits))
	for i, l := range limits {
		kind := slices.Index(operations, cmp.Or(l.Counts, CountsRequests))
		field := fmt.Sprintf("limits[%d].", i)
		switch {
		case printable.Name(l.Key) != l.Key:
			return nil, invalid(field+"Key", "must be printable, and at most 64 bytes")
		case l.Max < 1:
			return nil, invalid(field+"Max", "must be at least 1")
		case l.Window < time.Second || l.Window > longestWindow:
			return nil, invalid(field+"Window", "must be at least a second, and at most 100 years")
		case kind < 0:
			return nil, invalid(field+"Counts", fmt.Sprintf("must be one of %q, or empty", operations))
		}
		bounds[i] = bound{l, float64(l.Max), 1 << kind}
	}
	return bounds, nil
}

func invalid(field, reason string) error {
	return &agentmessaging.ValidationError{Field: field, Reason: reason}
}
