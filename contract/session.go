package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// check runs the case on target. Its error is the broken rule, or skipped.
func (c testCase) check(ctx context.Context, target Target, all *shared) error {
	player := rawcall.NewPlayer(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	player.ClientFrom = target.ClientFrom
	s := &session{Player: player, ctx: ctx, target: target, running: c, all: all}
	if c.agent {
		if err := s.takeAgent(); err != nil {
			return err
		}
	}
	if c.fillsLimit && target.live() {
		if err := s.pause(time.Minute, "it fills a limit, which takes a minute without calls"); err != nil {
			return err
		}
	}
	return walk(c.steps, s.take)
}

// skipped says why a case was given up that blames no rule.
type skipped string

func (s skipped) Error() string { return string(s) }

// shared holds the state that the cases on one target share.
type shared struct {
	failed bool          // the agent could not be created
	agent  string        // the one that cases share
	wait   time.Duration // that is left to wait for limits
}

// session is one case under way.
type session struct {
	rawcall.Player
	ctx     context.Context
	target  Target
	running testCase
	all     *shared
	earlier []answer // so far, without those of steps that make many calls
}

// takeAgent takes the agent that the cases share, made at the first call. It is not
// made again after a failure: each try would cost a creation.
func (s *session) takeAgent() error {
	if s.all.failed {
		return fmt.Errorf("%s\nan earlier case could not create the agent that the cases share", s.running)
	}
	if s.all.agent == "" {
		if err := s.take(createAgent.is(200)); err != nil {
			s.all.failed = !errors.As(err, new(skipped))
			return err
		}
		s.all.agent = s.Last
	}
	s.Agents[own] = s.all.agent
	return nil
}

// take takes one step. Of many calls it looks at the status only: a daily
// limit takes thousands.
func (s *session) take(st step) error {
	if st.arrange != nil {
		st.arrange(s)
	}
	if err := s.wait(st); err != nil {
		return err
	}
	for i := range st.n {
		a, err := s.call(st, i)
		if err == nil && st.n == 1 {
			err = s.broken(a, a.problem(st))
			s.earlier = append(s.earlier, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// broken is the rule, what is wrong and the exchange that shows it; nil if nothing is.
func (s *session) broken(a answer, problem string) error {
	if problem == "" {
		return nil
	}
	return fmt.Errorf("%s\n%s\n%s", s.running, problem, a)
}

// wait lets the step's time pass. With untilOpen that is the last Retry-After, which
// may be a tenth longer than the step says: a service may keep a reserve.
func (s *session) wait(st step) error {
	wait := st.wait
	if st.untilOpen {
		last := s.earlier[len(s.earlier)-1]
		if wait, _ = last.RetryAfter(); wait > st.wait+st.wait/10 {
			return s.broken(last, fmt.Sprintf("it would have to wait for more than %v", st.wait))
		}
	}
	switch abilities := s.target.Abilities; {
	case wait == 0:
	case abilities != nil:
		abilities.Advance(wait)
	default:
		time.Sleep(wait)
	}
	return nil
}

// call makes the i-th call of a step, whose status must be right. A live target may be
// busy with other calls of the key: a limit that refuses a call in the middle of a case
// is waited for, or skips the case.
func (s *session) call(st step, i int) (answer, error) {
	mayBeLimited := s.target.live() && (st.Limited() || st.Name == rawcall.At("", "").Name)
	for tries := 0; ; tries++ {
		x, err := s.Play(s.ctx, st.Call)
		a := answer{Exchange: x, s: s}
		switch {
		case err != nil:
			return a, fmt.Errorf("%s\n%s %s: %s", s.running, st.Method, st.Path, rawcall.Clip(err.Error()))
		case slices.Contains(st.statuses, a.Status):
			return a, nil
		case a.Status != http.StatusTooManyRequests || !mayBeLimited:
			statuses := strings.ReplaceAll(strings.Trim(fmt.Sprint(st.statuses), "[]"), " ", " or ")
			return a, s.broken(a, fmt.Sprintf("want status %s (call %d of %d)", statuses, i+1, st.n))
		case s.running.fillsLimit || tries == 3:
			return a, skipped("a limit of the target refused a call in the middle: " + a.String())
		}
		wait, problem := a.RetryAfter()
		if problem != "" {
			wait = time.Minute
		}
		if err := s.pause(wait, "a limit of the target refused a call in the middle, and opens later"); err != nil {
			return a, err
		}
	}
}

// pause waits, or skips the case if the budget has less waiting left.
func (s *session) pause(wait time.Duration, why string) error {
	if wait > s.all.wait {
		return skipped(fmt.Sprintf("%s: %v, of %v of waiting that are left", why, wait, s.all.wait))
	}
	s.all.wait -= wait
	time.Sleep(wait)
	return nil
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
		if key != "" && strings.Contains(all, key) {
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
