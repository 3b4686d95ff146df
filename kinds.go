package agentmessaging

import (
	"errors"
	"net/http"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Kinds of errors, for errors.Is. Statuses that the interface does not list
// and that are not 5xx have no kind; [Error].StatusCode tells them.
var (
	// ErrBadRequest is status 400: the service refused the body. Do not
	// repeat the call unchanged (interface 7).
	ErrBadRequest = errors.New("agentmessaging: bad request")
	// ErrUnauthorized is status 401: the API key is missing, unknown or
	// revoked (interface 5).
	ErrUnauthorized = errors.New("agentmessaging: unauthorized")
	// ErrPaymentRequired is status 402: the plan is inactive (interface 5).
	ErrPaymentRequired = errors.New("agentmessaging: payment required")
	// ErrForbidden is status 403: a BYOK operation with a key that the
	// dashboard did not issue (interface 5).
	ErrForbidden = errors.New("agentmessaging: forbidden")
	// ErrNotFound is status 404: no such agent for this key.
	ErrNotFound = errors.New("agentmessaging: not found")
	// ErrConflict is status 409: warm-up in byok mode without a BYOK
	// configuration (interface 4.2).
	ErrConflict = errors.New("agentmessaging: conflict")
	// ErrRateLimited is status 429, answered by the service or, with
	// [Error].Local set, by the client's cool-down or limiter (interface 8).
	ErrRateLimited = errors.New("agentmessaging: rate limited")
	// ErrUnavailable is status 503: BYOK is not available (interface 7).
	ErrUnavailable = errors.New("agentmessaging: unavailable")
	// ErrServer is any other 5xx, from the service or a proxy before it. To a
	// POST, it comes inside an [*OutcomeUnknownError].
	ErrServer = errors.New("agentmessaging: server error")
	// ErrOutcomeUnknown is the kind of every [*OutcomeUnknownError].
	ErrOutcomeUnknown = errors.New("agentmessaging: outcome unknown")
	// ErrInvalid is the kind of every [*ValidationError].
	ErrInvalid = errors.New("agentmessaging: invalid argument")
)

// kinds has the kind of each status that the interface lists, and what to do
// next, where neither a wait nor the cause says it.
var kinds = map[int]struct {
	err    error
	advice string
}{
	http.StatusBadRequest:         {ErrBadRequest, "correct the call"},
	http.StatusUnauthorized:       {ErrUnauthorized, "check the API key"},
	http.StatusPaymentRequired:    {ErrPaymentRequired, "activate a plan in the dashboard"},
	http.StatusForbidden:          {ErrForbidden, "use a key that the dashboard issued"},
	http.StatusNotFound:           {ErrNotFound, "check the base address"},
	http.StatusConflict:           {ErrConflict, "store a provider key first"},
	http.StatusTooManyRequests:    {ErrRateLimited, ""},
	http.StatusServiceUnavailable: {ErrUnavailable, ""},
}

// adviceOn says what to do next, where neither a wait nor the cause does. A 400 that
// names no error, and a 403 or 409 that the interface does not list, come from a
// proxy and mean something else.
func adviceOn(status int, code, method, path string) string {
	switch of := spec.Find(method, path); status {
	case http.StatusBadRequest:
		if code == "" {
			return ""
		}
	case http.StatusNotFound:
		switch {
		case strings.Contains(path, "{agent_id}"):
			return "check the agent's id and the key"
		case of == spec.ClearBYOK:
			return "there may be nothing to clear"
		}
	case http.StatusForbidden, http.StatusConflict:
		if of == nil || !of.Lists(status) {
			return ""
		}
	}
	return kinds[status].advice
}

func kindOf(status int) error {
	if kind, ok := kinds[status]; ok {
		return kind.err
	}
	if isServerError(status) && status <= 599 {
		return ErrServer
	}
	return nil
}

func isSuccess(status int) bool { return status >= 200 && status <= 299 }

// isServerError counts what is above 599 too, which HTTP does not know: the service
// may have done the work.
func isServerError(status int) bool { return status >= 500 }
