package sweep_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

// swept is what a sweep did and found.
type swept struct {
	plans   []string // in order
	runs    map[string]*sweep.Run
	found   []sweep.Finding
	reports []string
	summary string
}

func sweeps(t *testing.T, scenario func(*env), opts ...sweep.Option) (s swept) {
	t.Helper()
	s.runs = map[string]*sweep.Run{}
	opts = append(opts, sweep.Also("noted", func(run *sweep.Run) error {
		s.plans, s.runs[run.Plan] = append(s.plans, run.Plan), run
		return nil
	}), sweep.Collect(func(report string, found []sweep.Finding) {
		if s.summary = report; found != nil {
			s.found, s.reports = append(s.found, found...), append(s.reports, report)
		}
	}))
	t.Run("sweep", func(t *testing.T) { sweep.Test(t, scenario, opts...) })
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
		return slices.DeleteFunc(sweeps(t, mended(run), sweep.Pairs(), sweep.Seed(seed)).plans,
			func(plan string) bool { return !strings.Contains(plan, "+") })
	}
	one := pairs(save, 1)
	assert.Equal(t, one, pairs(save, 1), "the same seed")
	assert.NotEqual(t, one, pairs(save, 2), "another seed")
	assert.InDelta(t, 250, len(pairs(trial, 1)), 50, "pairs of which both faults hit, of 300")
}

func TestAnOptOutIsForACheckAndItsEndpoints(t *testing.T) {
	findings := func(opts ...sweep.Option) int {
		return len(sweeps(t, broken(notify), append(opts, sweep.Without(sweep.Truth))...).found)
	}
	all := findings()
	assert.Positive(t, all, "findings of the broken application")
	assert.Zero(t, findings(sweep.Without(sweep.Swallowed), sweep.Without(sweep.Resumes)), "without both checks that find it")
	assert.Less(t, findings(sweep.Without(sweep.Swallowed, fakeserver.EndpointSendMessage)), all, "without one for its endpoint")
	assert.Equal(t, all, findings(sweep.Without(sweep.Swallowed, fakeserver.EndpointWarmUp)), "without one for another endpoint")
	assert.Less(t, findings(sweep.WithoutWhere(func(f sweep.Finding) bool {
		return strings.Contains(f.Plan, "/limited_day/")
	})), all, "without those of a fault")
}

func TestAReportShowsWhatHappenedAndHowToSeeItAgain(t *testing.T) {
	s := sweeps(t, broken(notify))
	assert.Regexp(t, `^swept 2 calls: 23 faults, \d+ runs, [\d.]+m?s, swallowed in 35 runs, truth in 20 runs$`, s.summary)
	i := slices.IndexFunc(s.found, func(f sweep.Finding) bool { return f.Plan == "SendMessage_1/reply_lost/once" })
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
	s := sweeps(t, mended(notify), sweep.Also("one agent for a customer", func(run *sweep.Run) error {
		if run.Plan == "CreateAgent_1/refused/call" {
			return errors.New("found by a check of my own")
		}
		return nil
	}))
	assert.Equal(t, []sweep.Finding{{Check: "one agent for a customer", Plan: "CreateAgent_1/refused/call",
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
	assert.Empty(t, sweeps(t, func(e *env) {
		e.Cleanup(func() { cleaned = append(cleaned, 1); assert.Error(t, e.Context().Err()) })
		e.Cleanup(func() { cleaned = append(cleaned, 2) })
		_, err := e.Client.Status(e.Context())
		require.NoError(e, err)
		e.Logger().Info("the service is there")
		assert.DirExists(t, e.TempDir())
	}).found)
	assert.Equal(t, []int{2, 1, 2, 1}, cleaned[:4], "cleanups, the last first, of each of two runs")
	assert.Empty(t, sweeps(t, func(e *env) {
		if _, err := e.Client.Status(e.Context()); err != nil {
			e.Logger().Warn("no status", "error", err)
		}
	}).found)
}

func TestAFaultLastsAsLongAsItsPlanSays(t *testing.T) {
	calls := 0
	runs := sweeps(t, func(e *env) {
		status(e)
		_, err := e.Client.WarmUp(e.Context(), "")
		e.Reports(err)
		status(e)
		_, err = agentOf(e)
		e.Reports(err)
		if calls++; calls <= 4 { // in the undisturbed runs only
			_, _ = e.Client.GetBYOK(e.Context())
		}
	}, sweep.Without(sweep.DeadKey)).runs
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
	assert.Empty(t, sweeps(t, func(e *env) {
		_, _ = e.Client.GetAgent(e.Context(), "agent_of_yesterday")
		status(e)
	}).found)
}

// A sender that sends again what is in doubt, and says so, doubles messages with
// good reason, before and after the restart.
func TestAnUnknownOutcomeThatWasToldForgivesADouble(t *testing.T) {
	assert.Empty(t, sweeps(t, func(e *env) {
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

func TestTheWatchdogSaysWhyAPlanStalls(t *testing.T) {
	alarm := make(chan time.Time)
	stalls := func(stall func(), opts ...sweep.Option) string {
		found := sweeps(t, func(e *env) {
			if _, err := e.Client.Status(e.Context()); err != nil {
				stall()
			}
		}, append(opts, sweep.Alarm(alarm))...).found
		require.Len(t, found, 3, "then the sweep ends")
		assert.Equal(t, sweep.Ends, found[0].Check, found[0].Says)
		return found[0].Says
	}
	assert.Regexp(t, `(?s)let it wait with Env.Fake.Sleep.*sweep_test.go`, stalls(func() {
		alarm <- time.Now()
		select {}
	}))

	locked := make(chan bool)
	go func() {
		for range locked {
			for stacks := ""; !strings.Contains(stacks, "sync.(*Mutex).Lock"); stacks = stacksOfAll() {
				runtime.Gosched()
			}
			alarm <- time.Now()
		}
	}()
	assert.Contains(t, stalls(func() {
		var mu sync.Mutex
		mu.Lock()
		locked <- true
		mu.Lock()
	}, sweep.InBubble()), "time stands still while a goroutine waits for a mutex")
}

func stacksOfAll() string {
	stacks := make([]byte, 1<<20)
	return string(stacks[:runtime.Stack(stacks, true)])
}

// child runs TestChild of this binary alone, as one of its scenarios.
func child(t *testing.T, scenario, run string) string {
	cmd := exec.Command(os.Args[0], "-test.run", run)
	cmd.Env = append(os.Environ(), "SWEEP_CHILD="+scenario)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	return string(out)
}

func TestChild(t *testing.T) {
	scenario, found := map[string]func(*env){
		"finds": broken(notify),
		"fails": func(e *env) { e.Fatal("the shop is shut") },
		"idle":  func(*env) {},
		"panics": func(e *env) {
			done := make(chan error)
			go func() {
				status, err := e.Client.Status(e.Context())
				_ = status.Version
				done <- err
			}()
			e.Reports(<-done)
		},
	}[os.Getenv("SWEEP_CHILD")]
	if !found {
		t.Skip("is run by other tests")
	}
	sweep.Test(t, scenario)
}

func TestAFailingPlanIsRepeatedByItsCommand(t *testing.T) {
	out := child(t, "finds", "^TestChild$")
	again := regexp.MustCompile(`again: go test -run '(.*SendMessage_1.*)'`).FindStringSubmatch(out)
	require.Len(t, again, 2, "%s", out)
	one := child(t, "finds", again[1])
	assert.Equal(t, 1, strings.Count(one, "again: "), "%s", one)
	assert.Contains(t, one, again[1])
}

func TestAPanicInAGoroutineNamesThePlan(t *testing.T) {
	if strings.HasPrefix(runtime.Version(), "go1.25") {
		t.Skip("the traces of Go 1.25 show no labels")
	}
	assert.Contains(t, child(t, "panics", "^TestChild$"), `"sweep": "Status_1/unauthorized/once"`)
}

func TestAScenarioMustWorkUndisturbed(t *testing.T) {
	assert.Contains(t, child(t, "fails", "^TestChild$"), "the undisturbed scenario failed: the shop is shut")
	assert.Contains(t, child(t, "idle", "^TestChild$"), "the scenario made no call with Env.Client")
}

// What waits a minute, or for a deadline, does so in virtual time.
func TestDisturbedRunsTakeVirtualTime(t *testing.T) {
	runs := sweeps(t, mended(trial)).runs
	for plan, want := range map[string][2]time.Duration{
		"SetBYOK_1/bad_request/once":    {0, time.Second},
		"SetBYOK_1/limited_minute/once": {time.Minute, 67 * time.Second},
		"SetBYOK_1/limited_day/once":    {0, time.Second}, // the client does not wait that long
		"SetBYOK_1/reply_dripping/once": {30 * time.Second, 31 * time.Second},
		"SetBYOK_1/silence/once":        {5 * time.Minute, 5*time.Minute + 2*time.Second}, // the timeout of a call
	} {
		assert.GreaterOrEqual(t, runs[plan].Lasted, want[0], plan)
		assert.Less(t, runs[plan].Lasted, want[1], plan)
	}
}

// A deadline of the application's passes in virtual time, and stays passed.
func TestDeadlinesPassInVirtualTime(t *testing.T) {
	run := sweeps(t, func(e *env) {
		ctx, cancel := context.WithTimeout(e.Context(), 20*time.Second)
		defer cancel()
		for range 2 {
			_, err := e.Client.Status(ctx)
			e.Reports(err)
		}
	}).runs["Status_1/silence/once"]
	assert.Len(t, run.Fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointStatus)), 2, "those after the restart")
	for _, err := range run.Reports {
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
	assert.Less(t, run.Lasted, 30*time.Second, "by the fake's clock")
}

// The waits of a run are the same each time, jitter included, if the seed is.
func TestTheSeedDecidesTheJitter(t *testing.T) {
	now := time.Now()
	lasted := func(seed uint64) time.Duration {
		clock := sweep.FakeOptions(fakeserver.WithClock(func() time.Time { return now }))
		return sweeps(t, status, sweep.Seed(seed), clock).runs["Status_1/bad_gateway/call"].Lasted
	}
	one := lasted(1)
	assert.Greater(t, one, 1500*time.Millisecond, "both waits")
	assert.Equal(t, one, lasted(1), "the same seed")
	assert.NotEqual(t, one, lasted(2), "another seed")
}
