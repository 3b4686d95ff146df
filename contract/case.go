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

const day = 24 * time.Hour

// testCase is one rule of the interface and the steps that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule   string
	Spends Spend // at most
	steps  []step

	// It needs an agent that was created with an empty body. Cases that share a target
	// share it; it is one request and one creation of the budget.
	agent bool
	// It needs these fields of Target.
	abilities, secondKey, clientFrom, frozenClock bool

	fillsLimit bool
	metadata   bool // it sends metadata
	creations  int  // calls that create an agent, or are refused for their body
}

// newCase makes a case. What it spends and needs follows from its steps: where several
// statuses are right, the first counts, and a call that gets as far as its body needs an
// agent, if the case itself has not created one.
func newCase(id, sentence string, steps ...step) testCase {
	c := testCase{ID: id, Rule: sentence, steps: flat(steps)}
	created := false
	for _, st := range c.steps {
		c.Spends.Wait += st.wait
		for range st.n {
			c.Spends = c.Spends.Plus(Spend(st.Cost(st.statuses[0])))
		}
		passes := st.n > 0 && st.statuses[0] == http.StatusOK
		reaches := passes || slices.Contains(st.statuses, http.StatusBadRequest)
		c.agent = c.agent || st.OfAgent() && reaches && !created
		c.abilities = c.abilities || st.arrange != nil || st.Key != another && st.Key != own
		c.secondKey = c.secondKey || st.Key == another
		c.clientFrom = c.clientFrom || st.IP != ""
		c.frozenClock = c.frozenClock || st.exact
		c.fillsLimit = c.fillsLimit || slices.Contains(st.statuses, http.StatusTooManyRequests)
		c.metadata = c.metadata || strings.Contains(st.Body, `"metadata":`)
		if creates := st.Name == createAgent.Name; creates && reaches {
			c.creations += st.n
			created = created || passes
		}
	}
	return c
}

// section is the section of the interface that states the rule, or "fake".
func (c testCase) section() string {
	section, _, _ := strings.Cut(c.ID, "/")
	return section
}

// decision reports whether the case checks a decision of this project rather
// than a sentence of the interface.
func (c testCase) decision() bool { return c.section() == "fake" }

// String is the rule with its source, as a failure prints it.
func (c testCase) String() string {
	if c.decision() {
		return "broken rule (our decision, the interface is silent): " + c.Rule
	}
	return "broken rule (interface " + c.section() + "): " + c.Rule
}

type suite []testCase

func (s *suite) rule(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows adds a case of each row: the call with its body is answered with status.
func (s *suite) rows(prefix, sentence string, call step, status int, list ...row) {
	for _, r := range list {
		s.rule(prefix+"/"+r.name, sentence, call.with(r.body).is(status))
	}
}

// step is one thing that a case does: it makes a call n times, or arranges something
// between calls. The calls below make none until is says how they are answered.
type step struct {
	rawcall.Call
	n        int
	statuses []int                 // each call is answered with one of them
	checks   []func(answer) string // what else the answer must have; "" where it has
	exact    bool                  // a check needs a clock that moves only during waits

	// A step without calls has one of these.
	wait      time.Duration    // let this time pass
	untilOpen bool             // with wait: let the last Retry-After pass; one longer than wait fails the case
	arrange   func(s *session) // let Target.Abilities arrange something
	inner     []step           // a group: these steps, n times
}

var (
	getStatus, warmUp, getBYOK = step{Call: rawcall.GetStatus}, step{Call: rawcall.WarmUp}, step{Call: rawcall.GetBYOK}
	setBYOK, clearBYOK         = step{Call: rawcall.SetBYOK}, step{Call: rawcall.ClearBYOK}
	createAgent, readAgent     = step{Call: rawcall.CreateAgent}, step{Call: rawcall.ReadAgent}
	sendMessage, enableSMS     = step{Call: rawcall.SendMessage}, step{Call: rawcall.EnableSMS}

	readNobody, wrongAgent, keyedAgent = step{Call: rawcall.ReadNobody}, step{Call: rawcall.WrongAgent}, step{Call: rawcall.KeyedAgent}
	byokAgent, byokWarmUp, badWarmUp   = step{Call: rawcall.BYOKAgent}, step{Call: rawcall.BYOKWarmUp}, step{Call: rawcall.BadWarmUp}
)

var endpoints = []step{getStatus, warmUp, getBYOK, setBYOK, clearBYOK, createAgent, readAgent, sendMessage, enableSMS}

var (
	// noBYOK clears the stored provider key. Where none is stored the interface
	// allows 404 too: 4.5 lists it.
	noBYOK = clearBYOK.is(200, 404)
	none   = getBYOK.is(200).holds("byok", nil)
)

func at(method, path string) step { return step{Call: rawcall.At(method, path)} }

// Keys that make calls. The zero value is Target.Key.
var (
	own         = rawcall.Key{}
	another     = rawcall.Another
	third       = who("third", "preview")
	fourth      = who("fourth", "preview")
	fifth       = who("fifth", "preview")
	undashboard = rawcall.Key{Name: "undashboard", Plan: "preview"} // on an active plan, but not dashboard-issued
	unpaid      = rawcall.Key{Name: "unpaid", Plan: "free"}         // on an inactive plan, and not dashboard-issued
)

// who is a dashboard-issued key.
func who(name, plan string) rawcall.Key { return rawcall.Key{Name: name, Plan: plan, Dashboard: true} }

const (
	providerKey = rawcall.ProviderKey
	ownKey      = rawcall.OwnKey
	noAgent     = rawcall.NoAgent
	fullMembers = `"base_url":"https://gateway.example/v1","model":"m-1","label":"work"`
	invalidBody = "400 | Bad request (invalid body)"
)

// byokBody is a PUT /v1/byok body with further members.
func byokBody(members string) string {
	return `{"provider":"anthropic","api_key":"` + providerKey + `",` + members + `}`
}

func (st step) of(agentID string) step {
	st.Call = st.Of(agentID)
	return st
}

func (st step) with(body string) step {
	st.Body = body
	return st
}

// is makes the call once: it is answered with one of the statuses.
func (st step) is(statuses ...int) step {
	st.n, st.statuses = 1, statuses
	return st
}

// listed makes the call, and accepts any status that section 4 lists.
func (st step) listed() step { return st.is(append([]int{200}, st.Errors...)...) }

// limited makes the call, which a limit refuses. The limit's name is this project's,
// so it counts only for a target that claims the decisions.
func (st step) limited(limitKey string) step {
	return st.is(429).check(func(a answer) string {
		return unless(!a.s.target.Decisions || a.At("limit_key") == limitKey, "want limit_key %s", limitKey)
	})
}

func (st step) times(n int) step {
	st.n = n
	return st
}

// repeat is a group of steps, taken n times in a row.
func repeat(n int, steps ...step) step { return step{n: n, inner: steps} }

func (st step) by(key rawcall.Key) step {
	st.Key = key
	st.inner = slices.Clone(st.inner)
	for i := range st.inner {
		st.inner[i] = st.inner[i].by(key)
	}
	return st
}

func (st step) from(ip string) step {
	st.IP = ip
	return st
}

// header sets a header. Its value may depend on the key; "" leaves it out.
func (st step) header(name string, value func(key string) string) step {
	st.Call = st.WithHeader(name, value)
	return st
}

func (st step) keyless() step { return st.header("Authorization", rawcall.Always("")) }

func (st step) check(ok func(answer) string) step {
	st.checks = append(slices.Clone(st.checks), ok)
	return st
}

// holds wants a member at a dotted path of the answer: a JSON value (nil is
// null or no member) or a check.
func (st step) holds(path string, want any) step {
	return st.check(func(a answer) string { return a.holds(path, want) })
}

// opensIn checks the wait that Retry-After names. It is exact only if no time
// passes between calls.
func (st step) opensIn(wait time.Duration) step {
	st.exact = true
	return st.check(func(a answer) string {
		got, _ := a.RetryAfter()
		return unless(got == wait, "Retry-After is %v, want %v", got, wait)
	})
}

func wait(d time.Duration) step { return step{wait: d} }

// untilOpen waits as long as Retry-After of the last answer says. A longer wait than
// most, with a tenth in reserve, fails the case.
func untilOpen(most time.Duration) step { return step{wait: most, untilOpen: true} }

var (
	storeOff = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(false) }}
	storeOn  = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(true) }}
)

func revoke(key rawcall.Key) step {
	return step{arrange: func(s *session) { s.target.Abilities.RevokeKey(s.KeyOf(key)) }}
}

// flat returns the steps, with those of a group in its place, as often as it is repeated.
func flat(steps []step) (all []step) {
	for _, st := range steps {
		if st.inner == nil {
			all = append(all, st)
			continue
		}
		for range st.n {
			all = append(all, flat(st.inner)...)
		}
	}
	return all
}

// check runs the case on target. Its error is the broken rule, or skipped, or why no
// case can be checked on the target.
func (c testCase) check(ctx context.Context, target Target, all *shared) error {
	if all.unusable != nil {
		return skipped(all.unusable.Error())
	}
	player := rawcall.NewPlayer(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	player.ClientFrom = target.ClientFrom
	s := &session{Player: player, ctx: ctx, target: target, running: c, all: all}
	if target.Abilities != nil && target.Fresh == nil { // earlier cases used limits, or switched the store off
		target.Abilities.Advance(2 * day)
		target.Abilities.SetBYOKAvailable(true)
	}
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
	for _, st := range c.steps {
		if err := s.take(st); err != nil {
			return err
		}
	}
	return nil
}

// skipped says why a case was given up that blames no rule.
type skipped string

func (s skipped) Error() string { return string(s) }

// shared holds the state that the cases on one target share.
type shared struct {
	failed bool          // the agent could not be created
	agent  string        // the one that cases share
	wait   time.Duration // that is left to wait for limits

	accepted   bool  // a call with Target.Key was answered by neither 401 nor 402
	unanswered int   // calls in a row without an answer
	unusable   error // why no further case can be checked
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

// call makes the i-th call of a step, whose status must be right. A shared target may be
// busy with other calls of the key: a limit that refuses a call in the middle of a case
// is waited for, or skips the case. With Abilities a case that fills a limit began with
// an unused one, so it fails there.
func (s *session) call(st step, i int) (answer, error) {
	mayBeLimited := (s.target.live() || s.target.Fresh == nil && !s.running.fillsLimit) && (st.Limited() || st.Name == rawcall.At("", "").Name)
	for tries := 0; ; tries++ {
		x, err := s.Play(s.ctx, st.Call)
		a := answer{Exchange: x, s: s}
		if s.note(st.Call, x.Status, err); s.all.unusable != nil {
			return a, s.all.unusable
		}
		switch {
		case err != nil:
			return a, fmt.Errorf("%s %s got no answer: %s\nit would show whether the target keeps this rule: %s",
				st.Method, st.Path, rawcall.Cause(err), s.running.Rule)
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

// note ends the run on a shared target after three calls in a row without an answer, and
// if the target refuses Target.Key from the start: the rules are not to blame.
func (s *session) note(c rawcall.Call, status int, err error) {
	all, refused := s.all, status == http.StatusUnauthorized || status == http.StatusPaymentRequired
	byOwnKey := err == nil && c.Key == own && c.Header != "Authorization"
	all.accepted = all.accepted || byOwnKey && !refused
	if all.unanswered++; err == nil {
		all.unanswered = 0
	}
	switch {
	case s.target.Fresh != nil:
	case all.unanswered == 3:
		all.unusable = fmt.Errorf("contract: three calls in a row got no answer; check Target.BaseURL and whether the service is up: %s", rawcall.Cause(err))
	case byOwnKey && refused && !all.accepted:
		all.unusable = fmt.Errorf("contract: the target refuses Target.Key: %d; use a dashboard-issued key on an active plan", status)
	}
}

// pause waits, or skips the case if the budget has less waiting left.
func (s *session) pause(wait time.Duration, why string) error {
	if s.target.Abilities == nil {
		if wait > s.all.wait {
			return skipped(fmt.Sprintf("%s: %v, of %v of waiting that are left", why, wait, s.all.wait))
		}
		s.all.wait -= wait
	}
	return s.wait(step{wait: wait})
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
		unless(mediaType == "application/json", "Content-Type is %q; interface 1 wants JSON", rawcall.Clip(a.Header.Get("Content-Type"))),
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
