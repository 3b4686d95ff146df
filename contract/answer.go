package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// answer is an exchange of a case, and what the interface says of it.
type answer struct {
	exchange
	s *session
}

// errorCodes are the values of error by status on a target that claims the
// decisions. Every error answer is held to them.
var errorCodes = map[int][]string{
	400: {"bad_request", "byok_not_configured", "byok_unavailable"},
	401: {"unauthorized"},
	402: {"payment_required"},
	403: {"forbidden"},
	404: {"not_found"},
	405: {"method_not_allowed"},
	409: {"byok_not_configured"},
	429: {"rate_limited"},
	503: {"byok_unavailable"},
}

// want fails the case, with the exchange, unless ok.
func (a answer) want(ok bool, format string, args ...any) {
	a.s.Helper()
	if !ok {
		a.s.failf("%s\n%s", fmt.Sprintf(format, args...), a)
	}
}

// is fails unless the answer has the status, and the shape that the interface
// gives every answer of that status.
func (a answer) is(status int) answer {
	a.s.Helper()
	if a.status != status && (a.status == http.StatusTooManyRequests || status == http.StatusTooManyRequests) {
		a.s.skipIfBroken()
	}
	a.want(a.status == status, "want status %d", status)
	a.keepsSecrets()
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	a.want(mediaType == "application/json", "Content-Type is %q", a.header.Get("Content-Type"))
	if status == http.StatusOK {
		problem := a.s.shapeOf(a.endpoint)(a.value())
		a.want(problem == "", "%s", problem)
		a.want(!a.s.target.Decisions || a.at("ok") != false, "ok is false")
	} else {
		a.isError()
	}
	a.isTraced()
	return a
}

// listed wants any status that section 4 lists for the endpoint.
func (a answer) listed() answer {
	a.s.Helper()
	a.want(a.status == 200 || slices.Contains(a.endpoint.errors, a.status), "want 200 or one of %v", a.endpoint.errors)
	return a.is(a.status)
}

// isError wants the error body of interface 2.1, and for 429 what interface 7
// adds to it.
func (a answer) isError() {
	a.s.Helper()
	body := shape{"error": isText, "trace_id?": isText, "limit_key?": isText, "reason?": isString}
	if a.status == http.StatusTooManyRequests {
		body = shape{"error": oneOf("rate_limited"), "trace_id": isText, "limit_key": isText, "reason?": isString}
		a.retryAfter()
	}
	problem := open(body)(a.value())
	a.want(problem == "", "%s", problem)
	if a.s.target.Decisions {
		a.want(slices.Contains(errorCodes[a.status], a.text("error")), "want error %v", errorCodes[a.status])
	}
}

// isTraced wants a trace_id that no other answer of the case had, on a target
// that claims the decisions; the shapes see to the rest.
func (a answer) isTraced() {
	a.s.Helper()
	if !a.s.target.Decisions {
		return
	}
	trace, seen := a.text("trace_id"), a.s.ledger.traces
	a.want(!seen[trace], "an earlier answer had this trace_id")
	seen[trace] = true
}

// keepsSecrets looks for the provider key and the service keys in everything
// that came back.
func (a answer) keepsSecrets() {
	a.s.Helper()
	all := fmt.Sprint(a.header) + string(a.body)
	for _, secret := range append([]string{providerKey}, a.s.ledger.keys...) {
		a.want(!strings.Contains(all, secret), "the answer shows a key")
	}
}

// value decodes the body, which must be one JSON document.
func (a answer) value() any {
	a.s.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(a.body))
	err := d.Decode(&v)
	a.want(err == nil, "not JSON: %v", err)
	a.want(!d.More(), "more than one document")
	return v
}

// text is the string at a dotted path.
func (a answer) text(path string) string {
	a.s.Helper()
	got, _ := a.at(path).(string)
	a.want(got != "", "member %q is no text", path)
	return got
}

// holds wants a value at a dotted path; nil wants null or no member.
func (a answer) holds(path string, want any) answer {
	a.s.Helper()
	got := a.at(path)
	a.want(reflect.DeepEqual(got, want), "member %q is %s, want %s", path, clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
	return a
}

// retryAfter is the one Retry-After header: whole seconds, at least one.
func (a answer) retryAfter() time.Duration {
	a.s.Helper()
	values := a.header.Values("Retry-After")
	a.want(len(values) == 1, "Retry-After is there %d times", len(values))
	seconds, err := strconv.Atoi(values[0])
	a.want(err == nil && seconds >= 1, "Retry-After %q is not a whole number from 1", values[0])
	return time.Duration(seconds) * time.Second
}

// opensIn wants the wait that Retry-After names.
func (a answer) opensIn(wait time.Duration) {
	a.s.Helper()
	got := a.retryAfter()
	a.want(got == wait, "Retry-After is %v, want %v", got, wait)
}

// limited wants a refusal by the limiter; its name is this project's, so it
// counts only for a target that claims the decisions.
func (a answer) limited(limitKey string) answer {
	a.s.Helper()
	a.is(http.StatusTooManyRequests)
	named := !a.s.target.Decisions || a.at("limit_key") == limitKey
	if !named {
		a.s.skipIfBroken()
	}
	a.want(named, "want limit_key %s", limitKey)
	return a
}
