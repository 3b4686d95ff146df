package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// session is one case under way: it calls the target, keeps what was spent
// and fails the test in which it runs.
type session struct {
	testing.TB
	caller
	target Target
	of     testCase
	ledger *ledger // shared by the sessions that as, from and with make
	broken []string
}

// ledger keeps what a case has done so far.
type ledger struct {
	agent  string // the agent of needAgent
	spent  Spend
	keys   []string        // service keys in use, which no answer may show
	traces map[string]bool // the trace_id of each answer
}

func newSession(tb testing.TB, target Target, of testCase, shared *shared) *session {
	return &session{
		TB: tb, caller: newCaller(target), target: target, of: of, broken: shared.broken,
		ledger: &ledger{keys: []string{target.Key}, traces: map[string]bool{}},
	}
}

// failf ends the case: the rule first, then what was found.
func (s *session) failf(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\n%s", s.of, fmt.Sprintf(format, args...))
}

// want fails the case unless ok.
func (s *session) want(ok bool, format string, args ...any) {
	s.Helper()
	if !ok {
		s.failf(format, args...)
	}
}

// skipIfBroken skips the case where a limit does not hold that it may build
// on: the failure of that limit's own case says more.
func (s *session) skipIfBroken() {
	if len(s.broken) > 0 && !s.of.base {
		s.Skip("it may build on a rule that is broken: " + strings.Join(s.broken, ", "))
	}
}

// as is the session with another key.
func (s session) as(key string) *session {
	s.key = key
	return &s
}

// issue makes a key on the plan and is the session with it.
func (s *session) issue(plan string, dashboard bool) *session {
	key := s.target.Abilities.IssueKeyOn(plan, dashboard)
	s.ledger.keys = append(s.ledger.keys, key)
	return s.as(key)
}

// from is the session from another address.
func (s session) from(ip string) *session {
	s.client = withoutRedirects(s.target.ClientFrom(ip))
	return &s
}

// bulk is the session for thousands of calls.
func (s session) bulk() *session {
	if s.target.BulkClient != nil {
		s.client = withoutRedirects(s.target.BulkClient)
	}
	return &s
}

// with is the session with a header set; value "" leaves the header out.
func (s session) with(name, value string) *session {
	s.caller = s.caller.with(name, value)
	return &s
}

// wait lets d pass for the target. A Retry-After may have a reserve of a tenth.
func (s *session) wait(d time.Duration) {
	s.Helper()
	s.ledger.spent.Wait += d
	most := s.of.Spends.Wait + s.of.Spends.Wait/10
	s.want(s.ledger.spent.Wait <= most, "it would have to wait for more than %v", most)
	s.target.pass(d)
}

// pass lets d pass: by the target's clock, or by sleeping.
func (target Target) pass(d time.Duration) {
	if target.Abilities != nil && !target.Bubble {
		target.Abilities.Advance(d)
		return
	}
	time.Sleep(d)
}

// call sends one request. {agent_id} in its path becomes the agent of needAgent,
// or one that does not exist.
func (s *session) call(e endpoint, body string) answer {
	s.Helper()
	if e.ofAgent() {
		e = e.of(s.agentOrNobody())
	}
	s.want(s.ledger.spent.Requests < s.of.Spends.Requests, "it would have to send more than %d requests", s.of.Spends.Requests)
	x, err := s.send(s.Context(), e, body)
	s.want(err == nil, "%s %s: %v", e.method, e.path, err)
	s.ledger.spent = s.ledger.spent.plus(cost(e, body, x.status))
	return answer{exchange: x, s: s}
}

func (s *session) agentOrNobody() string {
	if s.ledger.agent == "" {
		return "agent-of-nobody"
	}
	return s.ledger.agent
}

// repeat makes n calls that must all be answered with status. It looks at no
// more than the status: a daily limit takes thousands of calls.
func (s *session) repeat(n int, e endpoint, body string, status int) {
	s.Helper()
	for i := range n {
		if a := s.call(e, body); a.status != status {
			s.skipIfBroken()
			s.failf("call %d of %d: want status %d\n%s", i+1, n, status, a)
		}
	}
}

// newAgent creates an agent with an empty body.
func (s *session) newAgent() string {
	s.Helper()
	return s.call(createAgent, `{}`).is(200).text("agent_id")
}

// clear clears the stored provider key. Where none is stored the interface
// allows 404 too: 4.5 lists it.
func (s *session) clear() {
	s.Helper()
	a := s.call(clearBYOK, "")
	a.want(slices.Contains([]int{200, 404}, a.status), "want status 200, or 404 where nothing is stored")
	a.is(a.status)
}

// shared is what the cases on one target share.
type shared struct {
	tried  bool
	agent  string   // the agent of needAgent
	broken []string // the bases that failed
}

// add keeps that a base failed.
func (a *shared) add(base testCase, failed bool) {
	if failed {
		a.broken = append(a.broken, base.ID)
	}
}

// agentOf is the agent of needAgent, made at the first call. It is not made
// again when that failed: each try would cost a creation.
func (a *shared) agentOf(s *session) string {
	s.Helper()
	if !a.tried {
		a.tried = true
		maker := *s
		maker.ledger = &ledger{keys: s.ledger.keys, traces: map[string]bool{}}
		maker.of = testCase{ID: s.of.ID, Rule: s.of.Rule, Spends: Spend{Requests: 1, Creations: 1}}
		a.agent = maker.newAgent()
	}
	s.want(a.agent != "", "an earlier case could not create the agent that the cases share")
	return a.agent
}
