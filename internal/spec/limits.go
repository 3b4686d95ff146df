package spec

import (
	"slices"
	"time"
)

// LimitKey names a limiter, as the service names it in limit_key. The
// interface shows no values; these are the fake's.
type LimitKey string

// The limiters of interface 8.1. The constants are untyped: some uses are a
// LimitKey, others a string.
const (
	KeyMinute           = "key_minute"
	IPMinute            = "ip_minute"
	KeyDay              = "key_day"
	AgentCreateKeyDay   = "agent_create_key_day"
	AgentCreateIPMinute = "agent_create_ip_minute"
	BYOKSetKeyHour      = "byok_set_key_hour"
	WarmUpKeyHour       = "warmup_key_hour"
)

// Counted is what a limit counts.
type Counted string

// What the limits of interface 8.1 count.
const (
	Requests       Counted = "requests"
	AgentCreations Counted = "agent creations"
	BYOKSets       Counted = "BYOK sets"
	WarmUps        Counted = "warm-ups"
)

// RateLimited is the error member of every documented 429 (interface 7).
const RateLimited = "rate_limited"

// Counts reports whether a call of the endpoint is one of what. setsBYOK says
// that the call stores a provider key, which CreateAgent does with llm.api_key
// (interface 4.6, rule 2). A nil endpoint is a request.
func (e *Endpoint) Counts(what Counted, setsBYOK bool) bool {
	spends := []Counted{Requests}
	if e != nil {
		spends = e.Spends
	}
	return slices.Contains(spends, what) || what == BYOKSets && setsBYOK
}

// Limit is one row of interface 8.1: at most Max in every Window.
type Limit struct {
	Key    LimitKey
	Counts Counted
	PerIP  bool // counted per client address instead of per API key
	Max    int
	Window time.Duration
}

// Day is the length of the daily windows.
const Day = 24 * time.Hour

// Limits are the preview defaults of interface 8.1, in its order: first those
// that every request spends, then those of single operations.
var Limits = limits[:]

// LimitIndex finds a limit in Limits, or returns -1.
func LimitIndex(key LimitKey) int {
	return slices.IndexFunc(Limits, func(l Limit) bool { return l.Key == key })
}

// LimitCount is the number of Limits.
const LimitCount = len(limits)

var limits = [...]Limit{
	{Key: KeyMinute, Counts: Requests, Max: 60, Window: time.Minute},
	{Key: IPMinute, Counts: Requests, Max: 120, Window: time.Minute, PerIP: true},
	{Key: KeyDay, Counts: Requests, Max: 1000, Window: Day},
	{Key: AgentCreateKeyDay, Counts: AgentCreations, Max: 50, Window: Day},
	{Key: AgentCreateIPMinute, Counts: AgentCreations, Max: 10, Window: time.Minute, PerIP: true},
	{Key: BYOKSetKeyHour, Counts: BYOKSets, Max: 5, Window: time.Hour},
	{Key: WarmUpKeyHour, Counts: WarmUps, Max: 3, Window: time.Hour},
}

// RequestLimits is how many of Limits, from the first, every request spends.
const RequestLimits = 3

// Plan is one row of interface 8.2.
type Plan struct {
	Name string
	// Active is false where every call answers 402 (interface 5).
	Active bool
	// Caps replace Max of the request limits, in the order of Limits; 0
	// keeps the preview default.
	Caps [RequestLimits]int
}

// The names of Plans.
const (
	PreviewPlan = "preview"
	FreePlan    = "free"
	ProPlan     = "pro"
	BYOKPlan    = "byok"
)

// Plans are the preview defaults (8.1) and the three plans of 8.2.
var Plans = []Plan{
	{Name: PreviewPlan, Active: true},
	{Name: FreePlan, Active: false, Caps: [...]int{60, 120, 1000}},
	{Name: ProPlan, Active: true, Caps: [...]int{300, 500, 10_000}},
	{Name: BYOKPlan, Active: true, Caps: [...]int{600, 1000, 50_000}},
}

// Max is how many calls the plan allows within the window of Limits[i].
func (p Plan) Max(i int) int {
	if i < RequestLimits && p.Caps[i] != 0 {
		return p.Caps[i]
	}
	return Limits[i].Max
}

// PlanNamed finds a plan of interface 8.2.
func PlanNamed(name string) (plan Plan, known bool) {
	for _, plan := range Plans {
		if plan.Name == name {
			return plan, true
		}
	}
	return Plan{}, false
}
