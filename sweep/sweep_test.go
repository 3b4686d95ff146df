package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
	"github.com/agent-messaging-service/agentmessaging-go/sweep/internal/disk"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	if _, err := os.Stat("/dev/shm"); err == nil { // thousands of small files are faster in memory
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
	os.Exit(m.Run())
}

// swept has the runs and the findings of a sweep.
type swept struct {
	plans   []string // in order
	runs    map[string]*sweep.Run
	found   []sweep.Finding
	reports []string
	summary string
}

// run sweeps, and returns the findings in place of failing the test.
func run(t *testing.T, scenario func(*sweep.Env), opts ...sweep.Option) *swept {
	s := &swept{runs: map[string]*sweep.Run{}}
	sweep.Test(t, scenario, append(opts, sweep.Collect(func(report string, found []sweep.Finding) {
		if s.summary = report; found != nil {
			s.found, s.reports = append(s.found, found...), append(s.reports, report)
		}
	}), sweep.WithCheck("noted", func(run *sweep.Run) error {
		s.plans, s.runs[run.Plan] = append(s.plans, run.Plan), run
		return nil
	}))...)
	return s
}

// checks returns the checks that found something, in three forms: alone, with the run, and with
// the sentence.
func (s *swept) checks() (found []string) {
	for _, f := range s.found {
		found = append(found, string(f.Check), string(f.Check)+" "+f.Plan, string(f.Check)+" "+f.Says)
	}
	return found
}

// status asks for the status and reports the error.
func status(e *sweep.Env) {
	_, err := e.Client.Status(e.Context())
	e.Reports(err)
}

// once limits each call to one attempt, for tests that are not about retries.
var once = sweep.ClientOptions(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))

// quick are the options for the applications. Parallel tests append to it. Its capacity is its
// length, so each append makes a copy.
var quick = []sweep.Option{sweep.InBubble(), once, sweep.Faults("bad_request", "payment_required", "reply_lost", "dies")}

// alive is quick without deaths, which take most of the time.
var alive = []sweep.Option{sweep.InBubble(), once, sweep.Faults("bad_request", "payment_required", "reply_lost")}

// reporting returns a scenario that reports what the application returns.
func reporting(run app) func(*sweep.Env) { return func(e *sweep.Env) { e.Reports(run(e)) } }

// Each bug of apps is found by the checks that its row names, and an application without a
// bug has no finding.
func TestFindsBugsWithoutFalseAlarms(t *testing.T) {
	for _, app := range apps {
		t.Run(app.name, func(t *testing.T) {
			t.Parallel()
			opts := alive // enough for most bugs; an application without a bug has to survive deaths too
			if app.find == nil || strings.Contains(strings.Join(app.find, ""), "dies") {
				opts = quick
			}
			s := run(t, reporting(app.run), opts...)
			assert.Subset(t, s.checks(), app.find)
			if slices.Contains(s.checks(), "panics") {
				assert.Len(t, s.found, len(app.find), "a panic is a report, and nothing that is right panics")
			}
			for _, report := range s.reports {
				assert.Less(t, strings.Count(report, "\n"), 100, "lines of a report")
				assert.NotContains(t, report, "sk-today", "a report shows no key")
			}
			assert.Equal(t, app.find == nil, s.found == nil, s.reports)
		})
	}
}

// Nine times the requests of the baseline are allowed, and one more is not. Requests that are
// refused with 429 do not count.
func TestQuota(t *testing.T) {
	t.Parallel()
	for most, tooMany := range map[int]bool{9: false, 10: true} {
		found := fmt.Sprint(run(t, reporting(tries(most)), alive...).found)
		assert.Equal(t, tooMany, strings.Contains(found, fmt.Sprintf("the scenario made %d requests; the baseline makes 1", most)), found)
	}
	assert.Empty(t, run(t, reporting(tries(2)), sweep.Faults("limited_minute")).found)
}

// Two sweeps of an application whose calls race try the same faults at the same calls, and have
// the same findings. A call keeps its name in all runs, even after its agent is gone.
func TestTwoSweepsFindTheSame(t *testing.T) {
	t.Parallel()
	var tried [2][]string
	for i := range tried {
		s := run(t, reporting(broadcast(i)), sweep.InBubble(), once, sweep.Faults("refused", "agent_gone"))
		assert.NotContains(t, s.summary, "hit nothing", "sweep %d", i+1)
		assert.Contains(t, strings.Join(s.reports, ""), " 404", "sweep %d", i+1)
		tried[i] = append(s.plans, s.checks()...)
		names := []string{s.runs[""].Calls[0].Name, s.runs[""].Calls[1].Name}
		for _, r := range s.runs {
			for _, c := range slices.Concat(r.Calls, r.Restarted) {
				assert.Contains(t, names, c.Name)
				assert.NotErrorIs(t, c.Err, agentmessaging.ErrOutcomeUnknown, "no dial sends anything")
			}
		}
	}
	assert.Equal(t, tried[0], tried[1], "in the same order")
	five := func(e *sweep.Env) { fanOut(e, "Red", "Green", "Blue", "White", "Black") }
	assert.Empty(t, run(t, five, sweep.Faults("limited_minute", "payment_required")).found, "the order does not matter where calls race, and each goroutine may send with a dead key")
}

// A report says where the process died and what the restart did, and shows no text of a
// message.
func TestReportOfADeath(t *testing.T) {
	t.Parallel()
	again := reporting(after(tell("mine"), tell("mine")))
	s := run(t, again, quick...)
	require.Len(t, s.reports, 1, "one cause, one report")
	assert.Contains(t, s.reports[0], "doubled: the process died after SendMessage_1 had arrived; the restart did it again: "+
		"the message of SendMessage_1 is there 2 times in the end (without faults at most 1), and no report says that it was in doubt\n")
	assert.Regexp(t, `^swept 1 call: \d+ faults, \d\d deaths that leave \d+ states, [1-9]\d+ executions, [\d.]+m?s$`, s.summary)
	assert.NotContains(t, s.reports[0], "open", "no text is shown")
	assert.Empty(t, run(t, again, append(quick, sweep.Without(sweep.Doubled))...).found, "a duplicate is not missing")
	says := reporting(after(tell("mine"), func(e *sweep.Env) error { e.Told("it may arrive twice"); return tell("mine")(e) }))
	assert.NotContains(t, run(t, says, quick...).checks(), "doubled SendMessage_1/dies_arrived", "the doubt is reported")
}

// A process can die at an Env.Point, also at one that the service calls, and while it writes.
func TestDeathsAtPointsAndInFiles(t *testing.T) {
	t.Parallel()
	const tempName = "two1215581851" // as os.CreateTemp names it; the plans name it two*
	s := run(t, func(e *sweep.Env) {
		file := func(name string) string { return filepath.Join(e.Dir, name) }
		e.Reports(errors.Join(put(e, "one", mine(e)), e.Point("middle"), os.WriteFile(file(tempName), []byte("5678"), 0o600)))
		status(e)
		e.Fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			return fakeserver.Reply{Text: fmt.Sprint(e.Point("early"), put(e, "seen", "yes"), e.Point("reply"))}
		})
		e.Reports(errors.Join(send(e, mine(e), "Hello"), remove(e, "one"), remove(e, tempName), os.WriteFile(file("lock"), []byte("mine"), 0o600), remove(e, "lock")))
	}, quick...)
	assert.NotContains(t, s.summary, "nothing is kept", "deaths leave files")
	assert.Contains(t, s.summary, "some torn files were not tried", "nobody knows what was in the lock")
	want := []string{"middle_1/dies", "reply_1/dies", "middle_1/fails/once", "Status_1/dies_before", "middle_1/dies,restart.Status_1/refused/call"}
	if runtime.GOOS == "linux" {
		want = append(want, "start/dies_one_was_not_yet_in_place", "middle_1/dies_two*_was_cut_in_half", "middle_1/dies_two*_was_empty")
		assert.Empty(t, s.runs["middle_1/dies_two*_was_empty"].Calls, "the call comes after the write")
	}
	assert.Subset(t, s.plans, want)
	assert.NotContains(t, s.plans, "start/dies_one_was_cut_in_half", "it is moved into place")
	assert.NotContains(t, s.plans, "early_1/dies", "it leaves the same as SendMessage_1/dies_before")
}

// A process that dies in the middle of a write can leave the states of the second column.
// Restore writes an image back unchanged.
func TestTornStates(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says in which order files change")
	}
	watch := disk.NewWatch()
	defer watch.Close()
	for name, tt := range map[string]struct {
		write func(t *testing.T, file, other string)
		want  []string
	}{
		"a file that is appended to": {func(t *testing.T, _, other string) { write(t, other, "onethree") }, []string{"old was cut in half: ,oneth"}},
		"a file that is moved into place": {func(t *testing.T, file, other string) {
			write(t, file, "ab")
			require.NoError(t, os.Rename(file, other))
		}, []string{"new was missing: ,one", "new was empty: ,one", "new was cut in half: a,one", "old was not yet in place: ab,one"}},
		"two files in their order": {func(t *testing.T, file, other string) {
			write(t, other, "xy")
			write(t, file, "ab")
		}, []string{"old was empty: ,", "old was cut in half: ,x", "new was missing: ,xy", "new was empty: ,xy", "new was cut in half: a,xy"}},
		"a folder that is moved in, and written into later": {func(t *testing.T, file, _ string) {
			require.NoError(t, os.Rename(t.TempDir(), file))
			watch.Update(nil, false)
			write(t, filepath.Join(file, "inside"), "ab")
		}, nil},
		"a file that a database writes into": {func(t *testing.T, _, other string) {
			opened, err := os.OpenFile(other, os.O_RDWR, 0)
			_, read := opened.Read(make([]byte, 1))
			_, wrote := opened.WriteAt([]byte("oxyz"), 0)
			require.NoError(t, errors.Join(err, read, wrote, opened.Close()))
		}, []string{"old was half overwritten: ,oxe"}},
		"a file that is cut off": {func(t *testing.T, _, other string) { require.NoError(t, os.Truncate(other, 2)) }, []string{"old was empty: ,", "old was cut in half: ,o"}},
		"a removal":              {func(t *testing.T, _, other string) { require.NoError(t, os.Remove(other)) }, []string{"old was not yet removed: ,one"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, other := filepath.Join(dir, "new"), filepath.Join(dir, "old")
			write(t, other, "one")
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o750))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "b", "file"), []byte("x"), 0o640))
			require.NoError(t, os.Symlink(file, filepath.Join(dir, "link")))
			before := disk.ReadImage(dir)
			watch.Start(dir)
			tt.write(t, file, other)
			after, states := watch.Update(before, true)
			assert.Equal(t, disk.ReadImage(dir), after)
			unread, _ := watch.Update(nil, true)
			assert.Empty(t, unread, "nothing has changed since")
			var got []string
			for _, s := range states {
				got = append(got, fmt.Sprintf("%s: %s,%s", s.Description, s.Image["new"].Content, s.Image["old"].Content))
			}
			assert.Equal(t, tt.want, got)
			into := t.TempDir()
			require.NoError(t, after.Restore(into))
			assert.Equal(t, after, disk.ReadImage(into))
			target, err := os.Readlink(filepath.Join(into, "link"))
			assert.Equal(t, []any{filepath.Join(into, "new"), nil}, []any{target, err})
		})
	}
}

func write(t *testing.T, file, content string) {
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

// Without drops the findings of its check, about its endpoints if it names any, and no others.
func TestAnOptOutIsForACheckAndItsEndpoints(t *testing.T) {
	t.Parallel()
	for want, opts := range map[int][]sweep.Option{
		0: {sweep.Without(sweep.Swallowed), sweep.Without(sweep.Truth, fakeserver.EndpointStatus)},
		1: {sweep.Without(sweep.Swallowed, fakeserver.EndpointWarmUp), sweep.Without(sweep.Quota)},
	} {
		assert.Len(t, run(t, func(e *sweep.Env) { _, _ = e.Client.Status(e.Context()) }, slices.Concat(quick, opts)...).found, want, "%d findings", want)
	}
}

// A check of WithCheck sees the calls, reports and state of a run; its error, or its panic, is
// a finding.
func TestOwnChecksSeeTheRun(t *testing.T) {
	t.Parallel()
	s := run(t, reporting(mended(notify)), append(quick, sweep.FakeOptions(fakeserver.WithKey("sk-mine")), sweep.WithCheck("one agent for a customer", func(run *sweep.Run) error {
		if run.Plan == "SendMessage_1/bad_request/once" {
			panic("no such plan for sk-mine")
		}
		if _, err := os.ReadDir(run.Dir); err != nil || run.Plan == "CreateAgent_1/bad_request/once" {
			return errors.Join(err, errors.New("found by a check of my own"))
		}
		return nil
	}))...)
	assert.Equal(t, sweep.Finding{"one agent for a customer", "CreateAgent_1/bad_request/once", fakeserver.EndpointCreateAgent, "found by a check of my own"}, s.found[0])
	assert.Contains(t, s.found[1].Says, "the check panicked: no such plan for [key]")
	baseline, refused := s.runs[""], s.runs["CreateAgent_1/bad_request/once"]
	assert.Equal(t, "SendMessage_1", baseline.Calls[1].Name)
	assert.Len(t, baseline.Restarted, 3, "calls after three restarts")
	assert.Len(t, baseline.Fake.Agents(), 1)
	assert.Equal(t, "sk-mine", baseline.Fake.Key())
	assert.Len(t, refused.Calls[0].Attempts, 1)
	assert.ErrorIs(t, refused.Reports[0], agentmessaging.ErrBadRequest)
	assert.Contains(t, refused.Told, "agentmessaging: POST /v1/agents: ")
	assert.Contains(t, s.runs["CreateAgent_1/dies_arrived"].ToldAfter, "may have been created before")
}

// A scenario that uses env as its *testing.T reports with assertions. Its goroutines have the
// name of the run as a label, which the trace of a panic can show. It is not parallel: it sets
// the environment, and measures what a line allocates.
func TestEnvIsATB(t *testing.T) {
	var cleaned []int
	outside := os.Environ()
	var goroutines strings.Builder
	assert.Empty(t, run(t, func(e *sweep.Env) {
		e.Cleanup(func() { cleaned = append(cleaned, 1); assert.Error(t, e.Context().Err()) })
		e.Cleanup(func() {
			e.Cleanup(func() { cleaned = append(cleaned, 3) })
			if cleaned = append(cleaned, 2); e.Failed() {
				e.FailNow()
			}
		})
		assert.ElementsMatch(t, outside, os.Environ(), "no run begins with what another has set")
		assert.NoFileExists(t, "large", "no run begins in the folder of another")
		e.Setenv("SWEEP_FOLDER", e.Dir)
		e.Chdir(e.Dir)
		_ = pprof.Lookup("goroutine").WriteTo(&goroutines, 1)
		if _, err := e.Client.Status(e.Context()); !assert.NoError(e, err) {
			e.Skip("only without faults this would skip the test")
		}
		var before, after runtime.MemStats
		write(t, filepath.Join(e.Dir, "large"), strings.Repeat("x", 1<<16))
		runtime.ReadMemStats(&before)
		e.Logger().Info("the service is there")
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16), "where no death is tried, a line does not read the folder")
		assert.DirExists(t, e.TempDir())
	}, once, sweep.Faults("refused")).found)
	assert.Contains(t, goroutines.String(), `{"sweep":"TestEnvIsATB/Status_1/refused/once in `)
	assert.Equal(t, slices.Repeat([]int{2, 3, 1}, len(cleaned)/3), cleaned, "each run does all cleanups, the last first")
	assert.False(t, t.Skipped())
	t.Run("skipped", func(t *testing.T) {
		defer func() { assert.True(t, t.Skipped()) }()
		run(t, func(e *sweep.Env) { status(e); e.Skipf("there is no %s here", "docker") }, alive...)
	})
}

// A fault hits one attempt, all attempts of a call, or all calls from one on, as its plan
// says.
func TestAFaultLastsAsLongAsItsPlanSays(t *testing.T) {
	t.Parallel()
	runs := run(t, func(e *sweep.Env) {
		fmt.Fprint(e.Output(), "one\ntwo\n")
		status(e)
		_, err := e.Client.GetBYOK(e.Context())
		e.Reports(err)
		_, err = agentOf(e)
		e.Reports(err)
		status(e)
		e.Reports(e.Point("end"))
	}, sweep.InBubble(), sweep.Faults("bad_gateway", "not_found", "bad_request", "limited_day")).runs
	assert.Regexp(t, "^one\ntwo\n", runs[""].Told)
	assert.NotContains(t, runs["Status_1/bad_gateway/from_on"].Told, "end_1 fails", "a call's fault hits no point")
	for plan, hit := range map[string]string{
		"Status_1/bad_gateway/once":         "Status_1",
		"Status_1/bad_gateway/call":         "Status_1 Status_1 Status_1",
		"Status_1/bad_gateway/from_on":      "Status_1 Status_1 Status_1 GetBYOK_1 GetBYOK_1 GetBYOK_1 CreateAgent_1 Status_2 Status_2 Status_2",
		"Status_1/not_found/from_on":        "Status_1 Status_2",
		"CreateAgent_1/bad_request/from_on": "CreateAgent_1", // a wrong body says nothing about calls to other endpoints
		"CreateAgent_1/limited_day/from_on": "CreateAgent_1", // the other endpoints here list no 429
	} {
		var attempts []string
		for _, c := range runs[plan].Calls {
			for _, a := range c.Attempts {
				if a.Fault != "" {
					attempts = append(attempts, c.Name)
				}
			}
		}
		assert.Equal(t, hit, strings.Join(attempts, " "), plan)
	}
	assert.NotContains(t, runs, "CreateAgent_1/bad_request/call", "there is no second attempt")
}

// Restarts come after half a minute, half an hour and a day: in a bubble by the
// application's own time, outside by the fake's.
func TestRestartsComeAtTheirTimes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		now  func(*sweep.Env) time.Time
		opts []sweep.Option
	}{
		"in a bubble": {func(*sweep.Env) time.Time { return time.Now() }, quick},
		"outside":     {func(e *sweep.Env) time.Time { return e.Fake.Now() }, []sweep.Option{once, sweep.Faults("refused")}},
	} {
		var times []time.Time
		run(t, func(e *sweep.Env) { times = append(times, tt.now(e)); status(e) }, tt.opts...)
		for i, want := range []time.Duration{0, 30 * time.Second, 30*time.Minute + 30*time.Second, 24*time.Hour + 31*time.Minute + 30*time.Second} {
			assert.WithinDuration(t, times[0].Add(want), times[i], time.Second, "restart %d, %s", i, name)
		}
	}
}

// A run that does not end is cut off, and its finding says what it waits for.
func TestTheWatchdogSaysWhyARunStalls(t *testing.T) {
	alarm, outside := make(chan time.Time), make(chan int)
	ring := func() { alarm <- time.Now() }
	for says, tt := range map[string]struct {
		stall func(*sweep.Env)
		ends  bool // once its context does
		opt   sweep.Option
	}{
		`(?s)not ended in 7s .*let it wait with Env.Fake.Sleep.*sweep_test.go`: {func(*sweep.Env) { ring(); select {} }, false, sweep.Watchdog(7 * time.Second)},
		`(?s)in a bubble, time does not pass.*sweep_test.go`:                   {func(*sweep.Env) { ring(); <-outside }, false, sweep.InBubble()},
		"waits for something that never comes":                                 {func(*sweep.Env) { select {} }, false, sweep.InBubble()},
		"had to be ended: it had taken 2h0m0s of virtual time": {func(e *sweep.Env) {
			<-e.Context().Done()
			e.Reports(e.Context().Err())
			t.Error("11 calls", tries(11)(e))
		}, true, sweep.InBubble()},
	} {
		s := run(t, func(e *sweep.Env) {
			if _, err := e.Client.Status(e.Context()); err != nil {
				tt.stall(e)
			}
		}, tt.opt, once, sweep.Alarm(alarm))
		require.Len(t, s.found, 1, "%s: a run that was cut off shows nothing else", says)
		assert.Regexp(t, says, s.found[0].Says, s.reports)
		assert.Equal(t, !tt.ends, strings.Contains(s.summary, "3 runs stalled and the others were not tried"), "%s: %s", says, s.summary)
		assert.Equal(t, tt.ends, s.runs[s.found[0].Plan] != nil, "%s: seen by the own check", says)
	}
}

var cache sync.Once

// misuses are scenarios that Test refuses, or that must fail in a separate process, with the
// message.
var misuses = map[string]struct {
	scenario func(*sweep.Env)
	says     string
	opts     []sweep.Option
}{
	"finds":          {reporting(broken(notify)), "again: go test -v -run '^TestChild$/^finds$/", alive},
	"fails":          {func(e *sweep.Env) { e.Fatal(e.Fake.Key(), "is no key of the shop") }, "the scenario failed without faults: [key] is no key of the shop", nil},
	"fails now":      {func(e *sweep.Env) { e.FailNow(); panic("FailNow returns") }, "the scenario failed without faults: failed", nil},
	"404":            {func(e *sweep.Env) { e.Reports(gone(e)) }, "the scenario failed without faults: agentmessaging: GET /v1/agents/{agent_id}: 404", nil},
	"404 and silent": {func(e *sweep.Env) { _ = gone(e) }, "no call succeeds without faults", nil},
	"barred": {func(e *sweep.Env) {
		if status(e); get(e, "lock") != "" {
			e.Reports(fmt.Errorf("another process is running (%w, %w)", e.Context().Err(), context.Cause(e.Context()))) // joins no error
		}
		_ = put(e, "lock", "mine")
	}, "after the restart a day later, the scenario failed without faults: another process is running", nil},
	"a cache": {func(e *sweep.Env) {
		cache.Do(func() { status(e) })
		status(e)
	}, "makes 2 calls at first and 1 the second time: it keeps something from run to run", nil},
	"a word": {func(e *sweep.Env) {
		status(e)
		e.Told(filepath.Base(e.Dir))
	}, "nobody can tell such lines from a report, so say them with Env.Log", nil},
	"a word that races": {func(e *sweep.Env) {
		fanOut(e, "Red", "Green")
		e.Told(filepath.Base(e.Dir))
	}, "such lines count as reports", alive},
	"a check":  {status, `there is no check "trebled"; the checks are ["panics"`, []sweep.Option{sweep.Without("trebled")}},
	"a method": {status, `there is no endpoint "SendMessage"; the endpoints are constants of package fakeserver`, []sweep.Option{sweep.Without(sweep.Quota, "SendMessage")}},
	"keeps nothing": {func(e *sweep.Env) { _, _ = e.Client.Status(e.Context()) },
		"nothing is kept in Env.Dir, so that no restart knows what came before", alive},
	"no watch":   {status, "Watchdog(0s): the time has to be more than 0", []sweep.Option{sweep.Watchdog(0)}},
	"no time":    {status, "MaxVirtualTime(-1s): the time is negative", []sweep.Option{sweep.MaxVirtualTime(-time.Second)}},
	"no calls":   {status, "sweep: fakeserver: WithLimit: ", []sweep.Option{sweep.FakeOptions(fakeserver.WithLimit(fakeserver.LimitKeyDay, 0))}},
	"nil too":    {status, "sweep: agentmessaging: opts: option 1 is nil", []sweep.Option{sweep.ClientOptions(nil)}},
	"no check":   {status, `WithCheck("mine"): a check needs a function, and a name that no other check has`, []sweep.Option{sweep.WithCheck("mine", nil)}},
	"same name":  {status, `WithCheck("lost"): a check`, []sweep.Option{sweep.WithCheck("lost", never)}},
	"fails ever": {status, `the check "mine" fails without faults: it never passes`, []sweep.Option{sweep.WithCheck("mine", never)}},
	"unused":     {func(e *sweep.Env) { e.Fake.OnMessage().Required(); status(e) }, "OnMessage() at sweep_test.go:", nil},
	"late":       {status, "sweep: runs are missing, because go test -timeout is nearly over", []sweep.Option{sweep.NearlyOver}},
	"no option":  {status, "sweep: an option is nil", []sweep.Option{nil}},
	"idle":       {func(*sweep.Env) {}, "the scenario made no call with Env.Client", nil},
	"nil":        {nil, "sweep: the scenario is nil", nil},
}

func never(*sweep.Run) error { return errors.New("it never passes") }

// gone reads an agent that never existed.
func gone(e *sweep.Env) error {
	_, err := e.Client.GetAgent(e.Context(), "agent_of_yesterday")
	return err
}

// child runs some of the tests of this binary that fail.
func child(t *testing.T, run string) string {
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run", run)
	cmd.Env = append(os.Environ(), "SWEEP_CHILD=yes")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	return string(out)
}

// TestChild sweeps each of misuses, and fails for each. Other tests run it as a process.
func TestChild(t *testing.T) {
	if os.Getenv("SWEEP_CHILD") == "" {
		t.Skip("is run by other tests")
	}
	for name, misuse := range misuses {
		t.Run(name, func(t *testing.T) {
			sweep.Test(t, misuse.scenario, misuse.opts...)
			t.Error("the sweep goes on")
		})
	}
	t.Run("a bubble", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { sweep.Test(t, status) }) })
}

// Each misuse fails the test with its message, and the flag -run repeats single runs.
func TestMisuseIsReported(t *testing.T) {
	t.Parallel()
	out := child(t, "^TestChild$")
	for name, misuse := range misuses {
		assert.Contains(t, out, "--- FAIL: TestChild/"+strings.ReplaceAll(name, " ", "_"), name)
		assert.Contains(t, out, misuse.says, name)
	}
	assert.Contains(t, out, "Call it outside, with the option InBubble")
	again := regexp.MustCompile(`again: go test -v -run '(.*SendMessage_1.*)'`).FindStringSubmatch(out)
	require.Len(t, again, 2, "%s", out)
	another := regexp.MustCompile(`in 6 other runs.*/NAME'\), such as \S+, (SendMessage[^,]+), \S+\n`).FindStringSubmatch(out)
	require.Len(t, another, 2, "%s", out)
	finds := "^TestChild$/^finds$/"
	some := child(t, again[1]+"|"+finds+another[1]+"|"+finds+"CreateAgent_1/bad_request/once")
	assert.Equal(t, 2, strings.Count(some, "again: "), "%s", some)
	assert.Equal(t, 1, strings.Count(some, "this run passes"), "%s", some)
	assert.Contains(t, child(t, finds+"SendMassage_1"), "there is no such run")
}

// Faults that wait a minute, or for a deadline, do so in virtual time, outside of a bubble
// as well.
func TestFaultsTakeVirtualTime(t *testing.T) {
	t.Parallel()
	s := run(t, func(e *sweep.Env) { e.Reports(store(e, "sk-today")) },
		sweep.MaxVirtualTime(4*time.Minute), sweep.Faults("bad_request", "limited_minute", "limited_day", "reply_dripping", "silence"))
	assert.Equal(t, []string{"ends", "ends SetBYOK_1/limited_minute/call"}, s.checks()[:2], "a limit that stays is longer than allowed, as are five minutes of silence")
	assert.Len(t, s.found, 1)
	for plan, want := range map[string]struct{ least, below time.Duration }{
		"SetBYOK_1/bad_request/once":    {0, time.Second},
		"SetBYOK_1/limited_minute/once": {time.Minute, 67 * time.Second},
		"SetBYOK_1/limited_day/once":    {0, time.Second}, // the client does not wait that long
		"SetBYOK_1/reply_dripping/once": {30 * time.Second, 31 * time.Second},
		"SetBYOK_1/silence/once":        {5 * time.Minute, 5*time.Minute + 2*time.Second}, // the timeout of a call
	} {
		assert.GreaterOrEqual(t, s.runs[plan].Lasted, want.least, plan)
		assert.Less(t, s.runs[plan].Lasted, want.below, plan)
	}
}

// A leak is shown with its stack, outside of a bubble too. A goroutine that ends soon is none, and
// parallel sweeps do not find each other's goroutines.
func TestALeakIsShownWithItsStack(t *testing.T) {
	t.Parallel()
	leaking := func(e *sweep.Env) {
		if _, err := e.Client.GetBYOK(e.Context()); err != nil {
			e.Reports(err)
			go func() { select {} }()
			go func() { regexp.MustCompile(strings.Repeat("(a|b)?", 10_000)) }() // is busy for more than 2 ms
		}
	}
	for _, opts := range [][]sweep.Option{{once, sweep.Faults("payment_required")}, alive} {
		assert.Regexp(t, `leak: 1 kind of goroutine left over:\n.*sweep_test.go:`, strings.Join(run(t, leaking, opts...).reports, "\n"), "%d options", len(opts))
	}
}
