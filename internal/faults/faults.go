// Package faults is the list of named faults that can hit a call to the service, for
// sweep.Test and the control interface of the standalone fake. Package fakeserver carries
// them out.
package faults

import (
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Fault is a fault with a name.
type Fault struct {
	Name        string `json:"name"`
	Description string `json:"says"` // what happens, in one sentence
	// Status is the status that interface 4 lists for the endpoint; 0 for a fault of the
	// connection or of a proxy.
	Status int `json:"-"`
	// Fault is the fault to inject into the fake.
	Fault fakeserver.Fault `json:"-"`
	// Duration is the time until the client has the answer or an error; Forever if it gets
	// neither.
	Duration time.Duration `json:"-"`
	// SameEndpointOnly is set if a fault that lasts hits only calls of the endpoint where
	// it began. Any other fault that lasts hits calls of every endpoint that may give such
	// an answer.
	SameEndpointOnly bool `json:"-"`
}

// answers has the faults for each status of interface 7.
var answers = map[int][]Fault{
	400: {{Name: "bad_request", Description: "The service refuses the body.", SameEndpointOnly: true}},
	401: {{Name: "unauthorized", Description: "The key is unknown or revoked."}},
	402: {{Name: "payment_required", Description: "The plan is inactive."}},
	403: {{Name: "forbidden", Description: "The key was not issued by the dashboard.", SameEndpointOnly: true}},
	404: {{Name: "not_found", Description: "There is no such thing for this key.", SameEndpointOnly: true}},
	409: {{Name: "conflict", Description: "No BYOK is configured.", SameEndpointOnly: true}},
	429: {
		{Name: "limited_minute", Description: "A limit is used up for a minute.", Fault: fakeserver.RateLimited("60")},
		{Name: LimitedDay, Description: "A limit is used up for a day.", Fault: fakeserver.RateLimited("86400")},
	},
	503: {{Name: "unavailable", Description: "BYOK is not available.", SameEndpointOnly: true}},
}

// Forever is longer than any deadline.
const Forever = 1 << 62

// The names of the faults that a sweep or the standalone fake picks out.
const (
	LimitedDay = "limited_day"
	ReplyLost  = "reply_lost"
	Silence    = "silence"
	// Refused is the one fault that has no effect over a socket, because the connection is
	// accepted before the fake sees it.
	Refused = "refused"
)

const html = "<html><body>The server is out to lunch.</body></html>"

func gateway(status int) fakeserver.Fault { return fakeserver.RawAnswer(status, "text/html", html) }

// Dripping makes an answer take half a minute.
var Dripping = Fault{Name: "reply_dripping", Description: "The call has its effect; the answer takes its time, byte by byte.",
	Fault: fakeserver.DripReply(1, 500*time.Millisecond), Duration: 30 * time.Second}

// anyEndpoint lists the faults that can hit every call.
var anyEndpoint = []Fault{
	{Name: "server_error", Description: "A proxy answers 500 with HTML; the call has no effect.", Fault: gateway(500)},
	{Name: "server_error_after", Description: "The call has its effect; the answer is a proxy's 500.", Fault: fakeserver.LoseReply(gateway(500))},
	{Name: "bad_gateway", Description: "A proxy answers 502 with HTML; the call has no effect.", Fault: gateway(502)},
	{Name: "gateway_timeout", Description: "The call has its effect; the answer is a proxy's 504.", Fault: fakeserver.LoseReply(gateway(504))},
	{Name: Refused, Description: "Nobody accepts the connection.", Fault: fakeserver.RefuseConnection()},
	{Name: "reset", Description: "The connection is reset; the call has no effect.", Fault: fakeserver.ResetConnection()},
	{Name: "reset_after", Description: "The call has its effect; the connection is reset before the answer.", Fault: fakeserver.LoseReply(fakeserver.ResetConnection())},
	{Name: ReplyLost, Description: "The call has its effect; the connection closes before the answer.", Fault: fakeserver.LoseReply(fakeserver.CloseEarly())},
	{Name: "reply_cut", Description: "The call has its effect; the answer breaks off.", Fault: fakeserver.TruncateReply(10)},
	{Name: "reply_garbled", Description: "The call has its effect; the answer is no JSON.", Fault: fakeserver.LoseReply(fakeserver.RawAnswer(200, "application/json", `{"trace_id": `))},
	Dripping,
	{Name: Silence, Description: "The call has no effect; no answer comes.", Fault: fakeserver.Hang(), Duration: Forever},
	{Name: "reply_silent", Description: "The call has its effect; no answer comes.", Fault: fakeserver.LoseReply(fakeserver.Hang()), Duration: Forever},
}

// For returns the faults that can hit a call of the endpoint: the statuses that interface
// 4 lists for it, and the faults of the connection and of proxies.
func For(endpoint *spec.Endpoint) []Fault {
	var fitting []Fault
	for _, status := range endpoint.Errors {
		for _, f := range answers[status] {
			f.Status = status
			if f.Fault == (fakeserver.Fault{}) {
				f.Fault = fakeserver.Answer(status, "")
			}
			fitting = append(fitting, f)
		}
	}
	return append(fitting, anyEndpoint...)
}

// All returns every fault once.
func All() (all []Fault) {
	for _, e := range spec.Endpoints {
		for _, f := range For(e) {
			if !slices.ContainsFunc(all, func(known Fault) bool { return known.Name == f.Name }) {
				all = append(all, f)
			}
		}
	}
	return all
}
