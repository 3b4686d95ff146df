package spec

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
)

// LimitKey is a value of limit_key. The interface shows no values, so package fakenames has
// the fake's.
type LimitKey string

// Counted is a kind of calls that a limit counts.
type Counted string

// What the limits of interface 8.1 count.
const (
	Requests       Counted = "requests"
	AgentCreations Counted = "agent creations"
	BYOKSets       Counted = "BYOK sets"
	WarmUps        Counted = "warm-ups"
)

// Limit is one row of interface 8.1, with the caps that plans have for it (8.2).
type Limit struct {
	Key    LimitKey
	Counts Counted
	PerIP  bool // counted per client address instead of per API key
	Window time.Duration
	Max    [4]int // calls in a Window, by the index of the plan in Plans
}

const perKey, perIP = false, true // of Limit.PerIP

// Limits are the limits of interface 8.1, in its order. The caps of 8.2 replace the preview
// defaults of the limits on requests.
var Limits = [...]Limit{
	// The maxima are in the order of Plans: preview, free, pro, byok.
	{fakenames.KeyMinute, Requests, perKey, time.Minute, [4]int{60, 60, 300, 600}},
	{fakenames.IPMinute, Requests, perIP, time.Minute, [4]int{120, 120, 500, 1000}},
	{fakenames.KeyDay, Requests, perKey, Day, [4]int{1000, 1000, 10_000, 50_000}},
	{fakenames.AgentCreateKeyDay, AgentCreations, perKey, Day, everyPlan(50)},
	{fakenames.AgentCreateIPMinute, AgentCreations, perIP, time.Minute, everyPlan(10)},
	{fakenames.BYOKSetKeyHour, BYOKSets, perKey, time.Hour, everyPlan(5)},
	{fakenames.WarmUpKeyHour, WarmUps, perKey, time.Hour, everyPlan(3)},
}

func everyPlan(n int) [4]int { return [4]int{n, n, n, n} }

// LimitCount is the number of Limits.
const LimitCount = len(Limits)

// Day is the length of the daily windows.
const Day = 24 * time.Hour

// Plan is a row of interface 8.2, or the preview defaults of 8.1. Limits has its maxima.
type Plan struct {
	Name   string
	Active bool // false: every call answers 402 (interface 5)
}

// The names of Plans.
const (
	PreviewPlan = "preview"
	FreePlan    = "free"
	ProPlan     = "pro"
	BYOKPlan    = "byok"
)

// Plans are the preview defaults (8.1) and the three plans of 8.2.
var Plans = [...]Plan{{PreviewPlan, true}, {FreePlan, false}, {ProPlan, true}, {BYOKPlan, true}}

// RateLimited is the error member of every documented 429 (interface 7).
const RateLimited = "rate_limited"

// LimitNames lists the names of Limits for messages.
func LimitNames() string { return listed(Limits[:], func(l Limit) string { return string(l.Key) }) }

// PlanNames lists the names of Plans for messages.
func PlanNames() string { return listed(Plans[:], func(p Plan) string { return p.Name }) }

// LimitIndex finds a limit in Limits, or returns -1.
func LimitIndex(key LimitKey) int {
	return slices.IndexFunc(Limits[:], func(l Limit) bool { return l.Key == key })
}

// PlanIndex finds a plan in Plans, or returns -1.
func PlanIndex(name string) int {
	return slices.IndexFunc(Plans[:], func(p Plan) bool { return p.Name == name })
}
