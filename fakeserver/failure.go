package fakeserver

import (
	"net/http"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// failure is an answer other than 200: interface 7.
type failure struct {
	status int
	code   string // the body's error
	reason string
	limit  spec.LimitKey // 429 only
	wait   int           // seconds for Retry-After, 429 only
	allow  string        // the Allow header, 405 only
}

// Error identifiers. The interface shows rate_limited only (section 7); the
// others are the fake's.
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

// codes are the identifiers for statuses that a script chooses without one.
var codes = map[int]string{
	http.StatusBadRequest:      codeBadRequest,
	http.StatusUnauthorized:    codeUnauthorized,
	http.StatusPaymentRequired: codePaymentRequired,
	http.StatusNotFound:        codeNotFound,
	http.StatusTooManyRequests: codeRateLimited,
}

// badRequest names the field and the bound that it breaks. Neither may quote a
// value: it may be a key or a message.
func badRequest(field, bound string) *failure {
	return &failure{status: http.StatusBadRequest, code: codeBadRequest, reason: field + ": " + bound}
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
// field is the member that asks for what is not there.
func byokNotConfigured(status int, field *spec.Field) *failure {
	return &failure{status: status, code: codeBYOKNotConfigured,
		reason: field.Path + ": byok needs a BYOK configuration, and none is set for this API key"}
}

// byokUnavailable is a 503 where the endpoint lists it, and a 400 elsewhere.
// field is the member that asks for it.
func byokUnavailable(status int, field *spec.Field) *failure {
	return &failure{status: status, code: codeBYOKUnavailable,
		reason: field.Path + ": BYOK is not available, so no provider key can be used or stored"}
}
