package agentmessagingtest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestTheWatchdogSaysWhyAPlanStalls(t *testing.T) {
	alarm := make(chan time.Time)
	stalls := func(stall func(), opts ...agentmessagingtest.Option) string {
		found := sweep(t, func(e *env) {
			if _, err := e.Client.Status(e.Context()); err != nil {
				stall()
			}
		}, append(opts, agentmessagingtest.Alarm(alarm))...).found
		require.Len(t, found, 3, "then the sweep ends")
		assert.Equal(t, agentmessagingtest.Ends, found[0].Check, found[0].Says)
		return found[0].Says
	}
	assert.Regexp(t, `(?s)let it wait with Env.Fake.Sleep.*runs_test.go`, stalls(func() {
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
	}, agentmessagingtest.InBubble()), "time stands still while a goroutine waits for a mutex")
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
	agentmessagingtest.Sweep(t, scenario)
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
	runs := sweep(t, mended(trial)).runs
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
	run := sweep(t, func(e *env) {
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
		clock := agentmessagingtest.FakeOptions(fakeserver.WithClock(func() time.Time { return now }))
		return sweep(t, status, agentmessagingtest.Seed(seed), clock).runs["Status_1/bad_gateway/call"].Lasted
	}
	one := lasted(1)
	assert.Greater(t, one, 1500*time.Millisecond, "both waits")
	assert.Equal(t, one, lasted(1), "the same seed")
	assert.NotEqual(t, one, lasted(2), "another seed")
}
