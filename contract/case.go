package contract

import (
	"net/http"
	"slices"
	"strings"
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
	c := testCase{ID: id, Rule: sentence, steps: steps}
	created := false
	_ = walk(steps, func(st step) error {
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
		return nil
	})
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
	inner     []step           // take these steps n times
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

func at(method, path string) step { return step{Call: rawcall.At(method, path)} }

// Keys that make calls. The zero value is Target.Key.
var (
	own         = rawcall.Key{}
	another     = rawcall.Another
	third       = rawcall.Third
	fourth      = who("fourth", "preview")
	fifth       = who("fifth", "preview")
	undashboard = rawcall.Undashboard
	unpaid      = rawcall.Unpaid
)

// who is a dashboard-issued key.
func who(name, plan string) rawcall.Key { return rawcall.Key{Name: name, Plan: plan, Dashboard: true} }

const (
	providerKey = rawcall.ProviderKey
	ownKey      = rawcall.OwnKey
	noAgent     = rawcall.NoAgent
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

// walk calls do with each step in order, until one fails. It walks the steps of a group
// as often as the group is repeated.
func walk(steps []step, do func(step) error) error {
	for _, st := range steps {
		if st.inner == nil {
			if err := do(st); err != nil {
				return err
			}
			continue
		}
		for range st.n {
			if err := walk(st.inner, do); err != nil {
				return err
			}
		}
	}
	return nil
}
