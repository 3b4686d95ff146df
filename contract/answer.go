package contract

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// answer is an exchange of a case, which its methods hold to the rules.
type answer struct {
	rawcall.Exchange
	s *session
}

// problem says what is wrong with an answer, and which rule it breaks; "" if it is right.
type problem struct {
	rule rawcall.Rule
	text string
}

// conditions are the rows of interface 7: when a call is answered with which status.
var conditions = map[int]string{
	400: "Bad request (invalid body)", 401: "Unauthorized", 402: "Payment required",
	403: "Forbidden: BYOK operation or byok warm-up without a dashboard-issued key", 404: "Not found",
	409: "Warm-up in byok mode when BYOK is not configured", 503: "BYOK not available (warm-up, PUT /v1/byok)",
	429: "Rate limited; carries Retry-After header (string, seconds until a retry is allowed)",
}

// condition returns the row of a status.
func condition(status int) rawcall.Rule {
	return rule("7", fmt.Sprint(status, " | ", conditions[status]))
}

func rule(section, sentence string) rawcall.Rule {
	return rawcall.Rule{Section: section, Sentence: sentence}
}

const listed = "Which endpoints can return which status: see section 4."

// statusProblem says which rule the answer to the i-th call of a step breaks: its status
// is not one that the step wants.
func (a answer) statusProblem(st step, i int) problem {
	wanted := strings.ReplaceAll(strings.Trim(fmt.Sprint(st.statuses), "[]"), " ", " or ")
	p := problem{a.s.running.rule(), "want status " + wanted}
	if st.n > 1 {
		p.text += fmt.Sprintf(" (call %d of %d)", i+1, st.n)
	}
	if a.IsEndpoint() && a.Status/100 != 2 && !slices.Contains(a.Errors, a.Status) {
		p.text += fmt.Sprintf("; interface %s lists no %d", a.Rule.Section, a.Status)
	}
	switch success := st.statuses[0] == http.StatusOK; {
	case a.Status == http.StatusTooManyRequests && a.s.opened > 0:
		p.rule = condition(a.Status)
		p.text += fmt.Sprintf(" after a wait of exactly %v, which Retry-After of the last answer named", a.s.opened)
	case success && a.Status/100 == 2:
		p.rule = rule("4", "Every success status is 200.")
	case success && st.prepares && !slices.Contains(a.Errors, a.Status):
		p.rule = rule("7", listed)
	case st.prepares && conditions[a.Status] != "":
		p.rule = condition(a.Status)
	case st.prepares:
		p.rule = condition(st.statuses[0])
	}
	return p
}

// bucketProblem says what is wrong with a refusal that came some calls too late: the limit
// is too large, unless it is a bucket, which gives the next call back after about the
// window divided by the calls of the case.
func (a answer) bucketProblem(st step, tooMany int) problem {
	wait, _ := a.RetryAfter()
	soon := wait <= max(time.Minute, 2*windowOf(st.limitKey)/time.Duration(max(1, a.s.running.Spends.Requests)))
	return problem{a.s.running.rule(), problemUnless(tooMany == 0 || soon, "%d calls too many passed, and the limit opens in %v", tooMany, wait)}
}

// errorCodes are the values of error by status on a target that claims the
// decisions.
var errorCodes = map[int]string{
	400: "bad_request|byok_not_configured|byok_unavailable", 401: "unauthorized", 402: "payment_required", 403: "forbidden",
	404: "not_found", 405: "method_not_allowed", 409: "byok_not_configured", 429: "rate_limited", 503: "byok_unavailable",
}

// problems holds an answer that has the right status to the rules for every answer, to
// those of this project on a target that claims the decisions, and to the step.
func (a answer) problems(st step) []problem {
	shape, documented := a.Documented()
	success, mediaType := a.Status == http.StatusOK, a.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(mediaType)
	all := []problem{ // the keys come first: a later problem would quote one in its text
		{rule("2.4", "The plaintext provider key is never returned."), a.shows(providerKey)},
		{rule("fake", "no answer shows an API key"), a.shows(slices.Collect(maps.Values(a.s.Keys))...)},
		{rule("1", "All request and response bodies are JSON."), problemUnless(media == "application/json", "Content-Type is %q", rawcall.Clip(mediaType))},
		{documented, shape.Problem(a.Value, success && a.Name == getStatus.Name)},
	}
	if a.Status == http.StatusTooManyRequests {
		wait, ok := a.RetryAfter()
		digits := strings.Trim(a.Header.Get("Retry-After"), "0123456789") == ""
		all = append(all,
			problem{condition(a.Status), problemUnless(ok && wait > 0, "Retry-After names no wait in seconds")},
			problem{rule("RFC 9110, 10.2.3", "Retry-After is a date or a whole number of seconds."), problemUnless(digits, "Retry-After is no whole number")})
	}
	if a.s.target.Decisions {
		exact := problem{rule("fake", "error values: one for each status; every error has a trace_id"),
			rawcall.Shape("error "+errorCodes[a.Status]+", trace_id text").Problem(a.Value, false)}
		if success {
			exact = problem{rule("fake", "a success has the documented members only"), a.Reply.Problem(a.Value, true)}
		}
		repeated := slices.ContainsFunc(a.s.earlier, func(other answer) bool { return a.At("trace_id") == other.At("trace_id") })
		all = append(all, exact,
			problem{rule("fake", "ids: trace_000001 in order"), problemUnless(!repeated, "an earlier answer had this trace_id")},
			problem{rule("fake", "ok is true where something was done"), problemUnless(a.At("ok") != false, "ok is false")},
			problem{rule("fake", "limit_key values: one for each limit of interface 8.1"),
				problemUnless(st.limitKey == "" || a.At("limit_key") == st.limitKey, "want limit_key %s", st.limitKey)})
	}
	for _, check := range st.checks {
		all = append(all, problem{a.s.running.rule(), check(a)})
	}
	return all
}

// shows looks for keys in everything that came back.
func (a answer) shows(keys ...string) string {
	all := fmt.Sprint(a.Header) + string(a.Body)
	shown := slices.ContainsFunc(keys, func(key string) bool { return key != "" && strings.Contains(all, key) })
	return problemUnless(!shown, "the answer shows a key")
}

// holds says what is wrong with the member at a dotted path, or "". A check sees it with
// its value in the first answer of the case that has one.
func (a answer) holds(path string, want any) string {
	got, problem := a.At(path), ""
	if holds, ok := want.(valueCheck); ok {
		var then any
		for _, earlier := range a.s.earlier {
			if then == nil {
				then = earlier.At(path)
			}
		}
		problem = holds(got, then)
	} else {
		problem = problemUnless(reflect.DeepEqual(got, want), "got %s, want %s", rawcall.Brief(got), rawcall.Brief(want))
	}
	return problemUnless(problem == "", "member %q: %s", path, problem)
}

// problemUnless returns "" if ok, and otherwise the problem in words.
func problemUnless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func like(form string) valueCheck {
	pattern := regexp.MustCompile(form)
	return func(v, _ any) string {
		s, _ := v.(string)
		return problemUnless(pattern.MatchString(s), "got %s, want %s", rawcall.Brief(v), form)
	}
}

// valueCheck says what is wrong with a decoded JSON value, "" for nothing. then is the value
// of the same member in the first answer of the case that had one.
type valueCheck = func(now, then any) string

// same, differs and follows compare a value with the earlier one.
func same(now, then any) string {
	return problemUnless(reflect.DeepEqual(now, then), "got %s, it was %s", rawcall.Brief(now), rawcall.Brief(then))
}

func differs(now, then any) string {
	return problemUnless(now != then, "got %s as before", rawcall.Brief(now))
}

func follows(now, then any) string {
	return problemUnless(fmt.Sprint(now) > fmt.Sprint(then), "got %s, which does not come after %s", rawcall.Brief(now), rawcall.Brief(then))
}

// later wants a time that is later by d, give or take a minute: the clock of some targets
// runs while the case makes its calls.
func later(d time.Duration) valueCheck {
	return func(now, then any) string {
		off := timeOf(now).Sub(timeOf(then).Add(d)).Abs()
		return problemUnless(isUTC(now, nil) == "" && off < time.Minute, "got %s, want %v after %s", rawcall.Brief(now), d, rawcall.Brief(then))
	}
}

func isUTC(v, _ any) string {
	_, offset := timeOf(v).Zone()
	return problemUnless(!timeOf(v).IsZero() && offset == 0, "got %s, want a time of RFC 3339 in UTC", rawcall.Brief(v))
}

func timeOf(v any) time.Time {
	s, _ := v.(string)
	at, _ := time.Parse(time.RFC3339Nano, s) // zero if it is no such time
	return at
}
