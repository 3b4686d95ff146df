// Package spec has the Agent Messaging Service interface as data: endpoints with the
// statuses that each may return, request members with their bounds, closed lists of
// values, limits and plans.
//
// Every number and every closed list of the interface is here once, as data; packages
// agentmessaging and fakeserver name the values of the lists as constants. The client's
// validation, the fake's rules and the tables of docs/limits.md read this package. Doc comments
// repeat some numbers, and a test compares them. The contract suite and package observe do
// not read this package, so that they notice when a table is wrong.
package spec

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Endpoint is one row of interface section 4.
type Endpoint struct {
	// Name is the client method that calls the endpoint.
	Name string
	// Pattern is Method, a space, and Path, which holds {agent_id} where an identifier goes.
	Pattern, Method, Path string
	// Errors are the statuses other than 200 that section 4 lists.
	Errors []int
	// Spends lists what a call of the endpoint counts as in Limits; nil if section 4 lists
	// no 429 for the endpoint. A creation with LLMAPIKey counts as one of BYOKSets too.
	Spends []Counted
	// Body is the object of the request body; nil if the endpoint takes none. A body that
	// is not Required may be absent.
	Body *Field
}

// The endpoints, in the order of interface section 4. A new endpoint begins with a row here.
// endpointTable of the fake's package service says what each does, and replies of its package
// wire how each answers; .github/CONTRIBUTING.md lists all places, and tests fail until all
// are done.
var (
	Status      = endpoint("Status", "GET /v1/status", nil, nil, 401, 402, 404)
	WarmUp      = endpoint("WarmUp", "POST /v1/warmup", warmUpBody, []Counted{Requests, WarmUps}, 400, 401, 402, 403, 409, 429, 503)
	GetBYOK     = endpoint("GetBYOK", "GET /v1/byok", nil, nil, 401, 402, 403, 404)
	SetBYOK     = endpoint("SetBYOK", "PUT /v1/byok", byokBody, []Counted{Requests, BYOKSets}, 400, 401, 402, 403, 429, 503)
	ClearBYOK   = endpoint("ClearBYOK", "DELETE /v1/byok", nil, nil, 401, 402, 403, 404)
	CreateAgent = endpoint("CreateAgent", "POST /v1/agents", agentBody, []Counted{Requests, AgentCreations}, 400, 401, 402, 404, 429)
	GetAgent    = endpoint("GetAgent", "GET /v1/agents/{agent_id}", nil, []Counted{Requests}, 401, 402, 404, 429)
	SendMessage = endpoint("SendMessage", "POST /v1/agents/{agent_id}/messages", messageBody, []Counted{Requests}, 400, 401, 402, 404, 429)
	EnableSMS   = endpoint("EnableSMS", "POST /v1/agents/{agent_id}/channels/sms", smsBody, []Counted{Requests}, 400, 401, 402, 404, 429)
)

func endpoint(name, pattern string, body *Field, spends []Counted, errors ...int) *Endpoint {
	method, path, _ := strings.Cut(pattern, " ")
	return &Endpoint{Name: name, Pattern: pattern, Method: method, Path: path, Body: body, Spends: spends, Errors: errors}
}

// Endpoints lists all endpoints, in the order of interface section 4.
var Endpoints = [...]*Endpoint{
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

// EndpointNames lists the endpoints for messages, each as Endpoint.Pattern.
func EndpointNames() string {
	return listed(Endpoints[:], func(e *Endpoint) string { return e.Pattern })
}

// Lists reports whether section 4 lists status for the endpoint. It lists 200 for each.
func (e *Endpoint) Lists(status int) bool {
	return status == http.StatusOK || slices.Contains(e.Errors, status)
}

// Unlisted stands for a path that section 4 does not list. A call to it counts as a request.
var Unlisted = &Endpoint{Spends: []Counted{Requests}}

// Counts reports whether a call of the endpoint counts against limits on what. setsBYOK is
// true if a creation has LLMAPIKey.
func (e *Endpoint) Counts(what Counted, setsBYOK bool) bool {
	return slices.Contains(e.Spends, what) || setsBYOK && what == BYOKSets
}

// What a proxy may read as a slash, and the path segments that it may read as . or ..: some
// proxies decode escapes twice, drop what follows a semicolon, or trim spaces.
var (
	Slash      = regexp.MustCompile(`(?i)[/\\]|%(25)*(2f|5c)`)
	DotSegment = regexp.MustCompile(`(?i)^(\s|%(25)*20)*(\.|%(25)*2e){1,2}(\s|%(25)*20)*((;|\?|#|%(25)*(3b|3f|23))(?s:.*))?$`)
)

// AgentIDProblem says why an id could lead to another path behind some proxies; "" if it could
// not.
func AgentIDProblem(id string) string {
	switch {
	case strings.ContainsAny(id, ".%") && DotSegment.MatchString(id): // most ids skip the slow match
		return "must not be a dot segment, escaped or with ; after it"
	case strings.ContainsAny(id, `/\%`) && Slash.MatchString(id):
		return "must not contain a slash, escaped or not"
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl):
		return "must not contain control characters or invalid UTF-8"
	}
	return ""
}
