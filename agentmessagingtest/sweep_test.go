package agentmessagingtest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// swept is what a sweep did and found.
type swept struct {
	plans   []string // in order
	runs    map[string]*agentmessagingtest.Run
	found   []agentmessagingtest.Finding
	reports []string
	summary string
}

func sweep(t *testing.T, scenario func(*env), opts ...agentmessagingtest.Option) (s swept) {
	t.Helper()
	s.runs = map[string]*agentmessagingtest.Run{}
	opts = append(opts, agentmessagingtest.Also("noted", func(run *agentmessagingtest.Run) error {
		s.plans, s.runs[run.Plan] = append(s.plans, run.Plan), run
		return nil
	}), agentmessagingtest.Collect(func(report string, found []agentmessagingtest.Finding) {
		if s.summary = report; found != nil {
			s.found, s.reports = append(s.found, found...), append(s.reports, report)
		}
	}))
	t.Run("sweep", func(t *testing.T) { agentmessagingtest.Sweep(t, scenario, opts...) })
	return s
}

// mended is an application of apps that survives.
func mended(run app) func(*env) { return func(e *env) { e.Reports(run(e, true)) } }

// broken is its twin.
func broken(run app) func(*env) { return func(e *env) { e.Reports(run(e, false)) } }

// status asks for the status and reports what comes of it.
func status(e *env) {
	_, err := e.Client.Status(e.Context())
	e.Reports(err)
}

func TestPairsFollowTheirSeed(t *testing.T) {
	pairs := func(run app, seed uint64) []string {
		return slices.DeleteFunc(sweep(t, mended(run), agentmessagingtest.Pairs(), agentmessagingtest.Seed(seed)).plans,
			func(plan string) bool { return !strings.Contains(plan, "+") })
	}
	one := pairs(save, 1)
	assert.Equal(t, one, pairs(save, 1), "the same seed")
	assert.NotEqual(t, one, pairs(save, 2), "another seed")
	assert.InDelta(t, 250, len(pairs(trial, 1)), 50, "pairs of which both faults hit, of 300")
}

func TestAnOptOutIsForACheckAndItsEndpoints(t *testing.T) {
	findings := func(opts ...agentmessagingtest.Option) int {
		return len(sweep(t, broken(notify), append(opts, agentmessagingtest.Without(agentmessagingtest.Truth))...).found)
	}
	all := findings()
	assert.Positive(t, all, "findings of the broken application")
	assert.Zero(t, findings(agentmessagingtest.Without(agentmessagingtest.Swallowed), agentmessagingtest.Without(agentmessagingtest.Resumes)), "without both checks that find it")
	assert.Less(t, findings(agentmessagingtest.Without(agentmessagingtest.Swallowed, fakeserver.EndpointSendMessage)), all, "without one for its endpoint")
	assert.Equal(t, all, findings(agentmessagingtest.Without(agentmessagingtest.Swallowed, fakeserver.EndpointWarmUp)), "without one for another endpoint")
	assert.Less(t, findings(agentmessagingtest.WithoutWhere(func(f agentmessagingtest.Finding) bool {
		return strings.Contains(f.Plan, "/limited_day/")
	})), all, "without those of a fault")
}

func TestAReportShowsWhatHappenedAndHowToSeeItAgain(t *testing.T) {
	s := sweep(t, broken(notify))
	assert.Regexp(t, `^swept 2 calls: 23 faults, \d+ runs, [\d.]+m?s, swallowed in 35 runs, truth in 20 runs$`, s.summary)
	i := slices.IndexFunc(s.found, func(f agentmessagingtest.Finding) bool { return f.Plan == "SendMessage_1/reply_lost/once" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, fakeserver.EndpointSendMessage, s.found[i].Endpoint)
	report := s.reports[slices.IndexFunc(s.reports, func(r string) bool { return strings.Contains(r, "SendMessage_1 meets reply_lost") })]
	assert.Regexp(t, `(?s)^swallowed: SendMessage_1 failed \(.*\), no later call made it good, and the application told no error
.*CreateAgent_1 +agent_000001 +200
.*SendMessage_1 +agent_000001 +EOF \[reply_lost\]: agentmessaging: .*
  told: nothing
  restart, 25 h later
.*
  again: go test -run '\^TestAReportShowsWhatHappenedAndHowToSeeItAgain\$/\^sweep\$/\^SendMessage_1\$/\^reply_lost\$/\^once\$'$`, report)
	assert.NotContains(t, report, "parcel", "no text is shown")
	assert.NotContains(t, s.plans, "SendMessage_1/reply_lost/call", "a message is not retried, so that is the same run")
}

func TestOwnChecksSeeTheRun(t *testing.T) {
	s := sweep(t, mended(notify), agentmessagingtest.Also("one agent for a customer", func(run *agentmessagingtest.Run) error {
		if run.Plan == "CreateAgent_1/refused/call" {
			return errors.New("found by a check of my own")
		}
		return nil
	}))
	assert.Equal(t, []agentmessagingtest.Finding{{Check: "one agent for a customer", Plan: "CreateAgent_1/refused/call",
		Endpoint: fakeserver.EndpointCreateAgent, Says: "found by a check of my own"}}, s.found)
	undisturbed := s.runs[""]
	assert.Nil(t, undisturbed.Undisturbed, "the undisturbed run of the undisturbed run")
	assert.Equal(t, "SendMessage_1", undisturbed.Calls[1].Name)
	assert.Len(t, undisturbed.Restarted, 2, "calls after the restart")
	assert.Equal(t, []error{nil}, undisturbed.Reports, "undisturbed")
	assert.Len(t, undisturbed.Fake.Agents(), 1, "undisturbed")
	refused := s.runs["CreateAgent_1/refused/call"]
	assert.Equal(t, undisturbed, refused.Undisturbed)
	assert.Len(t, refused.Calls[0].Attempts, 3, "where connections are refused")
	assert.Contains(t, refused.Told, "agentmessaging: POST /v1/agents: ")
}

// A scenario that uses env as its *testing.T tells by its assertions, and a
// warning in the log tells too.
func TestEnvIsATB(t *testing.T) {
	var cleaned []int
	assert.Empty(t, sweep(t, func(e *env) {
		e.Cleanup(func() { cleaned = append(cleaned, 1); assert.Error(t, e.Context().Err()) })
		e.Cleanup(func() { cleaned = append(cleaned, 2) })
		_, err := e.Client.Status(e.Context())
		require.NoError(e, err)
		e.Logger().Info("the service is there")
		assert.DirExists(t, e.TempDir())
	}).found)
	assert.Equal(t, []int{2, 1, 2, 1}, cleaned[:4], "cleanups, the last first, of each of two runs")
	assert.Empty(t, sweep(t, func(e *env) {
		if _, err := e.Client.Status(e.Context()); err != nil {
			e.Logger().Warn("no status", "error", err)
		}
	}).found)
}

func TestAFaultLastsAsLongAsItsPlanSays(t *testing.T) {
	calls := 0
	runs := sweep(t, func(e *env) {
		status(e)
		_, err := e.Client.WarmUp(e.Context(), "")
		e.Reports(err)
		status(e)
		_, err = agentOf(e)
		e.Reports(err)
		if calls++; calls <= 4 { // in the undisturbed runs only
			_, _ = e.Client.GetBYOK(e.Context())
		}
	}, agentmessagingtest.Without(agentmessagingtest.DeadKey)).runs
	for plan, struck := range map[string]string{
		"Status_1/bad_gateway/once":    "Status_1",
		"Status_1/bad_gateway/call":    "Status_1 Status_1 Status_1",
		"Status_1/bad_gateway/from_on": "Status_1 Status_1 Status_1 WarmUp_1 Status_2 Status_2 Status_2 CreateAgent_1",
		"Status_1/not_found/from_on":   "Status_1 Status_2",
		"WarmUp_1/bad_request/from_on": "WarmUp_1", // what is wrong with a body is about its endpoint
	} {
		var attempts []string
		for _, c := range runs[plan].Calls {
			for _, a := range c.Attempts {
				if a.Fault != "" {
					attempts = append(attempts, c.Name)
				}
			}
		}
		assert.Equal(t, struck, strings.Join(attempts, " "), plan)
	}
	assert.NotContains(t, runs, "GetBYOK_1/bad_gateway/once", "it hit nothing")
}

// What fails undisturbed too, and is not told there, is the application's own
// affair; and an agent that never was cannot be gone.
func TestAFailureOfTheUndisturbedRunIsNoFinding(t *testing.T) {
	assert.Empty(t, sweep(t, func(e *env) {
		_, _ = e.Client.GetAgent(e.Context(), "agent_of_yesterday")
		status(e)
	}).found)
}

// A sender that sends again what is in doubt, and says so, doubles messages with
// good reason, before and after the restart.
func TestAnUnknownOutcomeThatWasToldForgivesADouble(t *testing.T) {
	assert.Empty(t, sweep(t, func(e *env) {
		id, err := agentOf(e)
		for tries := 0; err == nil && tries < 3; tries++ {
			_, sent := e.Client.SendMessage(e.Context(), id, text("Welcome"))
			if e.Reports(sent); sent == nil {
				return
			}
		}
		e.Reports(err)
	}).found)
}
