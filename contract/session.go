package contract

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// check runs the case on target.
func (c testCase) check(tb testing.TB, target Target, shared *shared) {
	s := newSession(tb, target, c, shared)
	if c.agent {
		s.Agents[own] = shared.agentOf(s)
	}
	if c.fillsLimit && target.live() {
		s.pause(time.Minute, "it fills a limit, which takes a minute without calls")
	}
	walk(c.steps, s.take)
}

// session is one case under way: it takes the case's steps, and fails the test
// in which it runs.
type session struct {
	testing.TB
	rawcall.Player
	target  Target
	running testCase
	all     *shared
	earlier []answer // so far, without those of steps that make many calls
}

func newSession(tb testing.TB, target Target, c testCase, shared *shared) *session {
	s := &session{TB: tb, Player: rawcall.NewPlayer(target.BaseURL, target.HTTPClient), target: target, running: c, all: shared}
	s.Keys[own], s.ClientFrom = target.Key, target.ClientFrom
	if target.SecondKey != "" {
		s.Keys[another] = target.SecondKey
	}
	if target.Abilities != nil {
		s.Issue = target.Abilities.IssueKeyOn
	}
	return s
}

// take takes one step. Of many calls it looks at the status only: a daily
// limit takes thousands.
func (s *session) take(st step) {
	if st.arrange != nil {
		st.arrange(s)
	}
	s.wait(st)
	for i := range st.n {
		a := s.call(st, i)
		if st.n == 1 {
			s.look(a, a.problem(st))
			s.earlier = append(s.earlier, a)
		}
	}
}

// wait lets the step's time pass. The last Retry-After may have a tenth in
// reserve.
func (s *session) wait(st step) {
	wait := st.wait
	if st.untilOpen {
		last := s.earlier[len(s.earlier)-1]
		wait, _ = last.RetryAfter()
		s.look(last, unless(wait <= st.wait+st.wait/10, "it would have to wait for more than %v", st.wait))
	}
	switch abilities := s.target.Abilities; {
	case wait == 0:
	case abilities != nil:
		abilities.Advance(wait)
	default:
		time.Sleep(wait)
	}
}

// call makes the i-th call of a step, and ends the case if its status is wrong. A
// live target may be busy with other calls of the key: a limit that refuses a call
// in the middle of a case is waited for, or skips the case.
func (s *session) call(st step, i int) answer {
	a, mayBeLimited := s.play(st), st.Limited() || st.Name == rawcall.At("", "").Name
	for tries := 0; a.Status == http.StatusTooManyRequests && !slices.Contains(st.statuses, a.Status) && s.target.live() && mayBeLimited; tries++ {
		if s.running.fillsLimit || tries == 3 {
			s.skipf("a limit of the target refused a call in the middle: %s", a)
		}
		wait, problem := a.RetryAfter()
		if problem != "" {
			wait = time.Minute
		}
		s.pause(wait, "a limit of the target refused a call in the middle, and opens later")
		a = s.play(st)
	}
	if !slices.Contains(st.statuses, a.Status) {
		statuses := strings.ReplaceAll(strings.Trim(fmt.Sprint(st.statuses), "[]"), " ", " or ")
		s.look(a, fmt.Sprintf("want status %s (call %d of %d)", statuses, i+1, st.n))
	}
	return a
}

func (s *session) play(st step) answer {
	x, err := s.Play(s.Context(), st.Call)
	if err != nil {
		s.Fatalf("%s\n%s %s: %s", s.running, st.Method, st.Path, rawcall.Clip(err.Error()))
	}
	return answer{Exchange: x, s: s}
}

// skipf skips the case. The agent that the cases share is made by the next one.
func (s *session) skipf(format string, args ...any) {
	s.all.tried = s.all.agent != ""
	s.Skipf(format, args...)
}

// pause waits, or skips the case if the budget has less waiting left.
func (s *session) pause(wait time.Duration, why string) {
	if wait > s.all.wait {
		s.skipf("%s: %v, of %v of waiting that are left", why, wait, s.all.wait)
	}
	s.all.wait -= wait
	time.Sleep(wait)
}

// look ends the case if there is a problem with the answer: the rule first, then what
// was found.
func (s *session) look(a answer, problem string) {
	if problem != "" {
		s.Fatalf("%s\n%s\n%s", s.running, problem, a)
	}
}

// shared holds the state that the cases on one target share.
type shared struct {
	tried bool
	agent string        // the agent of needAgent
	wait  time.Duration // that is left to wait for limits
}

// agentOf is the agent of needAgent, made at the first call. It is not made
// again when that failed: each try would cost a creation.
func (all *shared) agentOf(s *session) string {
	if !all.tried {
		all.tried = true
		s.take(createAgent.is(200))
		all.agent = s.Last
	}
	if all.agent == "" {
		s.Fatalf("%s\nan earlier case could not create the agent that the cases share", s.running)
	}
	return all.agent
}

// answer is an exchange of a case, and what the interface says of it.
type answer struct {
	rawcall.Exchange
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
	mediaType, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	problem := cmp.Or(
		a.showsKey(),
		unless(mediaType == "application/json", "Content-Type is %q", rawcall.Clip(a.Header.Get("Content-Type"))),
		a.bodyProblem())
	if problem == "" && a.Status == http.StatusTooManyRequests {
		_, problem = a.RetryAfter()
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
	all := fmt.Sprint(a.Header) + string(a.Body)
	for _, key := range a.s.Keys {
		if strings.Contains(all, key) {
			return "the answer shows a key"
		}
	}
	return unless(!strings.Contains(all, providerKey), "the answer shows the provider key")
}

// bodyProblem compares the body with its documented shape. On a target that claims
// this project's decisions, a success also has no undocumented member, no other
// answer of the case has the same trace_id, and ok is not false.
func (a answer) bodyProblem() string {
	closed := a.Status == http.StatusOK && (a.s.target.Decisions || a.Name == getStatus.Name)
	if problem := a.shape().Problem(a.Value, closed); problem != "" || !a.s.target.Decisions {
		return problem
	}
	for _, other := range a.s.earlier {
		if a.At("trace_id") == other.At("trace_id") {
			return "an earlier answer had this trace_id"
		}
	}
	return unless(a.At("ok") != false, "ok is false")
}

// shape is the body that the interface gives the answer. On a target that
// claims the decisions an error has the value that belongs to the status, and
// a trace_id.
func (a answer) shape() rawcall.Shape {
	if code := errorCodes[a.Status]; code != "" && a.s.target.Decisions {
		return rawcall.Shape("error " + code + ", trace_id text, limit_key text optional, reason string optional")
	}
	return a.Shape()
}

// holds says what is wrong with the member at a dotted path, or "". A check sees it with
// its value in the first answer of the case that has one.
func (a answer) holds(path string, want any) string {
	got, problem := a.At(path), ""
	if holds, ok := want.(check); ok {
		var then any
		for _, earlier := range a.s.earlier {
			if then == nil {
				then = earlier.At(path)
			}
		}
		problem = holds(got, then)
	} else {
		problem = unless(reflect.DeepEqual(got, want), "got %s, want %s", rawcall.Clip(fmt.Sprint(got)), rawcall.Clip(fmt.Sprint(want)))
	}
	return unless(problem == "", "member %q: %s", path, problem)
}

// unless returns "" if ok, and otherwise the problem in words.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

func like(form string) check {
	pattern := regexp.MustCompile(form)
	return func(v, _ any) string {
		s, _ := v.(string)
		return unless(pattern.MatchString(s), "got %s, want %s", rawcall.Brief(v), form)
	}
}

// check says what is wrong with a decoded JSON value, given the first of the case, or "".
type check = func(now, then any) string

// same, differs and follows compare a value with the earlier one.
func same(now, then any) string {
	return unless(reflect.DeepEqual(now, then), "got %s, it was %s", rawcall.Brief(now), rawcall.Brief(then))
}

func differs(now, then any) string {
	return unless(now != then, "got %s as before", rawcall.Brief(now))
}

func follows(now, then any) string {
	return unless(fmt.Sprint(now) > fmt.Sprint(then), "got %s, which does not come after %s", rawcall.Brief(now), rawcall.Brief(then))
}

// later wants a time that much later, to the minute: some targets have a clock
// that runs.
func later(d time.Duration) check {
	return func(now, then any) string {
		off := timeOf(now).Sub(timeOf(then).Add(d)).Abs()
		return unless(isUTC(now, nil) == "" && off < time.Minute, "got %s, want %v after %s", rawcall.Brief(now), d, rawcall.Brief(then))
	}
}

func isUTC(v, _ any) string {
	_, offset := timeOf(v).Zone()
	return unless(!timeOf(v).IsZero() && offset == 0, "got %s, want a time of RFC 3339 in UTC", rawcall.Brief(v))
}

func timeOf(v any) time.Time {
	s, _ := v.(string)
	at, _ := time.Parse(time.RFC3339Nano, s) // the zero time is no answer's
	return at
}
