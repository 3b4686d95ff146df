package contract

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

const listed = "Which endpoints can return which status: see section 4."

// statusProblem says which rule the answer to the i-th call of a step breaks, if its
// status is not one of the step's.
func (s *session) statusProblem(a answer, st step, i int) problem {
	wanted := strings.ReplaceAll(strings.Trim(fmt.Sprint(st.statuses), "[]"), " ", " or ")
	p := problem{s.running.Rule, "want status " + wanted}
	if st.n > 1 {
		p.text += fmt.Sprintf(" (call %d of %d)", i+1, st.n)
	}
	if a.IsEndpoint() && a.Status/100 != 2 && !slices.Contains(a.Errors, a.Status) {
		p.text += fmt.Sprintf("; interface %s lists no %d", a.Rule.Section, a.Status)
	}
	switch success := st.statuses[0] == http.StatusOK; {
	case a.Status == http.StatusTooManyRequests && s.opened > 0:
		p.rule = condition(a.Status)
		p.text += fmt.Sprintf(" after a wait of exactly %v, which Retry-After of the last answer named", s.opened)
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

// bucketProblem says what is wrong if a refusal came tooMany calls too late. The limit is
// too large or, if Retry-After is about the window divided by the calls of the case, it
// is a bucket.
func (s *session) bucketProblem(a answer, st step, tooMany int) problem {
	if tooMany == 0 {
		return problem{}
	}
	wait, _ := a.RetryAfter()
	soon := wait <= max(time.Minute, 2*windowOf(st.limitKey)/time.Duration(max(1, s.running.Spends.Requests)))
	return problem{s.running.Rule, problemUnless(soon, "%d calls too many passed, and the limit opens in %v", tooMany, wait)}
}

// errorCodes are the values of error, by status, on a target with Decisions.
var errorCodes = map[int]string{
	400: "bad_request|byok_not_configured|byok_unavailable", 401: "unauthorized", 402: "payment_required", 403: "forbidden",
	404: "not_found", 405: "method_not_allowed", 409: "byok_not_configured", 429: "rate_limited", 503: "byok_unavailable",
}

// problems checks an answer with the right status against the rules for every answer and
// against the step. If the target has Decisions, it also checks the rules of this
// project.
func (s *session) problems(a answer, st step) []problem {
	shape, documented := a.Documented()
	success, mediaType := a.Status == http.StatusOK, a.Header.Get("Content-Type")
	media, params, _ := mime.ParseMediaType(mediaType)
	isUTF8 := utf8.Valid(a.Body) && slices.Contains([]string{"", "utf-8", "utf8", "us-ascii"}, strings.ToLower(params["charset"]))
	all := []problem{ // the keys come first, because the text of a later problem would quote a key
		{rule("2.4", "The plaintext provider key is never returned."), problemUnless(!a.Shows(providerKey), "the answer shows the provider key")},
		{rule("fake", "no answer shows an API key"), problemUnless(!a.Shows(slices.Collect(maps.Values(s.Keys))...), "the answer shows an API key")},
		{rule("1", "All request and response bodies are JSON."), problemUnless(media == "application/json", "Content-Type is %q", rawcall.Clip(mediaType))},
		{rule("RFC 8259, 8.1", "JSON text is encoded in UTF-8."), problemUnless(isUTF8, "the body is not valid UTF-8, or Content-Type %q names another charset", rawcall.Clip(mediaType))},
		{documented, shape.Problem(a.Value, success && a.Name == getStatus.Name)},
	}
	if a.Status == http.StatusTooManyRequests {
		wait, ok := a.RetryAfter()
		digits := strings.Trim(a.Header.Get("Retry-After"), "0123456789") == ""
		all = append(all,
			problem{condition(a.Status), problemUnless(ok && wait > 0, "Retry-After names no wait in seconds")},
			problem{rule("RFC 9110, 10.2.3", "Retry-After is a date or a whole number of seconds."), problemUnless(digits, "Retry-After is no whole number")})
	}
	if s.target.Decisions {
		exact := problem{rule("fake", "error values: one for each status; every error has a trace_id"),
			rawcall.Shape("error "+errorCodes[a.Status]+", trace_id text").Problem(a.Value, false)}
		if success {
			exact = problem{rule("fake", "a success has the documented members only"), a.Reply.Problem(a.Value, true)}
		}
		repeated := slices.ContainsFunc(a.earlier, func(other answer) bool { return a.At("trace_id") == other.At("trace_id") })
		all = append(all, exact,
			problem{rule("fake", "ids: trace_000001 in order"), problemUnless(!repeated, "an earlier answer had this trace_id")},
			problem{rule("fake", "ok is true where something was done"), problemUnless(a.At("ok") != false, "ok is false")},
			problem{rule("fake", "limit_key values: one for each limit of interface 8.1"),
				problemUnless(st.limitKey == "" || a.At("limit_key") == st.limitKey, "want limit_key %s", st.limitKey)})
	}
	for _, check := range st.checks {
		all = append(all, problem{s.running.Rule, check(a)})
	}
	return all
}

// windowOf returns the window of a limit, which the end of its name says; 0 for no name.
func windowOf(limitKey string) time.Duration {
	ends := limitKey[strings.LastIndexByte(limitKey, '_')+1:]
	return map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}[ends]
}
