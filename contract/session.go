package contract

import (
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
	player
	running testCase
	broken  []string // the limits that do not hold
	earlier []answer // so far, without those of steps that make many calls
}

func newSession(tb testing.TB, target Target, c testCase, shared *shared) *session {
	return &session{TB: tb, player: newPlayer(target), running: c, broken: shared.broken}
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
		st.arrange(&s.player)
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

// wait lets the step's time pass. What the last answer told may have a tenth in
// reserve.
func (s *session) wait(st step) {
	s.Helper()
	wait := st.wait
	if st.untilOpen {
		last := s.earlier[len(s.earlier)-1]
		wait, _ = last.retryAfter()
		s.look(last, unless(wait <= st.wait+st.wait/10, "it would have to wait for more than %v", st.wait))
	}
	switch abilities := s.target.Abilities; {
	case wait == 0:
	case abilities != nil && !s.target.Bubble:
		abilities.Advance(wait)
	default:
		time.Sleep(wait)
	}
}

// call makes the i-th call of a step, and ends the case if its status is wrong.
func (s *session) call(st step, i int) answer {
	s.Helper()
	x, err := s.play(s.Context(), st)
	if err != nil {
		s.failf("%s %s: %s", st.e.method, st.e.path, clip(err.Error()))
	}
	a := answer{exchange: x, s: s}
	if slices.Contains(st.statuses, a.status) {
		return a
	}
	if a.status == http.StatusTooManyRequests || slices.Contains(st.statuses, http.StatusTooManyRequests) {
		s.skipIfBroken()
	}
	statuses := strings.ReplaceAll(strings.Trim(fmt.Sprint(st.statuses), "[]"), " ", " or ")
	s.look(a, fmt.Sprintf("want status %s (call %d of %d)", statuses, i+1, st.n))
	return a
}

// look ends the case, with the answer, where there is a problem with it.
func (s *session) look(a answer, problem string) {
	s.Helper()
	if problem != "" {
		s.failf("%s\n%s", problem, a)
	}
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
		all.agent = s.last
	}
	if all.agent == "" {
		s.failf("an earlier case could not create the agent that the cases share")
	}
	return all.agent
}
