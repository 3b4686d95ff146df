// Package spec has the Agent Messaging Service interface as data: endpoints with the
// statuses that each may return, request members with their bounds, closed lists of
// values, limits and plans.
//
// Every number and every closed list of the interface is here, and only here; package
// agentmessaging names the values of the lists as constants. The client's validation,
// the fake's rules and the tables of docs/limits.md read this package. The contract suite
// and package observe do not, so that they notice when a table is wrong.
package spec

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/names"
)

// Endpoint is one row of interface section 4.
type Endpoint struct {
	// Name is the client method that calls the endpoint.
	Name string
	// Call is the method and the path, which holds {agent_id} where an
	// identifier goes.
	Call, Method, Path string
	// Errors are the statuses other than 200 that section 4 lists.
	Errors []int
	// Spends lists what a call of the endpoint counts as in Limits; nil if section 4 lists
	// no 429 for the endpoint. A call whose body has the member AlsoIf counts as Also too.
	Spends []Counted
	Also   Counted
	AlsoIf *Field
	// Body is the object of the request body; nil if the endpoint takes none. A body that
	// is not Required may be absent.
	Body *Field
}

// The endpoints, in the order of interface section 4. rowsOf of the fake's package service
// says what each does, and replyOf of its package wire how each answers.
var (
	Status      = endpoint("GET /v1/status", "Status", 401, 402, 404)
	WarmUp      = endpoint("POST /v1/warmup", "WarmUp", 400, 401, 402, 403, 409, 429, 503).takes(warmUpBody).spends(Requests, WarmUps)
	GetBYOK     = endpoint("GET /v1/byok", "GetBYOK", 401, 402, 403, 404)
	SetBYOK     = endpoint("PUT /v1/byok", "SetBYOK", 400, 401, 402, 403, 429, 503).takes(byokBody).spends(Requests, BYOKSets)
	ClearBYOK   = endpoint("DELETE /v1/byok", "ClearBYOK", 401, 402, 403, 404)
	CreateAgent = endpoint("POST /v1/agents", "CreateAgent", 400, 401, 402, 404, 429).takes(agentBody).spends(Requests, AgentCreations).alsoSpends(BYOKSets, LLMAPIKey)
	GetAgent    = endpoint("GET /v1/agents/{agent_id}", "GetAgent", 401, 402, 404, 429).spends(Requests)
	SendMessage = endpoint("POST /v1/agents/{agent_id}/messages", "SendMessage", 400, 401, 402, 404, 429).takes(messageBody).spends(Requests)
	EnableSMS   = endpoint("POST /v1/agents/{agent_id}/channels/sms", "EnableSMS", 400, 401, 402, 404, 429).takes(smsBody).spends(Requests)
)

func endpoint(call, name string, errors ...int) *Endpoint {
	method, path, _ := strings.Cut(call, " ")
	return &Endpoint{Name: name, Call: call, Method: method, Path: path, Errors: errors}
}

func (e *Endpoint) takes(body *Field) *Endpoint {
	e.Body = body
	return e
}

func (e *Endpoint) spends(what ...Counted) *Endpoint {
	e.Spends = what
	return e
}

func (e *Endpoint) alsoSpends(what Counted, member *Field) *Endpoint {
	e.Also, e.AlsoIf = what, member
	return e
}

// LimitKey is a value of limit_key. The interface shows no values; these are the fake's.
type LimitKey string

// The limiters of interface 8.1. The constants are untyped, because some uses need a
// LimitKey and others a string.
const (
	KeyMinute           = names.KeyMinute
	IPMinute            = names.IPMinute
	KeyDay              = names.KeyDay
	AgentCreateKeyDay   = names.AgentCreateKeyDay
	AgentCreateIPMinute = names.AgentCreateIPMinute
	BYOKSetKeyHour      = names.BYOKSetKeyHour
	WarmUpKeyHour       = names.WarmUpKeyHour
)

// Counted is a kind of calls that a limit counts.
type Counted string

// What the limits of interface 8.1 count.
const (
	Requests       Counted = "requests"
	AgentCreations Counted = "agent creations"
	BYOKSets       Counted = "BYOK sets"
	WarmUps        Counted = "warm-ups"
)

// Limit is one row of interface 8.1: at most Max in every Window.
type Limit struct {
	Key    LimitKey
	Counts Counted
	PerIP  bool // counted per client address instead of per API key
	Max    int
	Window time.Duration
}

// Limits are the preview defaults of interface 8.1, in its order: first the limits that
// every request spends, then the limits of single operations.
var Limits = limits[:]

var limits = [...]Limit{
	{Key: KeyMinute, Counts: Requests, Max: 60, Window: time.Minute},
	{Key: IPMinute, Counts: Requests, Max: 120, Window: time.Minute, PerIP: true},
	{Key: KeyDay, Counts: Requests, Max: 1000, Window: Day},
	{Key: AgentCreateKeyDay, Counts: AgentCreations, Max: 50, Window: Day},
	{Key: AgentCreateIPMinute, Counts: AgentCreations, Max: 10, Window: time.Minute, PerIP: true},
	{Key: BYOKSetKeyHour, Counts: BYOKSets, Max: 5, Window: time.Hour},
	{Key: WarmUpKeyHour, Counts: WarmUps, Max: 3, Window: time.Hour},
}

// LimitCount is the number of Limits.
const LimitCount = len(limits)

// Day is the length of the daily windows.
const Day = 24 * time.Hour

// Plan is a row of interface 8.2, or the preview defaults of 8.1.
type Plan struct {
	Name   string
	Active bool            // false: every call answers 402 (interface 5)
	Max    [LimitCount]int // of each limit, in the order of Limits
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
	{PreviewPlan, true, maxima()},
	{FreePlan, false, maxima(60, 120, 1000)},
	{ProPlan, true, maxima(300, 500, 10_000)},
	{BYOKPlan, true, maxima(600, 1000, 50_000)},
}

// maxima returns the maxima of 8.1. The values of requests replace the first maxima,
// which are for the limits on requests.
func maxima(requests ...int) (all [LimitCount]int) {
	for i, l := range limits {
		all[i] = l.Max
	}
	copy(all[:], requests)
	return all
}

// RateLimited is the error member of every documented 429 (interface 7).
const RateLimited = "rate_limited"

// Endpoints lists all endpoints, in the order of interface section 4.
var Endpoints = []*Endpoint{
	Status, WarmUp, GetBYOK, SetBYOK, ClearBYOK, CreateAgent, GetAgent, SendMessage, EnableSMS,
}

// Find returns the endpoint of a method and a path template; nil if the
// interface has none.
func Find(method, path string) *Endpoint {
	for _, e := range Endpoints {
		if e.Path == path && e.Method == method {
			return e
		}
	}
	return nil
}

// EndpointNames lists the endpoints for messages, each as Endpoint.Call.
func EndpointNames() string {
	var names []string
	for _, e := range Endpoints {
		names = append(names, e.Call)
	}
	return strings.Join(names, ", ")
}

// Lists reports whether section 4 lists status for the endpoint. It lists 200 for each.
func (e *Endpoint) Lists(status int) bool {
	return status == http.StatusOK || slices.Contains(e.Errors, status)
}

// Counts reports whether a call of the endpoint counts against limits on what. also is true
// if the body has the member AlsoIf. A nil endpoint counts as a request.
func (e *Endpoint) Counts(what Counted, also bool) bool {
	if e == nil {
		e = &Endpoint{Spends: []Counted{Requests}, Also: BYOKSets}
	}
	return slices.Contains(e.Spends, what) || also && what == e.Also
}

// LimitNames returns the names of Limits.
func LimitNames() (names []string) {
	for _, l := range Limits {
		names = append(names, string(l.Key))
	}
	return names
}

// PlanNames returns the names of Plans.
func PlanNames() (names []string) {
	for _, p := range Plans {
		names = append(names, p.Name)
	}
	return names
}

// LimitIndex finds a limit in Limits, or returns -1.
func LimitIndex(key LimitKey) int {
	return slices.IndexFunc(Limits, func(l Limit) bool { return l.Key == key })
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
