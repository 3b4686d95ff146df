package fakeserver

import (
	"cmp"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Answer answers with a status from 200 to 599 and a body, as application/json.
// With an empty body it sends the error body that the service sends for that
// status and endpoint (interface 7), with the call's trace identifier. A 429
// carries Retry-After: 1; RateLimited makes others. Any other status panics.
func Answer(status int, body string) Fault {
	checkStatus("Answer", status)
	return Fault{&fault{name: fmt.Sprintf("Answer(%d%s)", status, sized(body)), canned: &canned{status: status, body: body}}}
}

// RawAnswer answers with a status from 200 to 599, a Content-Type and a body,
// all unchanged: HTML, broken JSON, nothing at all. An empty contentType sends
// no such header. Another status panics, and so does a contentType that no
// header can hold.
func RawAnswer(status int, contentType, body string) Fault {
	checkStatus("RawAnswer", status)
	checkHeader("RawAnswer", contentType)
	return Fault{&fault{name: fmt.Sprintf("RawAnswer(%d%s)", status, sized(body)),
		canned: &canned{status: status, body: body, raw: true, contentType: contentType}}}
}

// RateLimited answers 429 rate_limited with this Retry-After, unchanged: a
// number, a fraction, a date, nonsense. "" sends no such header. limit_key names
// the shortest limit on such calls that can stay closed for that long. A value
// that no header can hold panics.
func RateLimited(retryAfter string) Fault {
	checkHeader("RateLimited", retryAfter)
	shown := characters(retryAfter)
	if _, err := strconv.ParseFloat(retryAfter, 64); err == nil || retryAfter == "" {
		shown = strconv.Quote(retryAfter)
	}
	// A client cannot see the space around a header's value.
	value := textproto.TrimString(retryAfter)
	return Fault{&fault{name: "RateLimited(" + shown + ")", canned: &canned{status: http.StatusTooManyRequests, retryAfter: &value}}}
}

type canned struct {
	status      int
	body        string  // "" means the fake's own error body, unless raw
	raw         bool    // send no header but contentType, Content-Length and Date
	contentType string  // for raw answers; "" sends none
	retryAfter  *string // replaces the fake's own; "" sends none
}

func (c *canned) wait(now time.Time) time.Duration {
	if c.retryAfter == nil {
		return time.Second
	}
	if at, err := http.ParseTime(*c.retryAfter); err == nil {
		return at.Sub(now)
	}
	seconds, _ := strconv.ParseFloat(*c.retryAfter, 64)
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

// withoutEmpty removes the headers whose value is empty. Content-Type stays
// without values, since net/http would guess one.
func (a answer) withoutEmpty() answer {
	for name, values := range a.Header {
		if values[0] == "" {
			delete(a.Header, name)
		}
	}
	if _, has := a.Header["Content-Type"]; !has {
		a.Header["Content-Type"] = nil
	}
	return a
}

// bodiless removes the body where the status allows none (RFC 9110, 6.4.1).
func (c *canned) bodiless(a answer) answer {
	if c.status == http.StatusNoContent || c.status == http.StatusNotModified {
		a.Body, a.Header["Content-Type"] = nil, nil
		delete(a.Header, "Content-Length")
	}
	return a
}

// codeOf is the error identifier for the status of a fault or a script: the name of
// the status, from which the fake's own differ for 429 only.
func codeOf(status int) string {
	if status == http.StatusTooManyRequests {
		return codeRateLimited
	}
	name := cmp.Or(http.StatusText(status), "status "+strconv.Itoa(status))
	return strings.ReplaceAll(strings.ToLower(name), " ", "_")
}

func (c *canned) answer(by *choices, req *request, date string) answer {
	a := c.failure(req).answer(by, date, req.traceID())
	if c.raw || c.body != "" {
		a.Body, a.foreign = []byte(c.body), true
	}
	a.Header["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	if c.raw {
		a.Header = http.Header{
			"Content-Type": {c.contentType}, "Content-Length": a.Header["Content-Length"], "Date": a.Header["Date"],
		}
	}
	if c.retryAfter != nil {
		a.Header["Retry-After"] = []string{*c.retryAfter}
	}
	return c.bodiless(a.withoutEmpty())
}

// failure returns the service's own failure with the status, where it has one for
// the endpoint.
func (c *canned) failure(req *request) *failure {
	f := &failure{status: c.status, code: codeOf(c.status), reason: "injected by the test"}
	var e *spec.Endpoint
	if req.route != nil {
		e = req.route.spec
	}
	switch {
	case c.status == http.StatusUnauthorized:
		f = unknownKey
	case c.status == http.StatusPaymentRequired:
		f = paymentRequired
	case c.status == http.StatusForbidden:
		f = forbidden
	case c.status == http.StatusNotFound && req.agentID != "":
		f = noSuchAgent
	case c.status == http.StatusNotFound && e == spec.ClearBYOK:
		f = nothingStored
	case c.status == http.StatusNotFound:
		f = noSuchPath
	case c.status == http.StatusConflict && e == spec.WarmUp:
		f = byokNotConfigured(e, spec.WarmUpMode)
	case c.status == http.StatusServiceUnavailable && e == spec.WarmUp:
		f = byokUnavailable(e, spec.WarmUpMode)
	case c.status == http.StatusServiceUnavailable && e == spec.SetBYOK:
		f = byokUnavailable(e, spec.BYOKAPIKey)
	case c.status == http.StatusTooManyRequests:
		f = rateLimited(limitFor(e, c.wait(req.now)), 1)
	}
	return f
}

// outcome returns the answer to send: the one that the service decided, or the
// fault's. A callback that panicked has decided nothing.
func (s *Server) outcome(req *request, decided answer) answer {
	if req.fault != nil && req.fault.canned != nil {
		return req.fault.canned.answer(s.config.choices, req, s.date())
	}
	return decided
}

func checkStatus(method string, status int) {
	if status < 200 || status > 599 {
		misuse(method, "%d is no status from 200 to 599", status)
	}
}

// checkHeader refuses a value that would end the header's line. It does not
// repeat the value: swapped arguments may have put a key there.
func checkHeader(method, value string) {
	if memnet.HoldsControl(value) {
		misuse(method, "the header's value holds a control character")
	}
}
