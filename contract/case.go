package contract

import (
	"net/http"
	"slices"
	"strings"
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
	// Rule is what the case checks: a sentence of the interface, or for a case "fake/..." a
	// decision.
	Rule   rawcall.Rule
	Spends Spend // at most
	steps  []step

	// agent is set if the case needs an agent that was created with an empty body. Cases on
	// one target share this agent, which costs one request and one creation.
	agent bool
	// The fields of Target that the case needs.
	abilities, secondKey, clientFrom, frozenClock bool

	fillsLimit bool // a call must be refused with 429
	planCap    bool // checks a cap of interface 8.2, which a service may not have enabled
	creations  int  // calls that create an agent, or creations that are refused for their body
}

// newCase makes a case. The steps decide what the case spends and needs. If several
// statuses are right, the first counts. A call whose body is checked needs an agent,
// unless the case itself has created one.
func newCase(id, sentence string, steps ...step) testCase {
	section, _, _ := strings.Cut(id, "/")
	c := testCase{ID: id, Rule: rule(section, sentence), steps: flatten(steps)}
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
		if creates := st.Name == createAgent.Name; creates && reaches {
			c.creations += st.n
			created = created || passes
		}
	}
	return c
}

// decision reports whether the case checks a decision of this project rather
// than a sentence of the interface.
func (c testCase) decision() bool { return c.Rule.Section == "fake" }

// suite collects the cases. Each of its methods adds the cases of one subject.
type suite []testCase

// add adds a case that checks a sentence of the interface, or a decision, by its steps.
func (s *suite) add(id, sentence string, steps ...step) {
	*s = append(*s, newCase(id, sentence, steps...))
}

// row is a body, and the end of the id of the case that sends it.
type row struct{ name, body string }

// addRows adds a case for each row, in which the call with the row's body is answered
// with status.
func (s *suite) addRows(prefix, sentence string, call step, status int, list ...row) {
	for _, r := range list {
		s.add(prefix+"/"+r.name, sentence, call.with(r.body).is(status))
	}
}

// step is one step of a case: it makes a call n times, or arranges something between
// calls. The steps below make no call (n is 0) until is, given or limited sets the
// expected answer.
type step struct {
	rawcall.Call
	n        int
	statuses []int                 // each call must be answered with one of these
	prepares bool                  // the call only prepares the case: see given
	limitKey string                // the limit that must refuse the call; "" means any limit
	checks   []func(answer) string // each says what is wrong with the answer; "" if nothing is
	exact    bool                  // a check needs a clock that moves only during waits

	// A step without calls has one of these.
	wait      time.Duration                    // the time to wait
	untilOpen bool                             // waits as long as the last Retry-After says, which may be longer than wait by at most a tenth
	arrange   func(*rawcall.Caller, Abilities) // changes the target; the Caller has the text of each key
	inner     []step                           // a group of steps, taken n times
}

// The calls of package rawcall as steps: first one right call of each endpoint, then calls
// about an unknown agent, with a wrong body, or with BYOK.
var (
	getStatus, warmUp, getBYOK = step{Call: rawcall.GetStatus}, step{Call: rawcall.WarmUp}, step{Call: rawcall.GetBYOK}
	setBYOK, clearBYOK         = step{Call: rawcall.SetBYOK}, step{Call: rawcall.ClearBYOK}
	createAgent, readAgent     = step{Call: rawcall.CreateAgent}, step{Call: rawcall.ReadAgent}
	sendMessage, enableSMS     = step{Call: rawcall.SendMessage}, step{Call: rawcall.EnableSMS}

	readUnknownAgent, badCreation = step{Call: rawcall.ReadUnknownAgent}, step{Call: rawcall.BadCreation}
	creationWithKey, byokCreation = step{Call: rawcall.CreationWithKey}, step{Call: rawcall.BYOKCreation}
	byokWarmUp, badWarmUp         = step{Call: rawcall.BYOKWarmUp}, step{Call: rawcall.BadWarmUp}
)

// endpoints has one call of each endpoint, in the order of interface 4.
var endpoints = []step{getStatus, warmUp, getBYOK, setBYOK, clearBYOK, createAgent, readAgent, sendMessage, enableSMS}

var (
	// clearStored clears the stored provider key. If none is stored, the interface also
	// allows 404, which 4.5 lists.
	clearStored = clearBYOK.given(200, 404)
	byokIsNull  = getBYOK.is(200).holds("byok", nil)
)

// at makes a step of any method and path.
func at(method, path string) step { return step{Call: rawcall.At(method, path)} }

// The keys with which steps make calls. The zero Key is Target.Key.
var (
	own          = rawcall.Key{}
	another      = rawcall.Another
	third        = key("third", "preview")
	notDashboard = rawcall.Key{Name: "not-dashboard", Plan: "preview"} // on an active plan, but not dashboard-issued
	unpaid       = key("unpaid", "free")                               // on an inactive plan, which gives 402
)

// key returns a dashboard-issued key with this name on a plan. Abilities issue it.
func key(name, plan string) rawcall.Key { return rawcall.Key{Name: name, Plan: plan, Dashboard: true} }

const fullMembers = `"base_url":"https://gateway.example/v1","model":"m-1","label":"work"`

// invalidBody is the rule that most cases with a wrong body check.
var invalidBody = condition(400).Sentence

// byokBody returns a PUT /v1/byok body with further members.
func byokBody(members string) string {
	return `{"provider":"anthropic","api_key":"` + rawcall.ProviderKey + `",` + members + `}`
}

// ofUnknownAgent makes the call about an agent that does not exist.
func (st step) ofUnknownAgent() step {
	st.Call = st.Of(rawcall.UnknownAgentID)
	return st
}

// with replaces the body of the call.
func (st step) with(body string) step {
	st.Body = body
	return st
}

// is makes the call once, and wants one of the statuses.
func (st step) is(statuses ...int) step {
	st.n, st.statuses = 1, statuses
	return st
}

// given makes a call that only prepares the case, and wants one of the statuses. Any other
// status breaks another rule than the case's own.
func (st step) given(statuses ...int) step {
	st.prepares = true
	return st.is(statuses...)
}

// listed makes the call, and accepts any status that section 4 lists.
func (st step) listed() step { return st.is(append([]int{200}, st.Errors...)...) }

// limited makes the call, and wants this limit to refuse it. This project chose the names
// of limits, so the name is checked only on a target with Decisions.
func (st step) limited(limitKey string) step {
	st.limitKey = limitKey
	return st.is(429)
}

// times makes the call n times.
func (st step) times(n int) step {
	st.n = n
	return st
}

// group returns a step that takes several steps.
func group(steps ...step) step { return repeat(1, steps...) }

// repeat returns a step that takes several steps n times in a row.
func repeat(n int, steps ...step) step { return step{n: n, inner: steps} }

// by makes the call, or the calls of a group, with another key.
func (st step) by(key rawcall.Key) step {
	st.Key = key
	st.inner = slices.Clone(st.inner)
	for i := range st.inner {
		st.inner[i] = st.inner[i].by(key)
	}
	return st
}

// from makes the call from another address.
func (st step) from(ip string) step {
	st.IP = ip
	return st
}

// header sets a header. Its value may depend on the key; "" leaves it out.
func (st step) header(name string, value func(key string) string) step {
	st.Call = st.WithHeader(name, value)
	return st
}

// keyless makes the call without an Authorization header.
func (st step) keyless() step { return st.header("Authorization", rawcall.Always("")) }

// check adds a check, which says what is wrong with the answer.
func (st step) check(ok func(answer) string) step {
	st.checks = append(slices.Clone(st.checks), ok)
	return st
}

// holds wants a member at a dotted path of the answer: a JSON value (nil is
// null or no member) or a check.
func (st step) holds(path string, want any) step {
	return st.check(func(a answer) string { return a.holds(path, want) })
}

// holdsBYOK wants these members of a BYOK configuration.
func (st step) holdsBYOK(provider string, baseURL, model any) step {
	return st.holds("byok.provider", provider).holds("byok.base_url", baseURL).holds("byok.model", model)
}

// opensIn checks the wait that Retry-After names. The check is exact only if no time
// passes between calls.
func (st step) opensIn(wait time.Duration) step {
	st.exact = true
	return st.check(func(a answer) string {
		got, _ := a.RetryAfter()
		return problemUnless(got == wait, "Retry-After is %v, want %v", got, wait)
	})
}

// wait lets time pass.
func wait(d time.Duration) step { return step{wait: d} }

// untilOpen waits as long as Retry-After of the last answer says. The case fails if this
// wait is longer than maxWait by more than a tenth.
func untilOpen(maxWait time.Duration) step { return step{wait: maxWait, untilOpen: true} }

var (
	storeOff = step{arrange: func(_ *rawcall.Caller, can Abilities) { can.SetBYOKAvailable(false) }}
	storeOn  = step{arrange: func(_ *rawcall.Caller, can Abilities) { can.SetBYOKAvailable(true) }}
)

// revoke has the target revoke a key.
func revoke(key rawcall.Key) step {
	return step{arrange: func(caller *rawcall.Caller, can Abilities) { can.RevokeKey(caller.KeyOf(key)) }}
}

// flatten returns the steps with each group replaced by its own steps, repeated.
func flatten(steps []step) (all []step) {
	for _, st := range steps {
		if st.inner == nil {
			all = append(all, st)
			continue
		}
		for range st.n {
			all = append(all, flatten(st.inner)...)
		}
	}
	return all
}
