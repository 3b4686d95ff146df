package fakeserver

import (
	"net/http"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// answer is a complete answer, with its body as Calls shows it.
type answer struct {
	memnet.Response
	shown string
}

func (f *failure) answer(d *decided, date, traceID string) answer {
	e := errorReply{Error: d.errorName(f.code), TraceID: traceID, LimitKey: d.limitName(f.limit), Reason: f.reason}
	if !d.reason {
		e.Reason = ""
	}
	body := encode(e)
	a := newAnswer(f.status, date, body)
	a.shown = string(body)
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

// newAnswer makes an answer whose shown part is still empty.
func newAnswer(status int, date string, body []byte) answer {
	values := []string{"application/json", date, strconv.Itoa(len(body))} // in one slice, which saves allocations
	return answer{Response: memnet.Response{Status: status, Body: body, Header: http.Header{
		"Content-Type":   values[0:1:1],
		"Date":           values[1:2:2],
		"Content-Length": values[2:3:3],
	}}}
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

// badRequest names the field and its bound. Neither may quote a value, which
// may be a key or a message.
func badRequest(field, bound string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeBadRequest, reason: field + ": " + bound, member: field}
}

func unauthorized(reason string) *failure {
	return &failure{status: http.StatusUnauthorized, code: codeUnauthorized, reason: reason}
}

// The failures that are always the same.
var (
	noToken         = unauthorized("the Authorization header must be: Bearer, a space, and an API key")
	unknownKey      = unauthorized("the API key is unknown or revoked")
	paymentRequired = &failure{status: http.StatusPaymentRequired, code: codePaymentRequired, reason: "the plan of this API key is not active"}
	forbidden       = &failure{status: http.StatusForbidden, code: codeForbidden, reason: "BYOK requires a dashboard-issued API key"}
	noSuchAgent     = notFound("no agent of this API key has this identifier")
	noSuchPath      = notFound("no endpoint has this path")
	nothingStored   = notFound("no provider key is stored for this API key")
)

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
