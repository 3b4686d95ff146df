package contract

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

func TestCaseIDs(t *testing.T) {
	cases := AllCases()
	ids := map[string]bool{}
	for _, c := range cases {
		assert.False(t, ids[c.ID], "two cases %s", c.ID)
		ids[c.ID] = true
		assert.Regexp(t, `^(\d+(\.\d+)?|fake)/[^/ ]`, c.ID)
		assert.NotContains(t, c.ID, " ", "a subtest's name must be its id")
		assert.NotEmpty(t, c.Rule, "rule of %s", c.ID)
		assert.Equal(t, slices.ContainsFunc(limits, func(l limit) bool { return c.ID == "8.1/"+l.key }), c.base, "base of %s", c.ID)
		assert.Positive(t, c.Spends.Requests, "requests of %s", c.ID)
		assert.Equal(t, c.decision(), slices.Contains(c.Needs, needDecisions), "whether %s needs decisions", c.ID)
	}
	assert.True(t, slices.IsSortedFunc(cases, func(a, b testCase) int { return strings.Compare(a.section(), b.section()) }), "the sections of the cases are not in order")
}

func TestPlanBudget(t *testing.T) {
	one := Spend{Requests: 1}
	agent := []need{needAgent}
	fresh := func(testing.TB) Target { return Target{} }
	for _, tt := range []struct {
		name   string
		target Target
		cases  []testCase
		runs   []bool
	}{
		{"until it is spent", Target{Budget: Spend{Requests: 2}}, []testCase{{Spends: one}, {Spends: one}, {Spends: one}}, []bool{true, true, false}},
		{"a dear case leaves room", Target{Budget: Spend{Requests: 2}}, []testCase{{Spends: Spend{Requests: 3}}, {Spends: one}}, []bool{false, true}},
		{"core first", Target{Budget: one}, []testCase{{Spends: one}, {Spends: one, ID: "4.7/read"}}, []bool{false, true}},
		{"creations", Target{Budget: Spend{Requests: 9, Creations: 1}}, []testCase{{Spends: Spend{Requests: 1, Creations: 2}}, {Spends: Spend{Requests: 1, Creations: 1}}}, []bool{false, true}},
		{"BYOK sets", Target{Budget: Spend{Requests: 9}}, []testCase{{Spends: Spend{Requests: 1, BYOKSets: 1}}}, []bool{false}},
		{"warm-ups", Target{Budget: Spend{Requests: 9}}, []testCase{{Spends: Spend{Requests: 1, WarmUps: 1}}}, []bool{false}},
		{"no wait", Target{Budget: Spend{Requests: 9}}, []testCase{{Spends: Spend{Requests: 1, Wait: time.Second}}}, []bool{false}},
		{"a clock that can be moved", Target{Budget: one, Abilities: nothing{}}, []testCase{{Spends: Spend{Requests: 1, Wait: day}}}, []bool{true}},
		{"one agent for all", Target{Budget: Spend{Requests: 3, Creations: 1}}, []testCase{{Spends: one, Needs: agent}, {Spends: one, Needs: agent}}, []bool{true, true}},
		{"no agent", Target{Budget: Spend{Requests: 3}}, []testCase{{Spends: one, Needs: agent}}, []bool{false}},
		{"an agent is made", Target{}, []testCase{{Needs: agent}}, []bool{true}},
		{"what the target has not", Target{}, lacking(needAbilities, needClientFrom, needDecisions, needFrozenClock), make([]bool, 4)},
		{"what it has", Target{Abilities: nothing{}, ClientFrom: func(string) *http.Client { return nil }, Decisions: true},
			lacking(needAbilities, needClientFrom, needDecisions), []bool{true, true, true}},
		{"a bubble needs fresh targets", Target{Bubble: true}, lacking(needFrozenClock), []bool{false}},
		{"a bubble with fresh targets", Target{Bubble: true, Fresh: fresh}, lacking(needFrozenClock), []bool{true}},
		{"default", Target{}, []testCase{{Spends: defaultBudget}, {Spends: one}}, []bool{false, true}},
		{"fresh", Target{Fresh: fresh}, []testCase{{Spends: Spend{Requests: 1e9}}}, []bool{true}},
		{"cheapest first", Target{Budget: Spend{Requests: 3}}, []testCase{{Spends: Spend{Requests: 2}}, {Spends: Spend{Requests: 3}}, {Spends: one}}, []bool{true, false, true}},
		{"limits that nobody has observed", Target{}, []testCase{{Spends: one, refused: true}}, []bool{false}},
		{"limits by a clock", Target{Observed: observed("windows", `"aligned"`, 60)}, []testCase{{Spends: one, refused: true}}, []bool{false}},
		{"limits of a larger plan", Target{Observed: observed("windows", `"fixed"`, 300)}, []testCase{{Spends: one, refused: true}, {Spends: one}}, []bool{false, true}},
		{"limits that open bit by bit", Target{Observed: observed("windows", `"token bucket"`, 60)}, []testCase{{Spends: one, refused: true}}, []bool{false}},
		{"limits of a preview key", Target{Observed: observed("windows", `"fixed"`, 60)}, []testCase{{Spends: one, refused: true}}, []bool{true}},
		{"refused creations count", Target{Budget: Spend{Requests: 9, Creations: 1}, Observed: observed("refused_operations_spend", "true", 60)},
			[]testCase{{Spends: one, creations: 2}, {Spends: one, creations: 1}}, []bool{false, true}},
		{"each fresh", Target{Fresh: fresh, Budget: one}, []testCase{{Spends: one}, {Spends: one}, {Spends: Spend{Requests: 2}}}, []bool{true, true, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, p := range newPlan(tt.cases, tt.target, nil) {
				assert.Equal(t, tt.runs[i], p.leftOut == "", "case %d: %s", i, p.leftOut)
			}
		})
	}
}

func observed(id, answer string, limit int) *observe.Observation {
	return &observe.Observation{Decisions: map[string]observe.Finding{id: {Answer: []byte(answer)}}, Limits: map[string]int{"key_minute": limit}}
}

// TestProgress: what passed is not run again on the next day.
func TestProgress(t *testing.T) {
	file := filepath.Join(t.TempDir(), "progress.json")
	done, err := readProgress(file)
	require.NoError(t, err)
	require.NoError(t, done.pass(t, "4.8/reply", file))
	require.NoError(t, done.pass(t, "4.8/other", ""))
	done, err = readProgress(file)
	require.NoError(t, err)
	for _, p := range newPlan([]testCase{{ID: "4.8/reply"}, {ID: "4.8/other"}}, Target{}, done) {
		assert.Equal(t, p.ID == "4.8/reply", strings.Contains(p.leftOut, "it passed on 2"), p.ID)
	}
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err = readProgress(file)
	assert.Error(t, err)
}

// TestLiveRefusals: a 429 in the middle of a case is waited for within the budget,
// and else skips the case: no rule is blamed.
func TestLiveRefusals(t *testing.T) {
	c := newCase("4.2/x", "Rule.", warmUp.is(200))
	for _, tt := range []struct {
		refusals int
		wait     time.Duration
		calls    int
		skipped  bool
	}{{1, time.Second, 2, false}, {2, time.Second, 2, true}, {9, time.Minute, 4, true}, {1, 0, 1, true}} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			target := roundTrip(func(req *http.Request) (*http.Response, error) {
				if calls++; calls <= tt.refusals {
					return answering(429, `{"error":"rate_limited","limit_key":"x","trace_id":"t"}`)(req)
				}
				return answering(200, `{"ok":true,"warmed":true,"mode":"hosted","trace_id":"t"}`)(req)
			}).target()
			target.Abilities = nil
			failed, log := run(t, c, target, &shared{wait: tt.wait})
			assert.False(t, failed, log)
			assert.Equal(t, tt.calls, calls, "%+v", tt)
			assert.Equal(t, tt.skipped, strings.Contains(log, "a limit of the target refused a call in the middle"), log)
		})
	}
}

// lacking are cases that need one thing each.
func lacking(needs ...need) (cases []testCase) {
	for _, n := range needs {
		cases = append(cases, testCase{Needs: []need{n}})
	}
	return cases
}

func TestPlanSays(t *testing.T) {
	p := newPlan([]testCase{
		{Spends: Spend{Requests: 1}},
		{Spends: Spend{Requests: 41}},
		{Spends: Spend{Requests: 1, Wait: time.Hour}},
		{Spends: Spend{Requests: 1}, Needs: []need{needAbilities}},
	}, Target{}, nil)
	assert.Equal(t, "contract: 1 of 4 cases run. 1 more would with Target.Abilities. "+
		"2 more would with a larger Target.Budget, or Target.Fresh.", p.String())
	assert.Equal(t, "it takes more than the budget has: 41 requests of 39 left", p[1].leftOut)
}

// TestPlanOfDefaultBudget: what a live run with the default budget is there
// for are the core cases.
func TestPlanOfDefaultBudget(t *testing.T) {
	runs := 0
	for _, p := range newPlan(AllCases(), Target{}, nil) {
		assert.False(t, p.leftOut == "" && p.decision(), "%s is a decision, and runs", p.ID)
		if p.core() {
			runs++
			assert.Empty(t, p.leftOut, "why %s is left out", p.ID)
		}
	}
	assert.Equal(t, 34, runs, "of the list core")
}

// TestPage: the numbers on docs/contract.md.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/contract.md")
	require.NoError(t, err)
	assert.Contains(t, string(page), "within 40 requests, 5 agent creations, 1 BYOK set and 1\nwarm-up")
	assert.InDelta(t, 780, len(AllCases()), 40, "the page says 780")
	assert.Equal(t, Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}, defaultBudget)
}

// TestFailurePrintsRule: a failure begins with the sentence that was broken,
// and is short whatever came back.
func TestFailurePrintsRule(t *testing.T) {
	assert.Equal(t, `broken rule (interface 4.8): Text.`, testCase{ID: "4.8/x", Rule: "Text."}.String())
	assert.Regexp(t, "^broken rule .our decision.*: x$", testCase{ID: "fake/x", Rule: "x"}.String())
	for _, c := range AllCases() {
		_, log := verdict(t, c, answering(500, `{"error":"`+strings.Repeat("x", 10_000)+`"}`).target())
		assert.True(t, strings.HasPrefix(log, c.String()), "the failure of %s begins with another sentence: %.300q", c.ID, log)
		assert.Less(t, len(log)-len(c.String()), 500, "characters that the failure of %s adds to its rule: %.300q", c.ID, log)
		if t.Failed() {
			return
		}
	}
}

// TestBaseBroken: where a limit does not hold, the cases that fill it say
// nothing more.
func TestBaseBroken(t *testing.T) {
	c := newCase("8.2/x", "", getStatus.limited("key_minute"))
	for _, tt := range []struct {
		base   bool
		broken []string
		fails  bool
	}{{false, nil, true}, {false, []string{"8.1/key_minute"}, false}, {true, []string{"8.1/ip_minute"}, true}} {
		c.base = tt.base
		failed, log := verdict(t, c, answering(200, `{}`).target(), tt.broken...)
		assert.Equal(t, tt.fails, failed, "base %v, with %v broken: %s", tt.base, tt.broken, log)
	}
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
		assert.NotEmpty(t, irreversible(fingerprint), shown)
	}
	assert.Empty(t, irreversible("fp_8c1d0a4be1f2"))
}
