// Package faults is the list of named faults that can hit a call to the service, for
// sweep.Test and the control interface of the standalone fake. Package fakeserver acts
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
	Name string `json:"name"`
	Says string `json:"says"` // what happens, in one sentence
	// Status is the status that interface 4 lists for the endpoint; 0 where the service
	// does not answer.
	Status int `json:"-"`
	// Fault makes the fake act out the fault.
	Fault fakeserver.Fault `json:"-"`
	// Takes is the time until the answer comes; ForEver if none comes.
	Takes time.Duration `json:"-"`
	// Own is set if a fault that lasts hits only calls of the endpoint where it began. Any
	// other fault that lasts hits calls of every endpoint that may give such an answer.
	Own bool `json:"-"`
}

// answers has the faults for each status of interface 7.
var answers = map[int][]Fault{
	400: {{Name: "bad_request", Says: "The service refuses the body.", Own: true}},
	401: {{Name: "unauthorized", Says: "The key is unknown or revoked."}},
	402: {{Name: "payment_required", Says: "The plan is inactive."}},
	403: {{Name: "forbidden", Says: "The key was not issued by the dashboard.", Own: true}},
	404: {{Name: "not_found", Says: "There is no such thing for this key.", Own: true}},
	409: {{Name: "conflict", Says: "No BYOK is configured.", Own: true}},
	429: {
		{Name: "limited_minute", Says: "A limit is used up for a minute.", Fault: fakeserver.RateLimited("60")},
		{Name: LimitedDay, Says: "A limit is used up for a day.", Fault: fakeserver.RateLimited("86400")},
	},
	503: {{Name: "unavailable", Says: "BYOK is not available.", Own: true}},
}

// ForEver is longer than any deadline.
const ForEver = 1 << 62

// The names of the faults that a sweep or the standalone fake picks out.
const (
	LimitedDay = "limited_day"
	ReplyLost  = "reply_lost"
	Silence    = "silence"
	Dripping   = "reply_dripping"
	// Refused is the one fault that has no effect over a socket, because the connection is
	// accepted before the fake sees it.
	Refused = "refused"
)

const html = "<html><body>The server is out to lunch.</body></html>"

func gateway(status int) fakeserver.Fault { return fakeserver.RawAnswer(status, "text/html", html) }

// anywhere lists the faults that can hit every call.
var anywhere = []Fault{
	{Name: "server_error", Says: "A proxy answers 500 with HTML; the call has no effect.", Fault: gateway(500)},
	{Name: "server_error_after", Says: "The call has its effect; the answer is a proxy's 500.", Fault: fakeserver.LoseReply(gateway(500))},
	{Name: "bad_gateway", Says: "A proxy answers 502 with HTML; the call has no effect.", Fault: gateway(502)},
	{Name: "gateway_timeout", Says: "The call has its effect; the answer is a proxy's 504.", Fault: fakeserver.LoseReply(gateway(504))},
	{Name: Refused, Says: "Nobody accepts the connection.", Fault: fakeserver.RefuseConnection()},
	{Name: "reset", Says: "The connection is reset; the call has no effect.", Fault: fakeserver.ResetConnection()},
	{Name: "reset_after", Says: "The call has its effect; the connection is reset before the answer.", Fault: fakeserver.LoseReply(fakeserver.ResetConnection())},
	{Name: ReplyLost, Says: "The call has its effect; the connection closes before the answer.", Fault: fakeserver.LoseReply(fakeserver.CloseEarly())},
	{Name: "reply_cut", Says: "The call has its effect; the answer breaks off.", Fault: fakeserver.TruncateReply(10)},
	{Name: "reply_garbled", Says: "The call has its effect; the answer is no JSON.", Fault: fakeserver.LoseReply(fakeserver.RawAnswer(200, "application/json", `{"trace_id": `))},
	{Name: Dripping, Says: "The call has its effect; the answer takes its time, byte by byte.", Fault: fakeserver.DripReply(1, 500*time.Millisecond), Takes: 30 * time.Second},
	{Name: Silence, Says: "The call has no effect; no answer comes.", Fault: fakeserver.Hang(), Takes: ForEver},
	{Name: "reply_silent", Says: "The call has its effect; no answer comes.", Fault: fakeserver.LoseReply(fakeserver.Hang()), Takes: ForEver},
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
	return append(fitting, anywhere...)
}

// Named returns the fault with a name, and the names of all faults.
func Named(name string) (found Fault, names []string) {
	for _, e := range spec.Endpoints {
		for _, f := range For(e) {
			if f.Name == name {
				found = f
			}
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return found, names
}
