package contract

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// session is one case under way: it takes the case's steps, and fails the test
// in which it runs.
type session struct {
	testing.TB
	caller
	target  Target
	running testCase
	broken  []string       // the limits that do not hold
	agent   string         // what {agent_id} in a path stands for
	keys    map[who]string // in use, which no answer may show
	earlier []answer       // so far, without those of steps that make many calls
}

func newSession(tb testing.TB, target Target, c testCase, shared *shared) *session {
	return &session{
		TB: tb, caller: newCaller(target), target: target, running: c, broken: shared.broken,
		keys: map[who]string{{}: target.Key},
	}
}

// failf ends the case: the rule first, then what was found.
func (s *session) failf(format string, args ...any) {
	s.Helper()
	s.Fatalf("%s\n%s", s.running, fmt.Sprintf(format, args...))
}

// skipIfBroken skips the case where a limit does not hold that it may build
// on: the failure of that limit's own case says more.
func (s *session) skipIfBroken() {
	if len(s.broken) > 0 && !s.running.base {
		s.Skip("it may build on a rule that is broken: " + strings.Join(s.broken, ", "))
	}
}

// take takes one step. Of many calls it looks at the status only: a daily
// limit takes thousands.
func (s *session) take(st step) {
	s.Helper()
	if st.arrange != nil {
		st.arrange(s)
		return
	}
	c := s.callerOf(st)
	if st.n == 1 {
		s.look(st, s.send(c, st.e))
		return
	}
	for i := range st.n {
		if a := s.send(c, st.e); !slices.Contains(st.statuses, a.status) {
			s.skipIfBroken()
			s.failf("call %d of %d: want status %s\n%s", i+1, st.n, either(st.statuses), a)
		}
	}
}

// look holds the answer to the step.
func (s *session) look(st step, a answer) {
	s.Helper()
	a.is(st.statuses)
	for _, check := range st.checks {
		problem := check(a)
		a.want(problem == "", "%s", problem)
	}
	s.earlier = append(s.earlier, a)
}

// callerOf is the caller of a step: its key, address and header.
func (s *session) callerOf(st step) caller {
	c := s.caller
	c.key = s.keyOf(st.by)
	switch {
	case st.ip != "":
		c.client = withoutRedirects(s.target.ClientFrom(st.ip))
	case s.running.Spends.Requests >= 1000 && s.target.BulkClient != nil:
		c.client = withoutRedirects(s.target.BulkClient)
	}
	if st.name != "" {
		c = c.with(st.name, st.value(c.key))
	}
	return c
}

// keyOf is the key, issued where it has not called before.
func (s *session) keyOf(by who) string {
	if s.keys[by] == "" {
		s.keys[by] = s.target.Abilities.IssueKeyOn(by.plan, by.dashboard)
	}
	return s.keys[by]
}

// send makes one call. {agent_id} in its path stands for the agent that was
// created last, or for one that does not exist.
func (s *session) send(c caller, e endpoint) answer {
	s.Helper()
	x, err := c.send(s.Context(), e.of(cmp.Or(s.agent, noAgent)))
	if err != nil {
		s.failf("%s %s: %s", e.method, e.path, clip(err.Error()))
	}
	a := answer{exchange: x, s: s}
	if x.status == http.StatusOK && e.name == createAgent.name {
		s.agent, _ = a.at("agent_id").(string)
	}
	return a
}

// pass lets d pass: by the target's clock, or by sleeping.
func (target Target) pass(d time.Duration) {
	if target.Abilities != nil && !target.Bubble {
		target.Abilities.Advance(d)
		return
	}
	time.Sleep(d)
}

// shared is what the cases on one target share.
type shared struct {
	tried  bool
	agent  string   // the agent of needAgent
	broken []string // the bases that failed
}

// agentOf is the agent of needAgent, made at the first call. It is not made
// again when that failed: each try would cost a creation.
func (all *shared) agentOf(s *session) string {
	s.Helper()
	if !all.tried {
		all.tried = true
		s.take(createAgent.is(200))
		all.agent = s.agent
	}
	if all.agent == "" {
		s.failf("an earlier case could not create the agent that the cases share")
	}
	return all.agent
}
