package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// runOn runs the case on target. Its error is the broken rule, or skipped, or the reason
// why no case can be checked on the target.
func (c testCase) runOn(ctx context.Context, target Target, state *shared) error {
	if state.unusable != nil {
		return skipped(state.unusable.Error())
	}
	s := &session{target: target, running: c, ctx: ctx, shared: state, began: time.Now()}
	s.Caller = rawcall.NewCaller(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	s.ClientFrom = target.ClientFrom
	if target.Abilities != nil && target.Fresh == nil { // earlier cases used limits, or switched the store off
		target.Abilities.Advance(2 * day)
		target.Abilities.SetBYOKAvailable(true)
	}
	if c.agent {
		if err := s.useSharedAgent(); err != nil {
			return err
		}
	}
	if c.fillsLimit && target.live() {
		if err := s.pause(time.Minute, "it fills a limit, which takes a minute without calls"); err != nil {
			return err
		}
	}
	for _, st := range c.steps {
		if err := s.runStep(st); err != nil {
			return err
		}
	}
	return nil
}

// skipped is the error of a case that was given up although no rule was broken. It holds
// the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// shared holds the state that the cases on one target share.
type shared struct {
	// reported maps a failure (the broken rule, endpoint and status, and what is wrong) to
	// the case that reported it although it checks another rule. Later cases that meet
	// the failure are skipped. Cases on fresh targets share the map too.
	reported *sync.Map

	agentFailed bool          // the agent could not be created
	agent       string        // the agent that cases share
	wait        time.Duration // the time that the budget still allows to wait for limits

	accepted   bool  // a call with Target.Key was answered with JSON and a status other than 401 and 402
	unanswered int   // calls in a row without an answer
	unusable   error // why no further case can be checked
}

func newShared(wait time.Duration) *shared { return &shared{wait: wait, reported: new(sync.Map)} }

// session is one case under way.
type session struct {
	rawcall.Caller
	target  Target
	running testCase
	ctx     context.Context
	shared  *shared
	earlier []answer // the answers so far, except to steps that make many calls
	broke   bool     // an answer broke a rule

	calls     int // answered as the case wants, for the text of a failure
	passed    int // of these, answered 200
	began     time.Time
	waited    time.Duration // the sum of its waits
	waitedFor time.Duration // the Retry-After for which the case has just waited; 0 if a call came after the wait
}

// useSharedAgent gives the case the agent that the cases share. The first case creates the
// agent. After a failure no later case tries again, since each try may cost a creation. The
// exception is a refusal by a limit, which costs nothing.
func (s *session) useSharedAgent() error {
	if s.shared.agentFailed {
		return skipped("an earlier case could not create the agent that the cases share")
	}
	if s.shared.agent == "" {
		if err := s.runStep(createAgent.given(200)); err != nil {
			s.shared.agentFailed = s.broke || !errors.As(err, new(skipped))
			return err
		}
		s.shared.agent = s.LastAgent
	}
	s.Agents[own] = s.shared.agent
	return nil
}

// runStep runs one step. If the step makes many calls, only their statuses are checked,
// because filling a daily limit takes thousands of calls.
func (s *session) runStep(st step) error {
	if st.arrange != nil {
		st.arrange(&s.Caller, s.target.Abilities)
	}
	if err := s.wait(st); err != nil {
		return err
	}
	for i := range st.n {
		a, err := s.call(st, i)
		if err == nil && st.n == 1 {
			err = s.failure(a, s.problems(a, st)...)
			s.earlier = append(s.earlier, a)
		}
		if err != nil {
			return err
		}
		s.calls, s.waitedFor = s.calls+1, 0
		if a.Status == http.StatusOK {
			s.passed++
		}
	}
	return nil
}

// unchecked begins the last line of a failure, which names the case's own rule, if the case
// ended before it could check that rule.
const unchecked = "before this rule could be checked "

// failure returns the error of the first problem: the broken rule, what is wrong, and the
// exchange that shows it; nil if there is no problem. If the broken rule is not the
// case's own rule, only the first case that meets the problem fails. The other cases are
// skipped, and name the first.
func (s *session) failure(a answer, problems ...problem) error {
	i := slices.IndexFunc(problems, func(p problem) bool { return p.text != "" })
	if i < 0 {
		return nil
	}
	s.broke = true
	p := problems[i]
	text := fmt.Sprintf("broken rule %s\n%s\n%s", p.rule, s.Redact(p.text), s.Describe(a.Exchange))
	if s.calls > 0 {
		text += fmt.Sprintf("\ncalls before it: %d, waited: %v", s.calls, s.waited)
	}
	if p.rule == s.running.Rule {
		return errors.New(text)
	}
	met := fmt.Sprint(p.rule, " by ", a.Name, a.Status, ": ", p.text)
	if first, again := s.shared.reported.LoadOrStore(met, s.running.ID); again {
		return skipped(fmt.Sprintf("not checked: case %s shows a broken rule %s", first, p.rule))
	}
	return fmt.Errorf("%s\n%s%s", text, unchecked, s.running.Rule)
}

// wait waits for the time of a step. With untilOpen this is the last Retry-After. It may
// be longer than the step says by a tenth, because a service may name a little more than
// it needs.
func (s *session) wait(st step) error {
	wait := st.wait
	if st.untilOpen {
		last := s.earlier[len(s.earlier)-1]
		if wait, _ = last.RetryAfter(); wait > st.wait+st.wait/10 {
			return s.failure(last, problem{s.running.Rule, fmt.Sprintf("Retry-After is %v, but the limit opens within %v", wait, st.wait)})
		}
		s.waitedFor = wait
	}
	s.waited += wait
	if abilities := s.target.Abilities; abilities == nil {
		time.Sleep(wait)
	} else if wait > 0 {
		abilities.Advance(wait)
	}
	return nil
}

// call makes the i-th call of a step, whose status must be right. On a shared target
// other calls with the key may have used a limit. If the limit then refuses a call in the
// middle of a case, the case waits until the limit opens, or is skipped. With Abilities,
// a case that fills a limit has begun with unused limits, so such a refusal fails the
// case.
func (s *session) call(st step, i int) (answer, error) {
	mayBeLimited := (s.target.live() || s.target.Fresh == nil && !s.running.fillsLimit) && (st.Limited() || !st.IsEndpoint())
	passed, waits := 0, 0 // calls that passed before an expected 429 (see givenBack), and unexpected 429s
	for {
		x, err := s.Do(s.ctx, st.Call)
		a := answer{x, s.earlier, s.Agents[own], s.passed}
		s.checkTarget(st.Call, x, err)
		if s.shared.unusable != nil {
			return a, s.shared.unusable
		}
		switch skip := s.whySkip(a); {
		case err != nil:
			return a, fmt.Errorf("%s %s got no answer: %s\n%s%s", st.Method, st.Path, s.Redact(rawcall.Cause(err)), unchecked, s.running.Rule)
		case slices.Contains(st.statuses, a.Status):
			return a, s.failure(a, s.bucketProblem(a, st, passed))
		case a.Status == http.StatusOK && passed < s.givenBack(st):
			passed++
			continue
		case skip != "":
			return a, skipped(skip)
		case a.Status != http.StatusTooManyRequests || !mayBeLimited:
			return a, s.failure(a, s.statusProblem(a, st, i))
		case s.running.fillsLimit || waits == 3:
			return a, skipped("a limit of the target refused a call in the middle: " + s.Describe(a.Exchange))
		}
		waits++
		wait, ok := a.RetryAfter()
		if !ok {
			wait = time.Minute
		}
		if err := s.pause(wait, "a limit of the target refused a call in the middle, and opens later"); err != nil {
			return a, err
		}
	}
}

// whySkip is called if a call got another status than its step wants. It says why this breaks no
// rule; "" if it may break one.
func (s *session) whySkip(a answer) string {
	switch {
	case a.Status == http.StatusTooManyRequests && s.running.planCap && a.passed == minuteMax && !s.target.Decisions:
		return fmt.Sprintf("the plan has the %d requests a minute of interface 8.1: the caps of 8.2 are not enabled", minuteMax)
	case a.Status == http.StatusServiceUnavailable && s.target.live() && slices.Contains(a.Errors, a.Status) && a.At("error") != nil:
		return "BYOK is not available on the target, which interface 7 allows"
	}
	return ""
}

// givenBack returns how many calls a token bucket has given back while the case filled
// it. These calls may pass too, because the interface does not say how a limit counts. It
// returns 0 on a live target, and on a target with Decisions.
func (s *session) givenBack(st step) int {
	window, elapsed := windowOf(st.limitKey), s.waited+time.Since(s.began)
	if window == 0 || s.target.live() || s.target.Decisions {
		return 0
	}
	n := int(float64(s.running.Spends.Requests) * float64(elapsed) / float64(window))
	if window == time.Minute {
		return n
	}
	return min(n, 50) // more calls could meet the limit per minute
}

// checkTarget ends the run on a shared target that cannot be checked: three calls in a row got
// no answer, its first three answers are not JSON, or it refuses Target.Key from the start.
// None of these breaks a rule.
func (s *session) checkTarget(c rawcall.Call, x rawcall.Exchange, err error) {
	state, refused := s.shared, x.Status == http.StatusUnauthorized || x.Status == http.StatusPaymentRequired
	byOwnKey := err == nil && c.Key == own && c.Header != "Authorization"
	state.accepted = state.accepted || byOwnKey && !refused && x.Value != nil
	if byOwnKey && !state.accepted {
		err = fmt.Errorf("%d without JSON", x.Status)
	}
	state.unanswered++
	if err == nil {
		state.unanswered = 0
	}
	switch {
	case s.target.Fresh != nil:
	case state.unanswered == 3:
		state.unusable = fmt.Errorf("contract: three calls in a row got no JSON answer; check Target.BaseURL and whether the service is up: %s", s.Redact(rawcall.Cause(err)))
	case byOwnKey && refused && !state.accepted:
		state.unusable = fmt.Errorf("contract: the target refuses Target.Key: %d; use a dashboard-issued key on an active plan", x.Status)
	}
}

// pause waits. If the budget does not allow the wait, it skips the case.
func (s *session) pause(wait time.Duration, why string) error {
	if s.target.Abilities == nil {
		if wait > s.shared.wait {
			return skipped(fmt.Sprintf("%s: it needs a wait of %v, and the budget has %v left", why, wait, s.shared.wait))
		}
		s.shared.wait -= wait
	}
	return s.wait(step{wait: wait})
}

const listedRule = "Which endpoints can return which status: see section 4."

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
	case a.Status == http.StatusTooManyRequests && s.waitedFor > 0:
		p.rule = condition(a.Status)
		p.text += fmt.Sprintf(" after a wait of exactly %v, which Retry-After of the last answer named", s.waitedFor)
	case success && a.Status/100 == 2:
		p.rule = rule("4", "Every success status is 200.")
	case success && st.prepares && !slices.Contains(a.Errors, a.Status):
		p.rule = rule("7", listedRule)
	case st.prepares && conditions[a.Status] != "":
		p.rule = condition(a.Status)
	case st.prepares:
		p.rule = condition(st.statuses[0])
	}
	return p
}

// bucketProblem says what is wrong if the limit let tooMany calls too many pass. A token bucket
// may do that. It then opens soon, after about the window divided by the calls of the case. If
// the limit opens later, its maximum is too large.
func (s *session) bucketProblem(a answer, st step, tooMany int) problem {
	if tooMany == 0 {
		return problem{}
	}
	wait, _ := a.RetryAfter()
	soon := wait <= max(time.Minute, 2*windowOf(st.limitKey)/time.Duration(max(1, s.running.Spends.Requests)))
	return problem{s.running.Rule, problemUnless(soon, "%s too many passed, and the limit opens in %v", printable.Plural(tooMany, "call"), wait)}
}

// errorCodes are the values of error, by status, on a target with Decisions.
var errorCodes = map[int]string{
	400: "bad_request|byok_not_configured|byok_unavailable", 401: "unauthorized", 402: "payment_required", 403: "forbidden",
	404: "not_found", 405: "method_not_allowed", 409: "byok_not_configured", 429: "rate_limited", 503: "byok_unavailable",
}

// providerKeyHalves are in every answer that shows the provider key.
var providerKeyHalves = []string{rawcall.ProviderKey[:17], rawcall.ProviderKey[17:]}

// problems checks an answer with the right status against the rules for every answer and
// against the step. If the target has Decisions, it also checks the rules of this
// project.
func (s *session) problems(a answer, st step) []problem {
	shape, documented := a.Documented()
	success, shown, mediaType := a.Status == http.StatusOK, a.Shown(), a.Header.Get("Content-Type")
	media, params, _ := mime.ParseMediaType(mediaType)
	isUTF8 := utf8.Valid(a.Body) && slices.Contains([]string{"", "utf-8", "utf8", "us-ascii"}, strings.ToLower(params["charset"]))
	all := []problem{ // the checks for keys come first, because the text of a later problem could quote a key
		{rule("2.4", "The plaintext provider key is never returned."), problemUnless(!rawcall.Shows(shown, providerKeyHalves...), "the answer shows the provider key, or half of it")},
		{rule("fake", "no answer shows an API key"), problemUnless(!rawcall.Shows(shown, slices.Collect(maps.Values(s.Keys))...), "the answer shows an API key")},
		{rule("1", "All request and response bodies are JSON."), problemUnless(media == "application/json", "Content-Type is %q", rawcall.Clip(mediaType))},
		{rule("RFC 8259, 8.1", "JSON text is encoded in UTF-8."), problemUnless(isUTF8, "the body is not valid UTF-8, or Content-Type %q names another charset", rawcall.Clip(mediaType))},
		{documented, shape.Problem(a.Value, success && a.Name == getStatus.Name)},
	}
	if a.Status == http.StatusTooManyRequests {
		wait, ok := a.RetryAfter()
		digits := strings.Trim(a.Header.Get("Retry-After"), "0123456789") == ""
		all = append(all,
			problem{condition(a.Status), problemUnless(ok && wait > 0, "Retry-After names no wait in seconds")},
			problem{rule("RFC 9110, 10.2.3", "Retry-After is a date or a whole number of seconds."), problemUnless(digits, "Retry-After is not a whole number")})
	}
	if s.target.Decisions {
		all = append(all, decisionProblems(a, st)...)
	}
	for _, check := range st.checks {
		all = append(all, problem{s.running.Rule, check(a)})
	}
	return all
}

// decisionProblems checks an answer against the decisions of this project for every answer.
func decisionProblems(a answer, st step) []problem {
	exact := problem{rule("fake", "error values: one for each status; every error has a trace_id"),
		rawcall.Shape("error "+errorCodes[a.Status]+", trace_id text").Problem(a.Value, false)}
	if a.Status == http.StatusOK {
		exact = problem{rule("fake", "a success has the documented members only"), a.Reply.Problem(a.Value, true)}
	}
	repeated := slices.ContainsFunc(a.earlier, func(other answer) bool { return a.At("trace_id") == other.At("trace_id") })
	return []problem{exact,
		{rule("fake", "ids: trace_000001 in order"), problemUnless(!repeated, "an earlier answer had this trace_id")},
		{rule("fake", "ok is true where something was done"), problemUnless(a.At("ok") != false, "ok is false")},
		{rule("fake", "limit_key values: one for each limit of interface 8.1"),
			problemUnless(st.limitKey == "" || a.At("limit_key") == st.limitKey, "want limit_key %s", st.limitKey)}}
}
