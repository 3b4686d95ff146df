package wire

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/names"
	"github.com/agent-messaging-service/agentmessaging-go/internal/retryafter"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

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

// refusal returns the refusal that the service itself would make with this status, if
// interface 4 lists it for the endpoint. So a client that switches on error identifiers
// sees the service's own identifiers. For any other status the identifier is its name, such
// as bad_gateway.
func (i *InjectedAnswer) refusal(e *spec.Endpoint, now time.Time) *service.Refusal {
	name := cmp.Or(http.StatusText(i.Status), "status "+strconv.Itoa(i.Status))
	r := &service.Refusal{Status: i.Status, Code: strings.ReplaceAll(strings.ToLower(name), " ", "_"), Broken: "injected by the test"}
	if e != nil && e.Lists(i.Status) {
		r.Code = service.CodeOf(i.Status)
	}
	if i.Status == http.StatusTooManyRequests {
		r.Code, r.Limit, r.Wait, r.Broken = spec.RateLimited, names.KeyMinute, 1, ""
		// A wait of more than a minute belongs to the limit per day.
		if i.RetryAfter != nil && retryafter.Read(http.Header{"Retry-After": {*i.RetryAfter}}, now) > time.Minute {
			r.Limit = names.KeyDay
		}
	}
	return r
}
