package agentmessagingtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// plansOf sweeps and returns the names of the plans in order.
func plansOf(t *testing.T, scenario func(*env), opts ...agentmessagingtest.Option) (names []string) {
	t.Helper()
	note := agentmessagingtest.Also("noted", func(run *agentmessagingtest.Run) error {
		names = append(names, run.Plan)
		return nil
	})
	t.Run("sweep", func(t *testing.T) { agentmessagingtest.Sweep(t, scenario, append(opts, note)...) })
	require.NotEmpty(t, names)
	return names
}

// mendedApp is an application of apps that survives.
func mendedApp(run func(*env, bool)) func(*env) { return func(e *env) { run(e, true) } }

func TestPlansHaveStableNames(t *testing.T) {
	plans := plansOf(t, mendedApp(notify))
	assert.Empty(t, plans[0], "the undisturbed run is the first")
	for _, want := range []string{
		"CreateAgent_1/bad_request/once", "CreateAgent_1/refused/call", "CreateAgent_1/limited_day/once",
		"SendMessage_1/reply_lost/once", "SendMessage_1/key_revoked/from_on", "SendMessage_1/agent_gone/from_on",
	} {
		assert.Contains(t, plans, want)
	}
	assert.NotContains(t, plans, "SendMessage_1/reply_lost/call", "a message is not retried, so that is the same run")
	assert.Len(t, slices.Compact(slices.Sorted(slices.Values(plans))), len(plans), "each once")
	assert.Equal(t, plans, plansOf(t, mendedApp(notify)))

	// Workers race, so their calls are named by what they do.
	racing := slices.Sorted(slices.Values(plansOf(t, mendedApp(workers))))
	assert.Regexp(t, `^SendMessage_[0-9a-f]{6}/unauthorized/once$`, racing[len(racing)-1])
	assert.Equal(t, racing, slices.Sorted(slices.Values(plansOf(t, mendedApp(workers)))))
}

func TestPairsFollowTheirSeed(t *testing.T) {
	pairs := func(seed uint64) []string {
		return slices.DeleteFunc(plansOf(t, mendedApp(notify), agentmessagingtest.Pairs(), agentmessagingtest.Seed(seed)),
			func(plan string) bool { return !strings.Contains(plan, "+") })
	}
	one := pairs(1)
	assert.Equal(t, one, pairs(1))
	assert.NotEqual(t, one, pairs(2))
	assert.Greater(t, len(one), 50, "of those of which both faults hit")
	assert.LessOrEqual(t, len(one), 300)
}

func TestAPointFailsByItsName(t *testing.T) {
	plans := plansOf(t, mendedApp(save))
	assert.Contains(t, plans, "save_1/fails/once")
	assert.Contains(t, plans, "save_1/fails/from_on")
}

// sweepInto sweeps and returns what is found.
func sweepInto(t *testing.T, scenario func(*env), opts ...agentmessagingtest.Option) (found []agentmessagingtest.Finding, reports []string) {
	take := func(report string, f []agentmessagingtest.Finding) {
		found, reports = append(found, f...), append(reports, report)
	}
	t.Run("sweep", func(t *testing.T) {
		agentmessagingtest.Sweep(t, scenario, append(opts, agentmessagingtest.Collect(take))...)
	})
	return found, reports
}

func TestAnOptOutIsForACheckAndItsEndpoints(t *testing.T) {
	broken := func(e *env) { notify(e, false) }
	swallowed := func(opts ...agentmessagingtest.Option) int {
		found, _ := sweepInto(t, broken, append(opts, agentmessagingtest.Without(agentmessagingtest.Truth))...)
		return len(found)
	}
	all := swallowed()
	assert.Positive(t, all)
	assert.Zero(t, swallowed(agentmessagingtest.Without(agentmessagingtest.Swallowed), agentmessagingtest.Without(agentmessagingtest.Resumes)))
	assert.Less(t, swallowed(agentmessagingtest.Without(agentmessagingtest.Swallowed, fakeserver.EndpointSendMessage)), all)
	assert.Equal(t, all, swallowed(agentmessagingtest.Without(agentmessagingtest.Swallowed, fakeserver.EndpointWarmUp)))
	assert.Less(t, swallowed(agentmessagingtest.WithoutWhere(func(f agentmessagingtest.Finding) bool {
		return strings.Contains(f.Plan, "/limited_day/")
	})), all)
}

func TestAReportShowsWhatHappenedAndHowToSeeItAgain(t *testing.T) {
	found, reports := sweepInto(t, func(e *env) { notify(e, false) })
	i := slices.IndexFunc(found, func(f agentmessagingtest.Finding) bool { return f.Plan == "SendMessage_1/reply_lost/once" })
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, fakeserver.EndpointSendMessage, found[i].Endpoint)
	report := reports[slices.IndexFunc(reports, func(r string) bool { return strings.Contains(r, "SendMessage_1 meets reply_lost") })]
	assert.Regexp(t, `(?s)^swallowed: SendMessage_1 failed \(.*\), no later call made it good, and the application told no error
.*CreateAgent_1 +agent_000001 +200
.*SendMessage_1 +agent_000001 +EOF \[reply_lost\]: agentmessaging: .*
  told: nothing
  restart, 25 h later
.*
  again: go test -run '\^TestAReportShowsWhatHappenedAndHowToSeeItAgain\$/\^sweep\$/\^SendMessage_1\$/\^reply_lost\$/\^once\$'$`, report)
	assert.NotContains(t, report, "parcel", "no text is shown")
}

func TestOwnChecksSeeTheRun(t *testing.T) {
	seen := false
	check := agentmessagingtest.Also("one agent for a customer", func(run *agentmessagingtest.Run) error {
		if run.Undisturbed == nil {
			assert.Equal(t, "SendMessage_1", run.Calls[1].Name)
			assert.Len(t, run.Restarted, 2)
			assert.Equal(t, []error{nil}, run.Reports)
			return nil
		}
		seen = seen || len(run.Fake.Agents()) == 1
		if run.Plan == "CreateAgent_1/refused/call" {
			assert.Len(t, run.Calls[0].Attempts, 3)
			return errors.New("found by a check of my own")
		}
		return nil
	})
	found, _ := sweepInto(t, mendedApp(notify), check)
	assert.True(t, seen)
	assert.Equal(t, []agentmessagingtest.Finding{{Check: "one agent for a customer", Plan: "CreateAgent_1/refused/call",
		Endpoint: fakeserver.EndpointCreateAgent, Says: "found by a check of my own"}}, found)
}

// A scenario that uses env as its *testing.T tells by its assertions.
func TestEnvIsATB(t *testing.T) {
	var cleaned []int
	found, _ := sweepInto(t, func(e *env) {
		e.Cleanup(func() { cleaned = append(cleaned, 1); assert.Error(t, e.Context().Err()) })
		e.Cleanup(func() { cleaned = append(cleaned, 2) })
		_, err := e.Client.Status(e.Context())
		require.NoError(e, err)
		e.Logger().Info("the service is there")
		assert.DirExists(t, e.TempDir())
	})
	assert.Empty(t, found)
	assert.Equal(t, []int{2, 1, 2, 1}, cleaned[:4])

	found, _ = sweepInto(t, func(e *env) {
		if _, err := e.Client.Status(e.Context()); err != nil {
			e.Logger().Warn("no status", "error", err)
		}
	})
	assert.Empty(t, found, "a warning in the log tells too")
}

func TestTheWatchdogSaysWhyAPlanStalls(t *testing.T) {
	stalls := func(scenario func(*env), opts ...agentmessagingtest.Option) string {
		found, _ := sweepInto(t, scenario, append(opts, agentmessagingtest.Watchdog(300*time.Millisecond))...)
		require.Len(t, found, 3, "then the sweep ends")
		assert.Equal(t, agentmessagingtest.Ends, found[0].Check)
		return found[0].Says
	}
	assert.Contains(t, stalls(func(e *env) {
		if _, err := e.Client.Status(e.Context()); err != nil {
			select {}
		}
	}), "select (no cases)")
	assert.Contains(t, stalls(func(e *env) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				_, err := e.Client.WarmUp(e.Context(), "")
				e.Reports(err)
			})
		}
		all.Wait()
	}, agentmessagingtest.InBubble(), agentmessagingtest.Without(agentmessagingtest.DeadKey)), "time stands still while a goroutine waits for a mutex")
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
	switch os.Getenv("SWEEP_CHILD") {
	default:
		t.Skip("is run by other tests")
	case "finds":
		agentmessagingtest.Sweep(t, func(e *env) { notify(e, false) })
	case "panics":
		agentmessagingtest.Sweep(t, func(e *env) {
			done := make(chan error)
			go func() {
				status, err := e.Client.Status(e.Context())
				_ = status.Version
				done <- err
			}()
			e.Reports(<-done)
		})
	case "fails":
		agentmessagingtest.Sweep(t, func(e *env) { e.Fatal("the shop is shut") })
	case "idle":
		agentmessagingtest.Sweep(t, func(*env) {})
	}
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
	assert.Contains(t, child(t, "panics", "^TestChild$"), `"agentmessagingtest": "Status_1/unauthorized/once"`)
}

func TestAScenarioMustWorkUndisturbed(t *testing.T) {
	assert.Contains(t, child(t, "fails", "^TestChild$"), "the undisturbed scenario failed: the shop is shut")
	assert.Contains(t, child(t, "idle", "^TestChild$"), "the scenario made no call with Env.Client")
}

// What waits a minute, or for a deadline, does so in virtual time.
func TestDisturbedRunsTakeVirtualTime(t *testing.T) {
	lasted := map[string]time.Duration{}
	plansOf(t, mendedApp(trial), agentmessagingtest.Also("time", func(run *agentmessagingtest.Run) error {
		lasted[run.Plan] = run.Lasted
		return nil
	}))
	for plan, want := range map[string][2]time.Duration{
		"SetBYOK_1/bad_request/once":    {0, time.Second},
		"SetBYOK_1/limited_minute/once": {time.Minute, 67 * time.Second},
		"SetBYOK_1/limited_day/once":    {0, time.Second}, // the client does not wait that long
		"SetBYOK_1/reply_dripping/once": {30 * time.Second, 31 * time.Second},
		"SetBYOK_1/silence/once":        {5 * time.Minute, 5*time.Minute + 2*time.Second}, // the timeout of a call
	} {
		assert.GreaterOrEqual(t, lasted[plan], want[0], plan)
		assert.Less(t, lasted[plan], want[1], plan)
	}
}

// A deadline of the application's passes in virtual time, and stays passed.
func TestDeadlinesPassInVirtualTime(t *testing.T) {
	plansOf(t, func(e *env) {
		ctx, cancel := context.WithTimeout(e.Context(), 20*time.Second)
		defer cancel()
		for range 2 {
			_, err := e.Client.Status(ctx)
			e.Reports(err)
		}
	}, agentmessagingtest.Also("deadline", func(run *agentmessagingtest.Run) error {
		if run.Plan != "Status_1/silence/once" {
			return nil
		}
		assert.Len(t, run.Fake.Calls(fakeserver.ByEndpoint(fakeserver.EndpointStatus)), 2, "those after the restart")
		for _, err := range run.Reports {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
		}
		assert.Less(t, run.Lasted, 30*time.Second)
		return nil
	}))
}

// An agent that never was cannot be gone.
func TestACallToAnUnknownAgentIsSweptToo(t *testing.T) {
	found, _ := sweepInto(t, func(e *env) {
		_, err := e.Client.GetAgent(e.Context(), "agent_of_yesterday")
		e.Reports(err)
	})
	assert.Empty(t, found)
}

// struck returns, for each plan, the calls with a fault and how many of their
// attempts had one.
func struck(t *testing.T, scenario func(*env), opts ...agentmessagingtest.Option) map[string]string {
	all := map[string]string{}
	plansOf(t, scenario, append(opts, agentmessagingtest.Also("struck", func(run *agentmessagingtest.Run) error {
		line := ""
		for _, c := range run.Calls {
			for _, a := range c.Attempts {
				if a.Fault != "" {
					line += c.Name + " "
				}
			}
		}
		all[run.Plan] = strings.TrimSpace(line)
		return nil
	}))...)
	return all
}

func TestAFaultLastsAsLongAsItsPlanSays(t *testing.T) {
	calls := 0
	faults := struck(t, func(e *env) {
		_, err := e.Client.Status(e.Context())
		e.Reports(err)
		_, err = e.Client.WarmUp(e.Context(), "")
		e.Reports(err)
		_, err = e.Client.Status(e.Context())
		e.Reports(err)
		_, err = agentOf(e)
		e.Reports(err)
		if calls++; calls <= 4 { // in the undisturbed runs only
			_, _ = e.Client.GetBYOK(e.Context())
		}
	}, agentmessagingtest.Without(agentmessagingtest.DeadKey))
	assert.Equal(t, "Status_1", faults["Status_1/bad_gateway/once"])
	assert.Equal(t, "Status_1 Status_1 Status_1", faults["Status_1/bad_gateway/call"])
	assert.Equal(t, "Status_1 Status_1 Status_1 WarmUp_1 Status_2 Status_2 Status_2 CreateAgent_1", faults["Status_1/bad_gateway/from_on"])
	assert.Equal(t, "Status_1 Status_2", faults["Status_1/not_found/from_on"])
	assert.Equal(t, "WarmUp_1", faults["WarmUp_1/bad_request/from_on"], "what is wrong with a body is about its endpoint")
	assert.NotContains(t, faults, "GetBYOK_1/bad_gateway/once", "it hit nothing")
}

// The waits of a run are the same each time, jitter included, if the seed is.
func TestTheSeedDecidesTheJitter(t *testing.T) {
	lasted := func(seed uint64) (d time.Duration) {
		now := time.Now()
		plansOf(t, func(e *env) {
			_, err := e.Client.Status(e.Context())
			e.Reports(err)
		}, agentmessagingtest.Seed(seed), agentmessagingtest.FakeOptions(fakeserver.WithClock(func() time.Time { return now })),
			agentmessagingtest.Also("time", func(run *agentmessagingtest.Run) error {
				if run.Plan == "Status_1/bad_gateway/call" {
					d = run.Lasted
				}
				return nil
			}))
		return d
	}
	one := lasted(1)
	assert.Greater(t, one, 1500*time.Millisecond)
	assert.Equal(t, one, lasted(1))
	assert.NotEqual(t, one, lasted(2))
}

// What fails undisturbed too, and is not told there, is the application's own
// affair.
func TestAFailureOfTheUndisturbedRunIsNoFinding(t *testing.T) {
	found, _ := sweepInto(t, func(e *env) {
		_, _ = e.Client.GetAgent(e.Context(), "agent_of_yesterday")
		_, err := e.Client.Status(e.Context())
		e.Reports(err)
	})
	assert.Empty(t, found)
}

// A sender that sends again what is in doubt, and says so, doubles messages with
// good reason.
func TestAnUnknownOutcomeThatWasToldForgivesADouble(t *testing.T) {
	atLeastOnce := func(tells bool) func(e *env) {
		return func(e *env) {
			done := filepath.Join(e.Dir, "done")
			if _, err := os.Stat(done); err == nil {
				return
			}
			id, err := agentOf(e)
			if err == nil {
				_, err = e.Client.SendMessage(e.Context(), id, text("Welcome"))
			}
			if err == nil {
				err = os.WriteFile(done, nil, 0o600)
			}
			if err != nil && !tells {
				err = errors.New("something went wrong")
			}
			e.Reports(err)
		}
	}
	found, _ := sweepInto(t, atLeastOnce(true))
	assert.Empty(t, found)
	found, _ = sweepInto(t, atLeastOnce(false), agentmessagingtest.Without(agentmessagingtest.LostAgent))
	require.NotEmpty(t, found)
	assert.Equal(t, agentmessagingtest.Doubled, found[len(found)-1].Check)
}
