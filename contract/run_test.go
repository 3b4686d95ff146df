package contract

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/stranger"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// Collecting garbage took a fifth of a run's time.
func init() { debug.SetGCPercent(400) }

// TestFake runs every case, each on a new fake whose clock waits for the case, and
// without a connection in between: a day's calls take milliseconds.
func TestFake(t *testing.T) {
	budget := Spend{Requests: 2100, Creations: 60, BYOKSets: 10, WarmUps: 10} // all but the days of plans: TestDaysOfPlans
	if *all {
		budget = Spend{}
	}
	Run(t, Target{Budget: budget, Fresh: func(tb testing.TB) Target {
		return directly(newFake(tb, fakeserver.WithClock(still)))
	}})
}

// TestDaysOfPlans reads the numbers of interface 8.2 that take 10,000 and 50,000 calls to fill.
func TestDaysOfPlans(t *testing.T) {
	fake := newFake(t)
	for plan, want := range map[string]int{"pro": 10_000, "byok": 50_000} {
		for _, l := range fake.Limits(fake.IssueKeyOn(plan, true)) {
			assert.True(t, l.Key != "key_day" || l.Max == want, "%s: %+v", plan, l)
		}
	}
}

// TestFakeShared runs the cases as a live service would have them: one after
// the other on one target, within the default budget.
func TestFakeShared(t *testing.T) {
	target := directly(newFake(t))
	Run(t, Target{BaseURL: target.BaseURL, Key: target.Key, HTTPClient: target.HTTPClient})
}

// Flags of TestLive.
var (
	live = flag.Bool("contract.live", false,
		"run the contract against AGENT_MESSAGING_BASE_URL with AGENT_MESSAGING_API_KEY; overwrites the key's BYOK configuration")
	liveBudget   Spend
	liveProgress = flag.String("contract.progress", "", "a file that keeps which cases passed, for a run over several days")
	liveObserved = flag.String("contract.observed", "", "what agentmessaging-fake observe wrote of the service")
)

func init() {
	flag.Var(&liveBudget, "contract.budget", "such as requests=1000,creations=50,byok=5,warmups=3,wait=1h; 40 requests unless given")
}

// TestLive runs the cases that need nothing but a key, or two, one after the
// other and within the budget.
//
//	go test -v ./contract -run TestLive -contract.live
func TestLive(t *testing.T) {
	if !*live {
		t.Skip("needs -contract.live, AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY")
	}
	target := Target{
		BaseURL: os.Getenv("AGENT_MESSAGING_BASE_URL"), Key: os.Getenv("AGENT_MESSAGING_API_KEY"),
		SecondKey: os.Getenv("AGENT_MESSAGING_SECOND_API_KEY"), Budget: liveBudget, Progress: *liveProgress,
	}
	require.NotEmpty(t, target.BaseURL, "AGENT_MESSAGING_BASE_URL is not set")
	require.NotEmpty(t, target.Key, "AGENT_MESSAGING_API_KEY is not set")
	if *liveObserved != "" {
		var err error
		target.Observed, err = observe.ReadFile(*liveObserved)
		require.NoError(t, err)
	}
	Run(t, target)
}

func directly(fake *fakeserver.Server) Target {
	return targetOf(fake, func(ip string) http.RoundTripper { return fake.Direct(fakeserver.FromIP(ip)) })
}

// targetOf is the fake with all its abilities, reached by the transport of an
// address.
func targetOf(fake *fakeserver.Server, transport func(ip string) http.RoundTripper) Target {
	client := func(ip string) *http.Client { return &http.Client{Transport: transport(ip)} }
	return Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client("192.0.2.1"), ClientFrom: client, Abilities: fake, FrozenClock: true, Decisions: true,
	}
}

// newFake makes a fake that does not list its calls when a case fails: the
// case shows the one that matters.
func newFake(tb testing.TB, opts ...fakeserver.Option) *fakeserver.Server {
	return fakeserver.New(quiet{tb}, append(opts, fakeserver.WithUnknownRoutes())...)
}

// still is the clock of a fake that waits for Advance.
func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }

// cases are made once: their bodies are ten mebibytes.
var cases = sync.OnceValue(allCases)

func TestCaseIDs(t *testing.T) {
	ids := map[string]bool{}
	for _, c := range cases() {
		assert.Falsef(t, ids[c.ID], "two cases %s", c.ID)
		ids[c.ID] = true
		assert.Regexp(t, `^(\d+(\.\d+)?|fake)/[^/ ][^ ]*$`, c.ID)
		assert.True(t, c.Rule != "" && c.Spends.Requests > 0, "%s has a rule, and makes calls", c.ID)
	}
	assert.True(t, slices.IsSortedFunc(cases(), func(a, b testCase) int { return strings.Compare(a.section(), b.section()) }), "the sections of the cases are in order")
}

// TestPlan: which cases of a list run on a target.
func TestPlan(t *testing.T) {
	one := Spend{Requests: 1}
	costs := func(s Spend) testCase { return testCase{Spends: s} }
	ofAgent, filling, exact := testCase{Spends: one, agent: true}, testCase{Spends: one, fillsLimit: true}, newCase("", "", getStatus.is(200).opensIn(0))
	ofTwoKeys, ofTwoAddresses := newCase("", "", getStatus.is(200).by(another)), newCase("", "", getStatus.is(200).from(thereIP))
	fresh := func(testing.TB) Target { return Target{} }
	for name, tt := range map[string]struct {
		target Target
		cases  []testCase
		runs   []bool
	}{
		"until the budget is spent":   {Target{Budget: Spend{Requests: 2}}, []testCase{costs(one), costs(one), costs(one)}, []bool{true, true, false}},
		"cheapest first":              {Target{Budget: Spend{Requests: 3}}, []testCase{costs(Spend{Requests: 2}), costs(Spend{Requests: 3}), costs(one)}, []bool{true, false, true}},
		"the core before all":         {Target{Budget: one}, []testCase{costs(one), {Spends: one, ID: "4.7/read"}}, []bool{false, true}},
		"every part has an end":       {Target{Budget: Spend{Requests: 9}}, []testCase{costs(Spend{Creations: 1}), costs(Spend{BYOKSets: 1}), costs(Spend{WarmUps: 1}), costs(Spend{Wait: 1})}, make([]bool, 4)},
		"a clock that can be moved":   {Target{Budget: one, Abilities: nothing{}}, []testCase{costs(Spend{Requests: 1, Wait: day})}, []bool{true}},
		"one agent for all":           {Target{Budget: Spend{Requests: 3, Creations: 1}}, []testCase{ofAgent, ofAgent}, []bool{true, true}},
		"an agent is a creation":      {Target{Budget: Spend{Requests: 3}}, []testCase{ofAgent}, []bool{false}},
		"what the target lacks":       {Target{}, []testCase{newCase("", "", getStatus.is(200).by(third)), ofTwoKeys, ofTwoAddresses, {ID: "fake/x"}, exact}, make([]bool, 5)},
		"a second key":                {Target{SecondKey: "key-2"}, []testCase{ofTwoKeys}, []bool{true}},
		"a clock that stays":          {Target{FrozenClock: true}, []testCase{exact}, []bool{true}},
		"the default budget":          {Target{}, []testCase{costs(defaultBudget), costs(one)}, []bool{false, true}},
		"a budget for each fresh one": {Target{Fresh: fresh, Budget: one}, []testCase{costs(one), costs(one), costs(Spend{Requests: 2})}, []bool{true, true, false}},
		"no bound for fresh ones":     {Target{Fresh: fresh}, []testCase{costs(Spend{Requests: 1e9})}, []bool{true}},
		"limits that nobody observed": {Target{}, []testCase{filling}, []bool{false}},
		"limits by a clock":           {Target{Observed: observed("windows", `"aligned"`, 60)}, []testCase{filling}, []bool{false}},
		"limits of a larger plan":     {Target{Observed: observed("windows", `"fixed"`, 300)}, []testCase{filling, costs(one)}, []bool{false, true}},
		"limits of a preview key":     {Target{Observed: observed("windows", `"fixed"`, 60)}, []testCase{filling}, []bool{true}},
		"a small cap on metadata":     {Target{Observed: observed("metadata_cap", "100", 60)}, []testCase{newCase("", "", createAgent.with(`{"metadata":{}}`).is(200)), costs(one)}, []bool{false, true}},
		"refused creations count": {Target{Budget: Spend{Requests: 9, Creations: 1}, Observed: observed("refused_operations_spend", "true", 60)},
			[]testCase{newCase("", "", wrongAgent.is(400), createAgent.is(200)), newCase("", "", wrongAgent.is(400))}, []bool{false, true}},
	} {
		plan, _ := newPlan(tt.cases, tt.target, nil)
		for i, p := range plan {
			assert.Equal(t, tt.runs[i], p.leftOut == "", "%s: case %d: %s", name, i, p.leftOut)
		}
	}
}

func observed(id, answer string, limit int) *observe.Observation {
	return &observe.Observation{Decisions: map[string]observe.Finding{id: {Answer: []byte(answer)}}, Limits: map[string]int{"key_minute": limit}}
}

// TestProgress: what passed is not run again on the next day.
func TestProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress.json")
	require.NoError(t, progress{}.pass("4.8/reply", file))
	require.NoError(t, progress{}.pass("4.8/other", ""))
	done, err := readProgress(file)
	require.NoError(t, err)
	plan, _ := newPlan([]testCase{{ID: "4.8/reply"}, {ID: "4.8/other"}}, Target{}, done)
	for _, p := range plan {
		assert.Equal(t, p.ID == "4.8/reply", strings.Contains(p.leftOut, "it passed on 2"), p.ID)
	}
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = readProgress(file)
	assert.ErrorContains(t, err, "remove the file to start with every case")
}

// TestLiveRefusals: a 429 in the middle of a case is waited for within the budget,
// and else skips the case: no rule is blamed.
func TestLiveRefusals(t *testing.T) {
	once, fills, unlimited := newCase("", "", warmUp.is(200)), newCase("", "", warmUp.is(200), warmUp.is(429)), newCase("", "", getStatus.is(200))
	for _, tt := range []struct {
		c        testCase
		refusals int
		wait     time.Duration
		calls    int
		skipped  bool
	}{
		{once, 1, time.Second, 2, false},
		{once, 2, time.Second, 2, true},
		{once, 9, time.Minute, 4, true},
		{once, 1, 0, 1, true},
		{newCase("", "", readAgent.is(200)), 1, 0, 1, true}, // before the agent is there
		{fills, 1, time.Hour, 1, true},                      // another call has filled the limit
		{unlimited, 1, time.Hour, 1, false},                 // which breaks a rule
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			client := &http.Client{Transport: stranger.RoundTrip(func(req *http.Request) (*http.Response, error) {
				if calls++; calls <= tt.refusals {
					return stranger.Answering(429, `{"error":"rate_limited","limit_key":"x","trace_id":"t"}`)(req)
				}
				return stranger.Answering(200, `{"ok":true,"warmed":true,"mode":"hosted","trace_id":"t"}`)(req)
			})}
			all := &shared{wait: tt.wait}
			err := tt.c.check(t.Context(), Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: client}, all)
			assert.False(t, all.failed, "the next case may create the agent")
			assert.Equal(t, tt.c.steps[0].Name == getStatus.Name, breaks(err), err)
			assert.Equal(t, tt.calls, calls, err)
			assert.Equal(t, tt.skipped, errors.As(err, new(skipped)), err)
		})
	}
}

func TestPlanSays(t *testing.T) {
	p, _ := newPlan([]testCase{
		{Spends: Spend{Requests: 1}},
		{Spends: Spend{Requests: 41}},
		{Spends: Spend{Requests: 1, Wait: time.Hour}},
		{Spends: Spend{Requests: 1}, abilities: true},
	}, Target{}, nil)
	assert.Equal(t, "contract: 1 of 4 cases run. 1 more would with Target.Abilities. "+
		"2 more would with a larger Target.Budget, or Target.Fresh.", p.String())
	assert.Equal(t, "it takes more than the budget has: 41 requests of 39 left", p[1].leftOut)
	_, left := newPlan([]testCase{{Spends: Spend{Wait: time.Hour}}}, Target{Budget: Spend{Requests: 1, Wait: 3 * time.Hour}}, nil)
	assert.Equal(t, 2*time.Hour, left.Wait)
}

// TestPlanOfDefaultBudget: what a live run with the default budget is there
// for are the core cases.
func TestPlanOfDefaultBudget(t *testing.T) {
	runs := 0
	plan, _ := newPlan(cases(), Target{}, nil)
	for _, p := range plan {
		assert.False(t, p.leftOut == "" && p.decision(), "%s is a decision, and runs", p.ID)
		if p.in(core) {
			runs++
			assert.Empty(t, p.leftOut, "why %s is left out", p.ID)
		}
	}
	assert.Equal(t, 34, runs, "of the list core")
}

// TestFailurePrintsRule: a failure begins with the sentence that was broken,
// and is short whatever came back.
func TestFailurePrintsRule(t *testing.T) {
	assert.Equal(t, `broken rule (interface 4.8): Text.`, testCase{ID: "4.8/x", Rule: "Text."}.String())
	assert.Regexp(t, "^broken rule .our decision.*: x$", testCase{ID: "fake/x", Rule: "x"}.String())
	client := &http.Client{Transport: stranger.Answering(500, `{"error":"`+strings.Repeat("x", 10_000)+`"}`)}
	target := Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: client, Abilities: nothing{}, ClientFrom: func(string) *http.Client { return client }}
	all, logs := new(shared), ""
	for c := range slices.Chunk(cases(), 10) {
		err := c[0].check(t.Context(), target, all)
		require.Error(t, err, c[0].ID)
		log := err.Error()
		require.True(t, strings.HasPrefix(log, c[0].String()), "the failure of %s begins with another sentence: %.300q", c[0].ID, log)
		require.Less(t, len(log)-len(c[0].String()), 500, "characters that the failure of %s adds to its rule: %.300q", c[0].ID, log)
		logs += log
	}
	assert.Contains(t, logs, "\nan earlier case could not create the agent")
}

// TestIrreversible: a fingerprint that shows the provider key in any of the
// usual ways is refused.
func TestIrreversible(t *testing.T) {
	for shown, fingerprint := range map[string]string{
		"the last five":       "sk-...~Jw4n~Jw4",
		"backwards":           "4wJ~nwo~ton",
		"rotated by 13":       "fp_pbagenpg~7s3",
		"hexadecimal":         "776e7e4a7734",
		"base64":              "c2stY29udHJhY3R+N2YzfmE5Y34yZTR+bm90fm93bn5KdzQ=",
		"a plain SHA-256":     "sha256:ea8098a234438a3d",
		"a plain SHA-512":     "fab63a921293d6ba",
		"a SHA-256 in base64": "6oCYojRDij33",
	} {
		assert.NotEmpty(t, irreversible(fingerprint, nil), shown)
	}
	assert.Empty(t, irreversible("fp_8c1d0a4be1f2", nil))
}

// breaks reports whether a case ended because a rule is broken.
func breaks(err error) bool { return err != nil && !errors.As(err, new(skipped)) }

// firstLiveFailure runs the cases as Run does on a shared target, up to the
// first that fails, and returns its id and what it printed, and how many cases
// ran until then.
func firstLiveFailure(t *testing.T, target Target) (failure string, ran int) {
	p, left := newPlan(cases(), target, nil)
	all := &shared{wait: left.Wait}
	for _, c := range p {
		if c.leftOut != "" {
			continue
		}
		ran++
		if err := c.check(t.Context(), target, all); breaks(err) {
			return fmt.Sprint(c.ID, "\n", err), ran
		}
	}
	return "", ran
}

// nothing can arrange everything, and does nothing.
type nothing struct{}

func (nothing) IssueKeyOn(string, bool) string { return "key-2" }
func (nothing) RevokeKey(string)               {}
func (nothing) SetBYOKAvailable(bool)          {}
func (nothing) Advance(time.Duration)          {}
