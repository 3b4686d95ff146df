package contract

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/stranger"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

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

// verdict is a case that has ended.
type verdict struct {
	testing.TB
	failed, skipped bool
}

func (v verdict) Failed() bool  { return v.failed }
func (v verdict) Skipped() bool { return v.skipped }

// TestProgress: what passed is not run again on the next day.
func TestProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress.json")
	require.NoError(t, progress{}.pass(t, "4.8/reply", file))
	require.NoError(t, progress{}.pass(t, "4.8/other", ""))
	require.NoError(t, progress{}.pass(verdict{failed: true}, "4.8/other", file))
	require.NoError(t, progress{}.pass(verdict{skipped: true}, "4.8/other", file))
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
		{fills, 1, time.Hour, 1, true},      // another call has filled the limit
		{unlimited, 1, time.Hour, 1, false}, // which breaks a rule
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
			failed, log := tt.c.try(t, Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: client}, all)
			assert.False(t, all.tried, "the next case may create the agent")
			assert.Equal(t, tt.c.steps[0].Name == getStatus.Name, failed, log)
			assert.Equal(t, tt.calls, calls, log)
			assert.Equal(t, tt.skipped, strings.Contains(log, "a limit of the target refused a call in the middle"), log)
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
		_, log := c[0].try(t, target, all)
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

// quietTB runs a case that is expected to fail.
type quietTB struct {
	testing.TB
	failed bool
	log    strings.Builder
}

func (q *quietTB) Skipf(f string, a ...any) {
	q.Logf(f, a...)
	runtime.Goexit()
}

func (q *quietTB) Fatalf(f string, a ...any) {
	q.failed = true
	q.Skipf(f, a...)
}

func (q *quietTB) Logf(f string, a ...any) { fmt.Fprintf(&q.log, f+"\n", a...) }

// try runs the case on the target: whether it failed, and what it printed.
func (c testCase) try(t *testing.T, target Target, all *shared) (failed bool, log string) {
	q := &quietTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.check(q, target, all)
	}()
	<-done
	return q.failed, q.log.String()
}

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
		if failed, log := c.try(t, target, all); failed {
			return c.ID + "\n" + log, ran
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
