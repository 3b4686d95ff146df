package wire

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Phase is when a fault acts.
type Phase int

// The phases.
const (
	InsteadOfCall Phase = iota
	BeforeConnecting
	OnTheWay
	OnTheReply
)

// Fault makes a call go wrong. It never changes.
type Fault struct {
	Name     string
	Phase    Phase
	Delay    time.Duration   // on the way
	Change   func()          // on the way; nil means none
	Canned   *Canned         // replaces the service's answer; nil keeps it
	Delivery memnet.Delivery // how the answer leaves
}

// Canned is an answer that a test gives.
type Canned struct {
	Status      int
	Body        string  // "" means the service's own error body, unless Raw
	Raw         bool    // send no header but ContentType, Content-Length and Date
	ContentType string  // of a raw answer; "" sends none
	RetryAfter  *string // replaces the service's own; "" sends none
}

// Encode makes the answer to a request.
func (c *Canned) Encode(req *Request, by *service.Behavior, now time.Time) Answer {
	a := Encode(service.Answer{Refusal: c.refusal(req, now)}, by, req.TraceID, now.Format(http.TimeFormat))
	if c.Raw || c.Body != "" {
		a.Body, a.Foreign = []byte(c.Body), true
	}
	a.Header["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	if c.Raw {
		a.Header = http.Header{
			"Content-Type": {c.ContentType}, "Content-Length": a.Header["Content-Length"], "Date": a.Header["Date"],
		}
	}
	if c.RetryAfter != nil {
		a.Header["Retry-After"] = []string{*c.RetryAfter}
	}
	for name, values := range a.Header {
		if values[0] == "" {
			delete(a.Header, name)
		}
	}
	if _, has := a.Header["Content-Type"]; !has {
		a.Header["Content-Type"] = nil // without this net/http would guess one
	}
	if c.Status == http.StatusNoContent || c.Status == http.StatusNotModified { // no body: RFC 9110, 6.4.1
		a.Body, a.Header["Content-Type"] = nil, nil
		delete(a.Header, "Content-Length")
	}
	return a
}

// refusal returns the service's own refusal with the status, where it has one for
// the endpoint.
func (c *Canned) refusal(req *Request, now time.Time) *service.Refusal {
	e, about := req.Endpoint, ""
	kind := map[int]service.Kind{
		401: service.UnknownKey, 402: service.PaymentRequired, 403: service.NotDashboard, 404: service.NoSuchPath, 429: service.RateLimited,
	}[c.Status]
	switch {
	case c.Status == 404 && req.AgentID != "":
		kind = service.NoSuchAgent
	case c.Status == 404 && e == spec.ClearBYOK:
		kind = service.NothingStored
	case c.Status == 409 && e == spec.WarmUp:
		kind, about = service.BYOKNotConfigured, spec.WarmUpMode.Path
	case c.Status == 503 && e == spec.WarmUp:
		kind, about = service.BYOKUnavailable, spec.WarmUpMode.Path
	case c.Status == 503 && e == spec.SetBYOK:
		kind, about = service.BYOKUnavailable, spec.BYOKAPIKey.Path
	}
	if kind == 0 {
		return &service.Refusal{Status: c.Status, Code: Code(c.Status), Broken: "injected by the test"}
	}
	r := service.Refuse(kind)
	if r.Field = about; kind == service.RateLimited {
		r.Limit, r.Wait = limitFor(e, c.wait(now)), 1
	}
	return r
}

// Code is the error identifier for the status of a fault or a script: the name of
// the status.
func Code(status int) string {
	if status == http.StatusTooManyRequests {
		return spec.RateLimited
	}
	name := cmp.Or(http.StatusText(status), "status "+strconv.Itoa(status))
	return strings.ReplaceAll(strings.ToLower(name), " ", "_")
}

func (c *Canned) wait(now time.Time) time.Duration {
	if c.RetryAfter == nil {
		return time.Second
	}
	if at, err := http.ParseTime(*c.RetryAfter); err == nil {
		return at.Sub(now)
	}
	seconds, _ := strconv.ParseFloat(*c.RetryAfter, 64)
	return time.Duration(min(seconds, spec.Day.Seconds()) * float64(time.Second))
}

// limitFor is the limit on calls of an endpoint with the shortest window that
// can be closed for that long, and the longest where none can.
func limitFor(e *spec.Endpoint, wait time.Duration) spec.LimitKey {
	best := spec.Limit{Key: spec.KeyDay, Window: spec.Day + 1}
	for _, l := range spec.Limits {
		counts := l.Counts == spec.Requests || e.Counts(l.Counts, false)
		if counts && l.Window >= wait && l.Window < best.Window {
			best = l
		}
	}
	return best.Key
}
