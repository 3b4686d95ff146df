// Package spec is the Agent Messaging Service interface as data: endpoints
// with the statuses that each may answer, request members with their bounds,
// closed lists of values, limits and plans.
//
// Every number and every closed list of the interface is here, once. The
// client's validation, the fake's rules and the tables of the README read it;
// the contract suite does not, so that it notices when a table is wrong.
package spec

import "net/http"

// Endpoint is one row of interface section 4.
type Endpoint struct {
	// Name is the client method that calls the endpoint.
	Name string
	// Method and Path are the request line; Path holds {agent_id} where an
	// identifier goes.
	Method, Path string
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
	Status = &Endpoint{
		Name: "Status", Method: http.MethodGet, Path: "/v1/status",
		Errors: []int{401, 402, 404},
	}
	WarmUp = &Endpoint{
		Name: "WarmUp", Method: http.MethodPost, Path: "/v1/warmup",
		Errors: []int{400, 401, 402, 403, 409, 429, 503},
		Body:   []*Field{WarmUpMode}, BodyOptional: true,
		Spends: []Counted{Requests, WarmUps},
	}
	GetBYOK = &Endpoint{
		Name: "GetBYOK", Method: http.MethodGet, Path: "/v1/byok",
		Errors: []int{401, 402, 403, 404},
	}
	SetBYOK = &Endpoint{
		Name: "SetBYOK", Method: http.MethodPut, Path: "/v1/byok",
		Errors: []int{400, 401, 402, 403, 429, 503},
		Body:   []*Field{BYOKProvider, BYOKAPIKey, BYOKBaseURL, BYOKModel, BYOKLabel},
		Spends: []Counted{Requests, BYOKSets},
	}
	ClearBYOK = &Endpoint{
		Name: "ClearBYOK", Method: http.MethodDelete, Path: "/v1/byok",
		Errors: []int{401, 402, 403, 404},
	}
	CreateAgent = &Endpoint{
		Name: "CreateAgent", Method: http.MethodPost, Path: "/v1/agents",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{SystemPrompt, CustomerRef, Metadata, AgentSMS, AgentLLM},
		Spends: []Counted{Requests, AgentCreations}, // and BYOKSets, with llm.api_key
	}
	GetAgent = &Endpoint{
		Name: "GetAgent", Method: http.MethodGet, Path: "/v1/agents/{agent_id}",
		Errors: []int{401, 402, 404, 429},
		Spends: []Counted{Requests},
	}
	SendMessage = &Endpoint{
		Name: "SendMessage", Method: http.MethodPost, Path: "/v1/agents/{agent_id}/messages",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{MessageText, MessageUserRef},
		Spends: []Counted{Requests},
	}
	EnableSMS = &Endpoint{
		Name: "EnableSMS", Method: http.MethodPost, Path: "/v1/agents/{agent_id}/channels/sms",
		Errors: []int{400, 401, 402, 404, 429},
		Body:   []*Field{SMSChannelMode},
		Spends: []Counted{Requests},
	}
)

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

// Lists reports whether section 4 lists status for the endpoint; 200 is
// listed for each.
func (e *Endpoint) Lists(status int) bool {
	if status == http.StatusOK {
		return true
	}
	for _, s := range e.Errors {
		if s == status {
			return true
		}
	}
	return false
}
