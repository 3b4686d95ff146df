package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"reflect"
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
// decisions.
var errorCodes = map[int]string{
	400: "bad_request|byok_not_configured|byok_unavailable", 401: "unauthorized", 402: "payment_required", 403: "forbidden",
	404: "not_found", 405: "method_not_allowed", 409: "byok_not_configured", 503: "byok_unavailable",
}

// problem says what is wrong with an answer that has the right status, or "":
// against what the interface says of every answer, and against the step.
func (a answer) problem(st step) string {
	mediaType, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	problem := cmp.Or(
		a.showsKey(),
		unless(mediaType == "application/json", "Content-Type is %q", clip(a.header.Get("Content-Type"))),
		a.bodyProblem())
	if problem == "" && a.status == http.StatusTooManyRequests {
		_, problem = a.retryAfter()
	}
	for _, check := range st.checks {
		if problem == "" {
			problem = check(a)
		}
	}
	return problem
}

// showsKey looks for the provider key and the service keys in everything that
// came back.
func (a answer) showsKey() string {
	all := fmt.Sprint(a.header) + string(a.body)
	for _, key := range a.s.keys {
		if strings.Contains(all, key) {
			return "the answer shows a key"
		}
	}
	return unless(!strings.Contains(all, providerKey), "the answer shows the provider key")
}

// bodyProblem holds the body to its shape. This project decided besides that
// a success has no undocumented member, that no other answer of the case has
// the same trace_id, and that ok is not false.
func (a answer) bodyProblem() string {
	var body any
	if err := json.Unmarshal(a.body, &body); err != nil {
		return "not JSON: " + err.Error()
	}
	closed := a.status == http.StatusOK && (a.s.target.Decisions || a.endpoint.name == getStatus.name)
	if problem := a.shape().problem(body, closed); problem != "" || !a.s.target.Decisions {
		return problem
	}
	for _, other := range a.s.earlier {
		if a.at("trace_id") == other.at("trace_id") {
			return "an earlier answer had this trace_id"
		}
	}
	return unless(a.at("ok") != false, "ok is false")
}

// shape is the body that the interface gives the answer. On a target that
// claims the decisions an error has the value that belongs to the status, and
// a trace_id.
func (a answer) shape() shape {
	switch {
	case a.status == http.StatusOK:
		return a.endpoint.reply
	case a.status == http.StatusTooManyRequests:
		return "error rate_limited, trace_id text, limit_key text, reason string optional"
	case a.s.target.Decisions:
		return shape("error " + errorCodes[a.status] + ", trace_id text, limit_key text optional, reason string optional")
	default:
		return "error text, trace_id text optional, limit_key text optional, reason string optional"
	}
}

// retryAfter is the one Retry-After header: whole seconds, at least one.
func (a answer) retryAfter() (wait time.Duration, problem string) {
	values := a.header.Values("Retry-After")
	seconds, err := strconv.Atoi(strings.Join(values, " "))
	return time.Duration(seconds) * time.Second,
		unless(err == nil && seconds >= 1, "Retry-After is %q, want one whole number from 1", clip(fmt.Sprint(values)))
}

// holds says what is wrong with the member at a dotted path, or "". A relation
// sees it beside its value in the last earlier answer that has one.
func (a answer) holds(path string, want any) string {
	got, problem := a.at(path), ""
	switch want := want.(type) {
	case check:
		problem = want(got)
	case relation:
		var then any
		for _, earlier := range a.s.earlier {
			if v := earlier.at(path); v != nil {
				then = v
			}
		}
		problem = want(got, then)
	default:
		problem = unless(reflect.DeepEqual(got, want), "got %s, want %s", clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
	}
	return unless(problem == "", "member %q: %s", path, problem)
}

// unless is "" where ok, and else the problem in words.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
