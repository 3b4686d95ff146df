package contract

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// answer is an exchange of a case, and the values with which a check may compare it.
type answer struct {
	rawcall.Exchange
	earlier []answer // the case's earlier answers, except to steps that make many calls
	agent   string   // the agent that the case's calls are about
	passed  int      // the case's earlier calls that were answered 200
}

// problem is a rule, and a text that says how an answer breaks it; "" if the answer does
// not.
type problem struct {
	rule rawcall.Rule
	text string
}

// conditions are the rows of interface 7: the condition for each status.
var conditions = map[int]string{
	400: "Bad request (invalid body)", 401: "Unauthorized", 402: "Payment required",
	403: "Forbidden: BYOK operation or byok warm-up without a dashboard-issued key", 404: "Not found",
	409: "Warm-up in byok mode when BYOK is not configured", 503: "BYOK not available (warm-up, PUT /v1/byok)",
	429: "Rate limited; carries Retry-After header (string, seconds until a retry is allowed)",
}

// condition returns the row of interface 7 for a status.
func condition(status int) rawcall.Rule {
	return rule("7", fmt.Sprint(status, " | ", conditions[status]))
}

// rule makes a rule of a section of the interface and its sentence.
func rule(section, sentence string) rawcall.Rule {
	return rawcall.Rule{Section: section, Sentence: sentence}
}

// holds says what is wrong with the member at a dotted path; "" if nothing is. want is the
// value that the member must have, or a valueCheck. A member that is missing counts as null.
func (a answer) holds(path string, want any) string {
	check, isCheck := want.(valueCheck)
	if !isCheck {
		check = func(v, _ any) string {
			return problemUnless(reflect.DeepEqual(v, want), "got %s, want %s", rawcall.Brief(v), rawcall.Brief(want))
		}
	}
	var then any
	for _, earlier := range a.earlier {
		then = cmp.Or(then, earlier.At(path))
	}
	got, there := a.Member(path)
	text := check(got, then)
	if !there {
		text = strings.Replace(text, "got null", "it is missing", 1)
	}
	return problemUnless(text == "", "member %q: %s", path, text)
}

// problemUnless returns "" if ok, and otherwise the problem in words.
func problemUnless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// matches wants a text that matches a regular expression.
func matches(form string) valueCheck {
	pattern := regexp.MustCompile(form)
	return func(v, _ any) string {
		s, _ := v.(string)
		return problemUnless(pattern.MatchString(s), "got %s, want %s", rawcall.Brief(v), form)
	}
}

// valueCheck says what is wrong with a decoded JSON value; "" if nothing is. then is the
// value of the same member in the first answer of the case that has it.
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

// later wants a time that is later by d, plus or minus a minute, because the clock of
// some targets runs while the case makes its calls.
func later(d time.Duration) valueCheck {
	return func(now, then any) string {
		off := timeOf(now).Sub(timeOf(then).Add(d)).Abs()
		return problemUnless(isUTC(now, nil) == "" && off < time.Minute, "got %s, want %v after %s", rawcall.Brief(now), d, rawcall.Brief(then))
	}
}

// isUTC wants a time of RFC 3339 in UTC.
func isUTC(v, _ any) string {
	_, offset := timeOf(v).Zone()
	return problemUnless(!timeOf(v).IsZero() && offset == 0, "got %s, want a time of RFC 3339 in UTC", rawcall.Brief(v))
}

// timeOf reads a time of RFC 3339, and returns the zero time for anything else.
func timeOf(v any) time.Time {
	s, _ := v.(string)
	at, _ := time.Parse(time.RFC3339Nano, s) // the zero time if s has another form
	return at
}
