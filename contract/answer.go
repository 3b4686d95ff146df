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

// is fails unless the answer has one of the statuses, and the shape that the
// interface gives every answer of that status.
func (a answer) is(statuses []int) {
	a.s.Helper()
	right := slices.Contains(statuses, a.status)
	if !right && (a.status == http.StatusTooManyRequests || slices.Contains(statuses, http.StatusTooManyRequests)) {
		a.s.skipIfBroken()
	}
	a.want(right, "want status %s", either(statuses))
	a.keepsSecrets()
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	a.want(mediaType == "application/json", "Content-Type is %q", clip(a.header.Get("Content-Type")))
	problem := a.shape()(a.value())
	a.want(problem == "", "%s", problem)
	if a.status == http.StatusTooManyRequests {
		a.retryAfter()
	}
	if a.s.target.Decisions {
		a.isAsDecided()
	}
}

func either(statuses []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(statuses), "[]"), " ", " or ")
}

// shape is the body that the interface gives the answer. On a target that
// claims the decisions a success has no undocumented member.
func (a answer) shape() check {
	switch {
	case a.status == http.StatusTooManyRequests:
		return open(shape{"error": oneOf("rate_limited"), "trace_id": isText, "limit_key": isText, "reason?": isString})
	case a.status != http.StatusOK:
		return open(shape{"error": isText, "trace_id?": isText, "limit_key?": isText, "reason?": isString})
	case a.endpoint.name == getStatus.name || a.s.target.Decisions:
		return closed(a.endpoint.reply)
	default:
		return open(a.endpoint.reply)
	}
}

// isAsDecided wants what this project decided for every answer: a trace_id
// that no earlier answer of the case had, and its values of error and ok.
func (a answer) isAsDecided() {
	a.s.Helper()
	for _, other := range a.s.earlier {
		a.want(a.text("trace_id") != other.text("trace_id"), "an earlier answer had this trace_id")
	}
	if a.status != http.StatusOK {
		a.want(slices.Contains(errorCodes[a.status], a.text("error")), "want error %v", errorCodes[a.status])
	}
	a.want(a.at("ok") != false, "ok is false")
}

// keepsSecrets looks for the provider key and the service keys in everything
// that came back.
func (a answer) keepsSecrets() {
	a.s.Helper()
	all := fmt.Sprint(a.header) + string(a.body)
	a.want(!strings.Contains(all, providerKey), "the answer shows the provider key")
	for _, key := range a.s.keys {
		a.want(!strings.Contains(all, key), "the answer shows a key")
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

// retryAfter is the one Retry-After header: whole seconds, at least one.
func (a answer) retryAfter() time.Duration {
	a.s.Helper()
	values := a.header.Values("Retry-After")
	a.want(len(values) == 1, "Retry-After is there %d times", len(values))
	seconds, err := strconv.Atoi(values[0])
	a.want(err == nil && seconds >= 1, "Retry-After %q is not a whole number from 1", clip(values[0]))
	return time.Duration(seconds) * time.Second
}

// holds says what is wrong with the member at a dotted path, or "". A relation
// sees it beside its value in the last earlier answer that has one.
func (a answer) holds(path string, want any) string {
	got, problem := a.at(path), ""
	switch want := want.(type) {
	case check:
		problem = want(got)
	case relation:
		problem = want(got, a.s.lastSeen(path))
	default:
		problem = unless(reflect.DeepEqual(got, want), "got %s, want %s", clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
	}
	return unless(problem == "", "member %q: %s", path, problem)
}

// lastSeen is the member at a dotted path of the last answer that has it.
func (s *session) lastSeen(path string) (v any) {
	for _, a := range s.earlier {
		if got := a.at(path); got != nil {
			v = got
		}
	}
	return v
}

// unless is "" where ok, and else the problem in words.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// ofItsPath wants the agent that the path names.
func ofItsPath(a answer) string { return a.holds("agent_id", a.s.agents[who{}]) }
