// Package spec is the Agent Messaging Service interface as data: endpoints
// with the statuses that each may answer, request members with their bounds,
// closed lists of values, limits and plans.
//
// Every number and every closed list of the interface is here, once; package
// agentmessaging names the values of the lists as constants. The client's validation,
// the fake's rules and the tables of docs/limits.md read it; the contract suite does
// not, so that it notices when a table is wrong.
package spec

import (
	"net/http"
	"slices"
	"strings"
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
	// Body lists the members of the request body; nil means that the
	// endpoint takes none.
	Body []*Field
	// BodyOptional is true where the body may be absent (warm-up).
	BodyOptional bool
	// Spends is what a call of the endpoint counts as in Limits. An endpoint that
	// lists no 429 counts as nothing.
	Spends []Counted
}

// The endpoints, in the order of interface section 4.
var (
	Status = endpoint("GET /v1/status", Endpoint{
		Name:   "Status",
		Errors: []int{401, 402, 404},
	})
	WarmUp = endpoint("POST /v1/warmup", Endpoint{
		Name:   "WarmUp",
		Errors: []int{400, 401, 402, 403, 409, 429, 503},
		Body:   []*Field{WarmUpMode}, BodyOptional: true,
		Spends: []Counted{Requests, WarmUps},
	})
	GetBYOK = endpoint("GET /v1/byok", Endpoint{
		Name:   "GetBYOK",
		Errors: []int{401, 402, 403, 404},
	})
	SetBYOK = endpoint("PUT /v1/byok", Endpoint{
		Name:   "SetBYOK",
		Errors: []int{400, 401, 402, 403, 429, 503},
		Body:   []*Field{BYOKProvider, BYOKAPIKey, BYOKBaseURL, BYOKModel, BYOKLabel},
		Spends: []Counted{Requests, BYOKSets},
	})
	ClearBYOK = endpoint("DELETE /v1/byok", Endpoint{
		Name:   "ClearBYOK",
		Errors: []int{401, 402, 403, 404},
	})
	CreateAgent = endpoint("POST /v1/agents", Endpoint{
		Name:   "CreateAgent",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{SystemPrompt, CustomerRef, Metadata, AgentSMS, AgentLLM},
		Spends: []Counted{Requests, AgentCreations}, // and BYOKSets, with llm.api_key
	})
	GetAgent = endpoint("GET /v1/agents/{agent_id}", Endpoint{
		Name:   "GetAgent",
		Errors: []int{401, 402, 404, 429},
		Spends: []Counted{Requests},
	})
	SendMessage = endpoint("POST /v1/agents/{agent_id}/messages", Endpoint{
		Name:   "SendMessage",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{MessageText, MessageUserRef},
		Spends: []Counted{Requests},
	})
	EnableSMS = endpoint("POST /v1/agents/{agent_id}/channels/sms", Endpoint{
		Name:   "EnableSMS",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{SMSChannelMode},
		Spends: []Counted{Requests},
	})
)

func endpoint(call string, e Endpoint) *Endpoint {
	e.Call = call
	e.Method, e.Path, _ = strings.Cut(call, " ")
	return &e
}

// Endpoints are all nine, in the order of interface section 4.
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

// Lists reports whether section 4 lists status for the endpoint; 200 is
// listed for each.
func (e *Endpoint) Lists(status int) bool {
	return status == http.StatusOK || slices.Contains(e.Errors, status)
}
