package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

const day = 24 * time.Hour

// testCase is one rule of the interface and the steps that check it.
type testCase struct {
	// ID is stable: the section that states the rule, a slash and the rule's short name, as
	// in "4.8/reply". Cases "fake/..." check decisions of this project where the interface
	// is silent.
	ID string
	// Rule is the sentence that the case checks, in the words of the
	// interface, or for a case "fake/..." the decision.
	Rule   string
	Spends Spend // at most
	steps  []step

	// agent is set for a case that needs an agent, created with an empty body. Cases on
	// one target share it; it costs the budget one request and one creation.
	agent bool
	// The fields of Target that the case needs.
	abilities, secondKey, clientFrom, frozenClock bool

	fillsLimit bool // a call must be refused with 429
	metadata   bool // a call sends metadata
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

// section returns the section of the interface that states the rule, or "fake".
func (c testCase) section() string {
	section, _, _ := strings.Cut(c.ID, "/")
	return section
}

// decision reports whether the case checks a decision of this project rather
// than a sentence of the interface.
func (c testCase) decision() bool { return c.section() == "fake" }

// rule returns the rule that the case checks.
func (c testCase) rule() rawcall.Rule { return rawcall.Rule{Section: c.section(), Sentence: c.Rule} }

// suite collects the cases; its methods each add those of one subject.
type suite []testCase

func (s *suite) add(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body, and the end of the id of the case that sends it.
type row struct{ name, body string }

// addRows adds a case of each row: the call with its body is answered with status.
func (s *suite) addRows(prefix, sentence string, call step, status int, list ...row) {
	for _, r := range list {
		s.add(prefix+"/"+r.name, sentence, call.with(r.body).is(status))
	}
}

// step is one thing that a case does: it makes a call n times, or arranges something
// between calls. The steps below make no call (n is 0) until is, given or limited says how
// it is answered.
type step struct {
	rawcall.Call
	n        int
	statuses []int                 // each call is answered with one of them
	prepares bool                  // the call only prepares what the case checks: see given
	limitKey string                // the limit that must refuse the call; "" means any
	checks   []func(answer) string // each says what is wrong with the answer, "" for nothing
	exact    bool                  // a check needs a clock that moves only during waits

	// A step without calls has one of these.
	wait      time.Duration    // waits so long
	untilOpen bool             // waits for the last Retry-After, which must not be longer than wait
	arrange   func(s *session) // has Target.Abilities arrange something
	inner     []step           // a group: takes these steps, n times
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
	// clearStored clears the stored provider key. Where none is stored the interface
	// allows 404 too: 4.5 lists it.
	clearStored = clearBYOK.given(200, 404)
	byokIsNull  = getBYOK.is(200).holds("byok", nil)
)

func at(method, path string) step { return step{Call: rawcall.At(method, path)} }

// Keys that make calls. The zero value is Target.Key.
var (
	own         = rawcall.Key{}
	another     = rawcall.Another
	third       = key("third", "preview")
	fourth      = key("fourth", "preview")
	fifth       = key("fifth", "preview")
	undashboard = rawcall.Key{Name: "undashboard", Plan: "preview"} // on an active plan, but not dashboard-issued
	unpaid      = rawcall.Key{Name: "unpaid", Plan: "free"}         // on an inactive plan, and not dashboard-issued
)

// key returns a dashboard-issued key on a plan, which Abilities issue under this name.
func key(name, plan string) rawcall.Key { return rawcall.Key{Name: name, Plan: plan, Dashboard: true} }

const (
	providerKey = rawcall.ProviderKey
	keyMembers  = rawcall.KeyMembers
	noAgent     = rawcall.NoAgent
	fullMembers = `"base_url":"https://gateway.example/v1","model":"m-1","label":"work"`
)

var invalidBody = condition(400).Sentence

// byokBody returns a PUT /v1/byok body with further members.
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

// is makes the call once, and wants one of the statuses.
func (st step) is(statuses ...int) step {
	st.n, st.statuses = 1, statuses
	return st
}

// given makes a call that prepares what the case checks, and wants one of the statuses. Any
// other status fails the case in the name of another rule.
func (st step) given(statuses ...int) step {
	st.prepares = true
	return st.is(statuses...)
}

// listed makes the call, and accepts any status that section 4 lists.
func (st step) listed() step { return st.is(append([]int{200}, st.Errors...)...) }

// limited makes the call, and wants this limit to refuse it. The names of limits are this
// project's, so the name is checked only on a target with Target.Decisions.
func (st step) limited(limitKey string) step {
	st.limitKey = limitKey
	return st.is(429)
}

func (st step) times(n int) step {
	st.n = n
	return st
}

// repeat returns a group of steps, taken n times in a row.
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

func (st step) holdsBYOK(provider string, baseURL, model any) step {
	return st.holds("byok.provider", provider).holds("byok.base_url", baseURL).holds("byok.model", model)
}

// opensIn checks the wait that Retry-After names. It is exact only if no time
// passes between calls.
func (st step) opensIn(wait time.Duration) step {
	st.exact = true
	return st.check(func(a answer) string {
		got, _ := a.RetryAfter()
		return problemUnless(got == wait, "Retry-After is %v, want %v", got, wait)
	})
}

func wait(d time.Duration) step { return step{wait: d} }

// untilOpen waits as long as Retry-After of the last answer says. The case fails if that
// is longer than most and a half.
func untilOpen(most time.Duration) step { return step{wait: most, untilOpen: true} }

var (
	storeOff = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(false) }}
	storeOn  = step{arrange: func(s *session) { s.target.Abilities.SetBYOKAvailable(true) }}
)

func revoke(key rawcall.Key) step {
	return step{arrange: func(s *session) { s.target.Abilities.RevokeKey(s.KeyOf(key)) }}
}

// flat returns the steps with each group replaced by its own steps, repeated.
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

// runOn runs the case on target. Its error is the broken rule, or skipped, or why no
// case can be checked on the target.
func (c testCase) runOn(ctx context.Context, target Target, all *shared) error {
	if all.unusable != nil {
		return skipped(all.unusable.Error())
	}
	player := rawcall.NewPlayer(target.BaseURL, target.HTTPClient, target.Key, target.SecondKey, target.Abilities)
	player.ClientFrom = target.ClientFrom
	s := &session{Player: player, ctx: ctx, target: target, running: c, all: all, made: map[string]int{}, began: time.Now()}
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

// skipped is the error of a case that was given up without a broken rule: the reason.
type skipped string

func (s skipped) Error() string { return string(s) }

// shared holds the state that the cases on one target share.
type shared struct {
	// reported maps a failure (the broken rule, endpoint and status, and what is wrong) to
	// the case that reported it although it checks another rule. Later cases that meet
	// the failure are skipped. Cases on fresh targets share the map too.
	reported *sync.Map

	failed bool          // the agent could not be created
	agent  string        // the one that cases share
	wait   time.Duration // how much waiting for limits the budget has left

	accepted   bool  // a call with Target.Key was answered with JSON, and neither 401 nor 402
	unanswered int   // calls in a row without an answer
	unusable   error // why no further case can be checked
}

func newShared(wait time.Duration) *shared { return &shared{wait: wait, reported: new(sync.Map)} }

// session is one case under way.
type session struct {
	rawcall.Player
	ctx     context.Context
	target  Target
	running testCase
	all     *shared
	earlier []answer // the answers so far, except to steps that make many calls
	broke   bool     // an answer broke a rule

	made   map[string]int // how often it made each call with each status, for the text of a failure
	began  time.Time
	waited time.Duration // the sum of its waits
	opened time.Duration // the Retry-After that has just passed; 0 if a call came after it
}

// takeAgent gives the case the agent that the cases share, and creates it for the first
// one. After a failure no later case tries again, since each try may cost a creation; a
// creation that a limit refused cost nothing, so the next case tries again.
func (s *session) takeAgent() error {
	if s.all.failed {
		return skipped("an earlier case could not create the agent that the cases share")
	}
	if s.all.agent == "" {
		if err := s.take(createAgent.given(200)); err != nil {
			s.all.failed = s.broke || !errors.As(err, new(skipped))
			return err
		}
		s.all.agent = s.Last
	}
	s.Agents[own] = s.all.agent
	return nil
}

// take takes one step. If a step makes many calls, only their statuses are checked: to
// fill a daily limit takes thousands.
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
			err = s.failure(a, a.problems(st)...)
			s.earlier = append(s.earlier, a)
		}
		if err != nil {
			return err
		}
		s.made[fmt.Sprint(a.Line(), " ", a.Status)]++
		s.opened = 0
	}
	return nil
}

// problem says what is wrong with an answer, and which rule it breaks; "" if it is right.
type problem struct {
	rule rawcall.Rule
	text string
}

// failure returns the error of the first problem: the broken rule, what is wrong, and the
// exchange that shows it; nil if there is no problem. If another rule is broken than the
// one that the case checks, only the first case that meets the problem fails. The others
// are skipped, and name that case.
func (s *session) failure(a answer, problems ...problem) error {
	i := slices.IndexFunc(problems, func(p problem) bool { return p.text != "" })
	if i < 0 {
		return nil
	}
	s.broke = true
	p := problems[i]
	text := fmt.Sprintf("broken rule %s\n%s\n%s%s", p.rule, p.text, s.Describe(a.Exchange), s.before())
	if p.rule == s.running.rule() {
		return errors.New(text)
	}
	met := fmt.Sprint(p.rule, " by ", a.Name, a.Status, ": ", p.text)
	if first, again := s.all.reported.LoadOrStore(met, s.running.ID); again {
		return skipped(fmt.Sprintf("not checked: case %s shows a broken rule %s", first, p.rule))
	}
	return fmt.Errorf("%s\n%s", text, s.unchecked())
}

// before says in a line what the case did before the call that failed it, if anything.
func (s *session) before() (done string) {
	for _, call := range slices.Sorted(maps.Keys(s.made)) {
		done += fmt.Sprintf(", %d x %s", s.made[call], call)
	}
	if s.waited > 0 {
		done += fmt.Sprintf(", %v of waiting", s.waited)
	}
	return strings.Replace(done, ",", "\nbefore that", 1)
}

// unchecked names the rule of a case that ended before it could check that.
func (s *session) unchecked() string {
	return "before this rule could be checked " + s.running.rule().String()
}

// wait lets the time of a step pass. With untilOpen that is the last Retry-After. It may be
// longer than the step says by a tenth: a service may name a little more than it needs.
func (s *session) wait(st step) error {
	wait := st.wait
	if st.untilOpen {
		last := s.earlier[len(s.earlier)-1]
		if wait, _ = last.RetryAfter(); wait > st.wait+st.wait/10 {
			return s.failure(last, problem{s.running.rule(), fmt.Sprintf("Retry-After is %v, but the limit opens in %v", wait, st.wait)})
		}
		s.opened = wait
	}
	s.waited += wait
	switch abilities := s.target.Abilities; {
	case wait == 0:
	case abilities != nil:
		abilities.Advance(wait)
	default:
		time.Sleep(wait)
	}
	return nil
}

// call makes the i-th call of a step, whose status must be right. On a shared target other
// calls with the key may have used a limit. If it refuses a call in the middle of a case,
// the case waits until it opens, or is skipped. With Abilities, a case that fills a limit
// has begun with an unused one, so such a refusal fails it.
func (s *session) call(st step, i int) (answer, error) {
	mayBeLimited := (s.target.live() || s.target.Fresh == nil && !s.running.fillsLimit) && (st.Limited() || !st.IsEndpoint())
	for tries := 0; ; tries++ {
		x, err := s.Play(s.ctx, st.Call)
		a := answer{Exchange: x, s: s}
		s.checkTarget(st.Call, x, err)
		if s.all.unusable != nil {
			return a, s.all.unusable
		}
		switch {
		case err != nil:
			return a, fmt.Errorf("%s %s got no answer: %s\n%s", st.Method, st.Path, rawcall.Cause(err), s.unchecked())
		case slices.Contains(st.statuses, a.Status):
			return a, s.failure(a, a.bucketProblem(st, tries))
		case a.Status == http.StatusOK && tries < s.givenBack(st):
			continue
		case a.Status == http.StatusTooManyRequests && s.running.section() == "8.2" && i == 59 && !s.target.Decisions:
			// This key had the 60 requests of 8.1: a creation and 59 reads.
			return a, skipped("the plan has the 60 requests a minute of interface 8.1: the caps of 8.2 are not enabled")
		case a.Status == http.StatusServiceUnavailable && s.target.live() && slices.Contains(a.Errors, a.Status) && a.At("error") != nil:
			return a, skipped("BYOK is not available on the target, which interface 7 allows")
		case a.Status != http.StatusTooManyRequests || !mayBeLimited:
			return a, s.failure(a, a.statusProblem(st, i))
		case s.running.fillsLimit || tries == 3:
			return a, skipped("a limit of the target refused a call in the middle: " + s.Describe(a.Exchange))
		}
		wait, ok := a.RetryAfter()
		if !ok {
			wait = time.Minute
		}
		if err := s.pause(wait, "a limit of the target refused a call in the middle, and opens later"); err != nil {
			return a, err
		}
	}
}

// windowOf returns how long a limit lasts from its first call, which the end of its name
// says; 0 for no name.
func windowOf(limitKey string) time.Duration {
	ends := limitKey[strings.LastIndexByte(limitKey, '_')+1:]
	return map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}[ends]
}

// givenBack is how many calls a token bucket has given back while the case filled it. The
// interface does not say how a limit counts, so these may pass too. It is 0 on a live
// target, and on one that claims the decisions.
func (s *session) givenBack(st step) int {
	window, elapsed := windowOf(st.limitKey), s.waited+time.Since(s.began)
	if window == 0 || s.target.live() || s.target.Decisions {
		return 0
	}
	n := int(float64(s.running.Spends.Requests) * float64(elapsed) / float64(window))
	if window == time.Minute {
		return n
	}
	return min(n, 50) // more could meet the limit of a minute
}

// bucketProblem says what is wrong with a refusal that came some calls too late: the limit
// is too large, unless it is a bucket, which gives the next call back after about the
// window divided by the calls of the case.
func (a answer) bucketProblem(st step, tooMany int) problem {
	wait, _ := a.RetryAfter()
	soon := wait <= max(time.Minute, 2*windowOf(st.limitKey)/time.Duration(max(1, a.s.running.Spends.Requests)))
	return problem{a.s.running.rule(), problemUnless(tooMany == 0 || soon, "%d calls too many passed, and the limit opens in %v", tooMany, wait)}
}

// checkTarget ends the run on a shared target after three calls in a row without an
// answer, and if the target, from the start, refuses Target.Key or answers it with no
// JSON, as another server does: the rules are not to blame.
func (s *session) checkTarget(c rawcall.Call, x rawcall.Exchange, err error) {
	all, refused := s.all, x.Status == http.StatusUnauthorized || x.Status == http.StatusPaymentRequired
	byOwnKey := err == nil && c.Key == own && c.Header != "Authorization"
	all.accepted = all.accepted || byOwnKey && !refused && x.Value != nil
	if byOwnKey && !all.accepted {
		err = fmt.Errorf("%d without JSON", x.Status)
	}
	all.unanswered++
	if err == nil {
		all.unanswered = 0
	}
	switch {
	case s.target.Fresh != nil:
	case all.unanswered == 3:
		all.unusable = fmt.Errorf("contract: three calls in a row got no answer; check Target.BaseURL and whether the service is up: %s", rawcall.Cause(err))
	case byOwnKey && refused && !all.accepted:
		all.unusable = fmt.Errorf("contract: the target refuses Target.Key: %d; use a dashboard-issued key on an active plan", x.Status)
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

// answer is an exchange of a case, which its methods hold to the rules.
type answer struct {
	rawcall.Exchange
	s *session
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
