package fakeserver

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// answer is a complete answer, with the parts of it that its record shows.
type answer struct {
	memnet.Response
	shown    string // the body as Calls shows it
	code     string // of an error
	reason   string // of an error
	limitKey string // of a 429
	member   string // of the request, that a 400 is about
}

func (f *failure) answer(d *decided, date, traceID string) answer {
	e := errorReply{Error: d.errorName(f.code), TraceID: traceID, LimitKey: d.limitName(f.limit), Reason: f.reason}
	if !d.reason {
		e.Reason = ""
	}
	body := encode(e)
	a := newAnswer(f.status, date, body)
	a.shown, a.code, a.reason, a.limitKey, a.member = string(body), e.Error, f.reason, e.LimitKey, f.member
	switch f.status {
	case http.StatusUnauthorized:
		a.Header["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		a.Header["Allow"] = []string{f.allow}
	case http.StatusTooManyRequests:
		a.Header["Retry-After"] = []string{strconv.Itoa(f.wait)}
	}
	return a
}

// newAnswer makes an answer whose record shows nothing yet.
func newAnswer(status int, date string, body []byte) answer {
	values := []string{"application/json", date, strconv.Itoa(len(body))} // in one slice, which saves allocations
	return answer{Response: memnet.Response{Status: status, Body: body, Header: http.Header{
		"Content-Type":   values[0:1:1],
		"Date":           values[1:2:2],
		"Content-Length": values[2:3:3],
	}}}
}

func encode(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the wire structs hold only what JSON can
	}
	return b
}

// failure describes an answer other than 200: interface 7.
type failure struct {
	status int
	code   string // the error member of the body
	reason string
	member string        // that a 400 is about
	limit  spec.LimitKey // 429 only
	wait   int           // seconds for Retry-After, 429 only
	allow  string        // the Allow header, 405 only
}

// Error identifiers. The interface shows only rate_limited (section 7); the
// fake chose the others.
const (
	codeBadRequest        = "bad_request"
	codeUnauthorized      = "unauthorized"
	codePaymentRequired   = "payment_required"
	codeForbidden         = "forbidden"
	codeNotFound          = "not_found"
	codeMethodNotAllowed  = "method_not_allowed"
	codeBYOKNotConfigured = "byok_not_configured"
	codeRateLimited       = "rate_limited"
	codeBYOKUnavailable   = "byok_unavailable"
)

// codes holds the identifier of each status that a script may ask for.
var codes = map[int]string{
	http.StatusBadRequest:      codeBadRequest,
	http.StatusUnauthorized:    codeUnauthorized,
	http.StatusPaymentRequired: codePaymentRequired,
	http.StatusNotFound:        codeNotFound,
	http.StatusTooManyRequests: codeRateLimited,
}

// errorName is the error of a body. Scripts may ask for any.
func (d *decided) errorName(code string) string { return cmp.Or(d.errorNames[code], code) }

func (d *decided) limitName(limit spec.LimitKey) string {
	switch limit {
	case spec.WarmUpKeyHour:
		return d.limitNames.warmUp
	case spec.KeyMinute:
		return d.limitNames.keyMinute
	}
	return d.otherNames[string(limit)]
}

// badRequest names the field and its bound. Neither may quote a value, which
// may be a key or a message.
func badRequest(field, bound string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeBadRequest, reason: field + ": " + bound, member: field}
}

func unauthorized(reason string) *failure {
	return &failure{status: http.StatusUnauthorized, code: codeUnauthorized, reason: reason}
}

func paymentRequired() *failure {
	return &failure{status: http.StatusPaymentRequired, code: codePaymentRequired,
		reason: "the plan of this API key is not active"}
}

func forbidden() *failure {
	return &failure{status: http.StatusForbidden, code: codeForbidden,
		reason: "BYOK requires a dashboard-issued API key"}
}

const unknownKey = "the API key is unknown or revoked"

func noSuchAgent() *failure { return notFound("no agent of this API key has this identifier") }

func noSuchPath() *failure { return notFound("no endpoint has this path") }

func notFound(reason string) *failure {
	return &failure{status: http.StatusNotFound, code: codeNotFound, reason: reason}
}

func methodNotAllowed(allow string) *failure {
	return &failure{status: http.StatusMethodNotAllowed, code: codeMethodNotAllowed,
		reason: "this path takes " + allow, allow: allow}
}

func rateLimited(limit spec.LimitKey, wait int) *failure {
	return &failure{status: http.StatusTooManyRequests, code: codeRateLimited, limit: limit, wait: wait}
}

// byokNotConfigured is a 409 for warm-up, which lists it, and a 400 elsewhere.
// field is the member that needs the missing configuration.
func byokNotConfigured(status int, field *spec.Field) *failure {
	return &failure{status: status, code: codeBYOKNotConfigured, member: field.Path,
		reason: field.Path + ": byok needs a BYOK configuration, and none is set for this API key"}
}

// byokUnavailable is a 503 where the endpoint lists it, and a 400 elsewhere.
// field is the member that needs the store.
func byokUnavailable(status int, field *spec.Field) *failure {
	return &failure{status: status, code: codeBYOKUnavailable, member: field.Path,
		reason: field.Path + ": BYOK is not available, so no provider key can be used or stored"}
}

// canned is the answer that a fault gives.
type canned struct {
	status      int
	body        string  // "" means the fake's own error body, unless raw
	raw         bool    // send no header but contentType, Content-Length and Date
	contentType string  // for raw answers; "" sends none
	retryAfter  *string // replaces the fake's own; "" sends none
}

// wait is how long a 429 closes its limit.
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
		counts := l.Counts == spec.Requests || e.Counts(l.Counts, e == spec.SetBYOK)
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

// codeOf is the error identifier for the status of a fault: the fake's own, or
// the name of the status.
func codeOf(status int) string {
	if code, ok := codes[status]; ok {
		return code
	}
	if name := http.StatusText(status); name != "" {
		return strings.ReplaceAll(strings.ToLower(name), " ", "_")
	}
	return "status_" + strconv.Itoa(status)
}

// replyFields are the members of answers whose texts a record may hold.
var replyFields = []*spec.Field{
	{Path: "error"}, {Path: "reason"}, {Path: "limit_key"}, {Path: "trace_id"}, {Path: "status"}, {Path: "agent_id"},
	{Path: "service"}, {Path: "version"}, {Path: "mode"}, {Path: "provider"},
}
