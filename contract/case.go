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

// testCase is one rule of the interface and the steps that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's
	// short name, as in "4.8/reply". Cases "fake/..." check decisions
	// of this project where the interface is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule      string
	Spends    Spend // at most
	Needs     []need
	steps     []step
	refused   bool // it fills a limit
	metadata  bool // it sends metadata
	creations int  // calls that create an agent, or are refused for their body
}

// need is a thing that a case needs from its target. All but needAgent are fields of
// [Target], by the field's name.
type need string

const (
	// needAgent is an agent created with an empty body. Cases that share a
	// target share it; it is one request and one creation of the budget.
	needAgent       need = "an agent"
	needAbilities   need = "Abilities"
	needSecondKey   need = "SecondKey"
	needClientFrom  need = "ClientFrom"
	needDecisions   need = "Decisions"
	needFrozenClock need = "FrozenClock"
)

// newCase makes a case. What it spends and needs follows from its steps: where several
// statuses are right, the first counts, and a call that gets as far as its body needs an
// agent, if the case itself has not created one.
func newCase(id, sentence string, steps ...step) testCase {
	c := testCase{ID: id, Rule: sentence, steps: steps}
	add := func(needed bool, n need) {
		if needed && !slices.Contains(c.Needs, n) {
			c.Needs = append(c.Needs, n)
		}
	}
	created := false
	walk(steps, func(st step) {
		c.Spends.Wait += st.wait
		for range st.n {
			c.Spends = c.Spends.Plus(Spend(st.call.Cost(st.statuses[0])))
		}
		passes := st.n > 0 && st.statuses[0] == http.StatusOK
		reaches := passes || slices.Contains(st.statuses, http.StatusBadRequest)
		add(st.call.OfAgent() && reaches && !created, needAgent)
		add(st.arrange != nil || st.call.Key != another && st.call.Key != rawcall.Key{}, needAbilities)
		add(st.call.Key == another, needSecondKey)
		add(st.call.IP != "", needClientFrom)
		add(st.exact, needFrozenClock)
		c.refused = c.refused || slices.Contains(st.statuses, http.StatusTooManyRequests)
		c.metadata = c.metadata || strings.Contains(st.call.Body, `"metadata":`)
		if creates := st.call.Name == createAgent.Name; creates && reaches {
			c.creations += st.n
			created = created || passes
		}
	})
	add(c.decision(), needDecisions)
	return c
}

type suite []testCase

func (s *suite) rule(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body and its name in a case id.
type row struct{ name, body string }

// rows adds a case of each row: the endpoint answers its body with status.
func (s *suite) rows(prefix, sentence string, e endpoint, status int, list ...row) {
	for _, r := range list {
		s.rule(prefix+"/"+r.name, sentence, e.with(r.body).is(status))
	}
}

// allCases lists every case, in the order of the interface's sections and the
// decisions last.
func allCases() []testCase {
	var s suite
	for _, add := range []func(){
		s.agents, s.sms, s.metadata, s.messages, s.byok, s.byokOfCreations, s.byokOfAnotherKey, s.secrets, s.warmUps,
		s.members, s.unknownMembers, s.bodies, s.strictJSON, s.contentTypes, s.routes, s.methods, s.credentials, s.order,
		s.limits, s.sharedLimits, s.plans, s.counted, s.uncounted, s.operations, s.windows, s.unchanged, s.unlisted,
	} {
		add()
	}
	slices.SortStableFunc(s, func(a, b testCase) int { return cmp.Compare(a.section(), b.section()) })
	return s
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

// check runs the case on target.
func (c testCase) check(tb testing.TB, target Target, shared *shared) {
	s := newSession(tb, target, c, shared)
	if slices.Contains(c.Needs, needAgent) {
		s.Agents[rawcall.Key{}] = shared.agentOf(s)
	}
	if c.refused && target.live() {
		s.pause(time.Minute, "it fills a limit, which takes a minute without calls")
	}
	walk(c.steps, s.take)
}

// step is one thing that a case does: it makes n calls, or arranges something
// between calls.
type step struct {
	n        int
	call     rawcall.Call
	statuses []int                 // each call is answered with one of them
	checks   []func(answer) string // what else the answer must have; "" where it has
	exact    bool                  // a check needs a clock that moves only during waits

	// Instead of calls:
	wait      time.Duration    // this passes,
	untilOpen bool             // or what Retry-After named, which is wait at most,
	arrange   func(s *session) // or Target.Abilities arrange something,
	inner     []step           // or these are taken n times
}

// Keys that cases use besides rawcall's.
var (
	another     = rawcall.Another
	third       = rawcall.Third
	fourth      = who("fourth", "preview")
	fifth       = who("fifth", "preview")
	undashboard = rawcall.Undashboard
	unpaid      = rawcall.Unpaid
)

// who is a dashboard-issued key.
func who(name, plan string) rawcall.Key { return rawcall.Key{Name: name, Plan: plan, Dashboard: true} }

// endpoint makes steps of the calls to an endpoint.
type endpoint struct{ rawcall.Endpoint }

func at(method, path string) endpoint { return endpoint{rawcall.At(method, path)} }

var (
	getStatus, warmUp, getBYOK = endpoint{rawcall.GetStatus}, endpoint{rawcall.WarmUp}, endpoint{rawcall.GetBYOK}
	setBYOK, clearBYOK         = endpoint{rawcall.SetBYOK}, endpoint{rawcall.ClearBYOK}
	createAgent, readAgent     = endpoint{rawcall.CreateAgent}, endpoint{rawcall.ReadAgent}
	sendMessage, enableSMS     = endpoint{rawcall.SendMessage}, endpoint{rawcall.EnableSMS}

	readNobody, wrongAgent, keyedAgent = endpoint{rawcall.ReadNobody}, endpoint{rawcall.WrongAgent}, endpoint{rawcall.KeyedAgent}
	byokAgent, byokWarmUp, badWarmUp   = endpoint{rawcall.BYOKAgent}, endpoint{rawcall.BYOKWarmUp}, endpoint{rawcall.BadWarmUp}
)

var endpoints = []endpoint{getStatus, warmUp, getBYOK, setBYOK, clearBYOK, createAgent, readAgent, sendMessage, enableSMS}

func (e endpoint) of(agentID string) endpoint { return endpoint{e.Of(agentID)} }

func (e endpoint) with(body string) endpoint { return endpoint{e.With(body)} }

// byokBody is a PUT /v1/byok body with further members.
func byokBody(members string) string {
	return `{"provider":"anthropic","api_key":"` + providerKey + `",` + members + `}`
}

const (
	providerKey = rawcall.ProviderKey
	ownKey      = rawcall.OwnKey
	noAgent     = rawcall.NoAgent
)

// is makes the call a step: it is answered with one of the statuses.
func (e endpoint) is(statuses ...int) step {
	return step{n: 1, call: rawcall.Call{Endpoint: e.Endpoint}, statuses: statuses}
}

// listed makes the call a step that accepts any status that section 4 lists.
func (e endpoint) listed() step { return e.is(append([]int{200}, e.Errors...)...) }

// limited makes the call a step that the limiter refuses. The limiter's name is
// this project's, so it counts only for a target that claims the decisions.
func (e endpoint) limited(limitKey string) step {
	return e.is(429).check(func(a answer) string {
		return unless(!a.s.target.Decisions || a.At("limit_key") == limitKey, "want limit_key %s", limitKey)
	})
}

// limited reports whether a limit may refuse the call: interface 4 lists 429 for
// its endpoint, or it has none.
func (st step) limited() bool { return st.call.Limited() || st.call.Name == at("", "").Name }

func (st step) times(n int) step {
	st.n = n
	return st
}

// repeat is a group of steps, taken n times in a row.
func repeat(n int, steps ...step) step { return step{n: n, inner: steps} }

func (st step) by(key rawcall.Key) step {
	st.call.Key = key
	st.inner = slices.Clone(st.inner)
	for i := range st.inner {
		st.inner[i] = st.inner[i].by(key)
	}
	return st
}

func (st step) from(ip string) step {
	st.call.IP = ip
	return st
}

// header sets a header. Its value may depend on the key; "" leaves it out.
func (st step) header(name string, value func(key string) string) step {
	st.call.Header, st.call.Value = name, value
	return st
}

func (st step) keyless() step { return st.header("Authorization", always("")) }

func always(value string) func(string) string { return func(string) string { return value } }

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

// untilOpen waits as long as the last answer said, which is at most that long.
func untilOpen(most time.Duration) step { return step{wait: most, untilOpen: true} }

var (
	storeOff = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(false) }}
	storeOn  = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(true) }}
)

func revoke(key rawcall.Key) step {
	return step{arrange: func(s *session) { s.target.Abilities.RevokeKey(s.KeyOf(key)) }}
}

// walk calls do with each step in order. It walks the steps of a group as often as
// the group is repeated.
func walk(steps []step, do func(step)) {
	for _, st := range steps {
		if st.inner == nil {
			do(st)
			continue
		}
		for range st.n {
			walk(st.inner, do)
		}
	}
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
	s.Keys[rawcall.Key{}], s.ClientFrom = target.Key, target.ClientFrom
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
	a := s.play(st)
	for tries := 0; a.Status == http.StatusTooManyRequests && !slices.Contains(st.statuses, a.Status) && s.target.live() && st.limited(); tries++ {
		if s.running.refused || tries == 3 {
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
	x, err := s.Play(s.Context(), st.call)
	if err != nil {
		s.Fatalf("%s\n%s %s: %s", s.running, st.call.Method, st.call.Path, rawcall.Clip(err.Error()))
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

func isText(v, _ any) string {
	return unless(rawcall.Fits(v, "text"), "got %s, want a text", rawcall.Brief(v))
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
