package wire

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/names"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Phase says when a fault acts. So it decides whether the call has its effect.
type Phase int

// The phases.
const (
	// InsteadOfCall: the service never sees the call, as if a proxy answered it.
	InsteadOfCall Phase = iota
	// BeforeConnecting: no connection is made, and nothing is sent.
	BeforeConnecting
	// OnTheWay: the call arrives later, or after a change. It may be combined with one
	// fault of another phase.
	OnTheWay
	// OnTheReply: the call has its effect, and its answer is changed or lost.
	OnTheReply
)

// Fault makes a call go wrong. A Fault never changes, so a test may use one Fault for
// many calls at once. The functions of package fakeserver make faults. Fields that a
// fault does not need are zero.
type Fault struct {
	// Name is the Go call that made the fault, such as LoseReply(Hang()).
	Name string
	// Did describes what the fault did to an answer; "" for a fault that cuts the answer,
	// perhaps beyond its end.
	Did   string
	Phase Phase
	// Delay and Change are for faults on the way; nil changes nothing.
	Delay  time.Duration
	Change func()
	// Answer replaces the service's answer; nil keeps it.
	Answer *InjectedAnswer
	// Delivery says how the answer is sent.
	Delivery memnet.Delivery
}

// Why says in one sentence what the fault did to a call, and whether the call had its
// effect. message is true if the call is a message. decided is the status that the
// service decided, body the length of the whole answer in bytes. Why returns "" if the
// fault changed nothing, such as a cut beyond the end of the answer.
func (f *Fault) Why(message bool, decided, body int) string {
	did := f.Did
	switch {
	case f.Phase == BeforeConnecting:
		return f.Name + " refused the connection: nothing was sent."
	case did == "" && f.Delivery.Sent >= body:
		return ""
	case did == "":
		did = fmt.Sprintf("cut the answer after %d of %d bytes", f.Delivery.Sent, body)
	}
	return f.Name + " " + did + "; " + f.effect(message, decided) + "."
}

// effect tells the author of a test whether a retry would repeat what the call did.
func (f *Fault) effect(message bool, decided int) string {
	switch {
	case f.Phase != OnTheReply:
		return "the call had no effect"
	case decided == 200 && message:
		return "the agent has the message"
	case decided >= 200 && decided < 300:
		return "the call had its effect"
	}
	return "the service had refused it with " + strconv.Itoa(decided)
}

// InjectedAnswer is an answer that a test gives in place of the service's answer. It may
// break every rule of the interface.
type InjectedAnswer struct {
	Status int
	// Body is the body; "" means the service's own error body, unless Raw is set or Status
	// is a success. 204 and 304 have no body.
	Body string
	// Raw leaves out every header but ContentType, Content-Length and Date.
	Raw bool
	// ContentType is the Content-Type of a raw answer; "" sends none.
	ContentType string
	// RetryAfter replaces the service's own Retry-After; "" sends none, and nil keeps the
	// service's.
	RetryAfter *string
}

// Encode makes the answer to a request. It starts from the answer that the service
// itself would give with this status, and replaces what the test has named.
func (i *InjectedAnswer) Encode(req *Request, behavior *service.Behavior, now time.Time) Answer {
	a := Encode(req, &service.Answer{Refusal: i.refusal(req.Endpoint, now)}, behavior, now.Format(http.TimeFormat))
	// A raw answer has only the parts that the test gave, and a date.
	if i.Raw {
		a.Header = http.Header{"Content-Type": headerValue(i.ContentType), "Date": a.Header["Date"]}
	}
	if i.RetryAfter != nil {
		a.Header["Retry-After"] = headerValue(*i.RetryAfter)
	}
	// An error status without a body keeps the service's own error body.
	if i.Raw || i.Body != "" || i.Status < http.StatusMultipleChoices {
		a.Body, a.FromTest = []byte(i.Body), true
	}
	a.Header["Content-Length"] = headerValue(strconv.Itoa(len(a.Body)))
	if i.Status == http.StatusNoContent || i.Status == http.StatusNotModified { // no body: RFC 9110, 6.4.1
		a.Body, a.Header["Content-Type"], a.Header["Content-Length"] = nil, nil, nil
	}
	return a
}

// headerValue returns the values of a header: one, or none for "". A header without a
// value is not sent, and keeps net/http from guessing a Content-Type.
func headerValue(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// refusal returns the refusal that the service itself would make with this status, if
// interface 4 lists it for the endpoint. So a client that switches on error identifiers
// sees the service's own identifiers.
func (i *InjectedAnswer) refusal(e *spec.Endpoint, now time.Time) *service.Refusal {
	r := &service.Refusal{Status: i.Status, Code: codeOf(i.Status), Broken: "injected by the test"}
	if e != nil && e.Lists(i.Status) {
		r.Code = service.CodeOf(i.Status)
	}
	if i.Status == http.StatusTooManyRequests {
		r.Limit, r.Wait, r.Broken = names.KeyMinute, 1, ""
		// A wait of more than a minute belongs to the limit per day.
		if i.RetryAfter != nil && retryafter.Read(http.Header{"Retry-After": {*i.RetryAfter}}, now) > time.Minute {
			r.Limit = names.KeyDay
		}
	}
	return r
}

// codeOf returns the error identifier for the status of a fault: the name of the status,
// such as bad_gateway. service.Kinds has the identifiers of the service's own errors.
func codeOf(status int) string {
	if status == http.StatusTooManyRequests {
		return spec.RateLimited
	}
	name := cmp.Or(http.StatusText(status), "status "+strconv.Itoa(status))
	return strings.ReplaceAll(strings.ToLower(name), " ", "_")
}
