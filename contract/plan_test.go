package contract

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCaseIDs(t *testing.T) {
	cases := Cases()
	ids := map[string]bool{}
	for _, c := range cases {
		assert.False(t, ids[c.ID], "two cases %s", c.ID)
		ids[c.ID] = true
		assert.Regexp(t, `^(\d+(\.\d+)?|fake)/[^/ ]`, c.ID)
		assert.NotContains(t, c.ID, " ", "a subtest's name must be its id")
		assert.NotEmpty(t, c.Rule, c.ID)
		assert.NotNil(t, c.run, c.ID)
		assert.Positive(t, c.Spends.Requests, c.ID)
		assert.Equal(t, c.Decision(), slices.Contains(c.Needs, NeedDecisions), c.ID)
	}
	assert.True(t, slices.IsSortedFunc(cases, bySection))
	assert.Equal(t, "1", cases[0].Section())
	assert.True(t, cases[len(cases)-1].Decision())
}

func TestSectionsInOrder(t *testing.T) {
	sections := []string{"2.3", "2.10", "4.1", "5", "8", "8.1", "fake"}
	for i := range sections[1:] {
		assert.Negative(t, bySection(Case{ID: sections[i] + "/a"}, Case{ID: sections[i+1] + "/a"}), sections[i])
	}
}

func TestPlanLacks(t *testing.T) {
	for _, need := range []Need{
		NeedIssueKey, NeedRevokeKey, NeedBYOKSwitch, NeedClientFrom, NeedDecisions, NeedFrozenClock,
	} {
		p := newPlan([]Case{{ID: "1/a", Needs: []Need{need}}}, Target{})
		assert.Equal(t, "the target lacks "+string(need), p[0].leftOut)
	}
	assert.Empty(t, newPlan([]Case{{ID: "1/a", Needs: []Need{NeedAgent}}}, Target{})[0].leftOut)
}

// A bubble needs targets made inside it.
func TestPlanBubbleNeedsFresh(t *testing.T) {
	frozen := Case{Needs: []Need{NeedFrozenClock}}
	assert.NotEmpty(t, Target{Bubble: true}.lacks(frozen))
	assert.Empty(t, Target{Bubble: true, Fresh: func(testing.TB) Target { return Target{} }}.lacks(frozen))
}

func TestPlanBudget(t *testing.T) {
	one := Spend{Requests: 1}
	agent := []Need{NeedAgent}
	fresh := func(testing.TB) Target { return Target{} }
	for _, tt := range []struct {
		name   string
		target Target
		cases  []Case
		runs   []bool
	}{
		{"until it is spent", Target{Budget: Spend{Requests: 2}}, []Case{{Spends: one}, {Spends: one}, {Spends: one}}, []bool{true, true, false}},
		{"a dear case leaves room", Target{Budget: Spend{Requests: 2}}, []Case{{Spends: Spend{Requests: 3}}, {Spends: one}}, []bool{false, true}},
		{"core first", Target{Budget: one}, []Case{{Spends: one}, {Spends: one, Core: true}}, []bool{false, true}},
		{"creations", Target{Budget: Spend{Requests: 9, Creations: 1}}, []Case{{Spends: Spend{1, 2, 0, 0, 0}}, {Spends: Spend{1, 1, 0, 0, 0}}}, []bool{false, true}},
		{"BYOK sets", Target{Budget: Spend{Requests: 9}}, []Case{{Spends: Spend{1, 0, 1, 0, 0}}}, []bool{false}},
		{"warm-ups", Target{Budget: Spend{Requests: 9}}, []Case{{Spends: Spend{1, 0, 0, 1, 0}}}, []bool{false}},
		{"no wait", Target{Budget: Spend{Requests: 9}}, []Case{{Spends: Spend{1, 0, 0, 0, time.Second}}}, []bool{false}},
		{"one agent for all", Target{Budget: Spend{Requests: 3, Creations: 1}}, []Case{{Spends: one, Needs: agent}, {Spends: one, Needs: agent}}, []bool{true, true}},
		{"no agent", Target{Budget: Spend{Requests: 3}}, []Case{{Spends: one, Needs: agent}}, []bool{false}},
		{"default", Target{}, []Case{{Spends: DefaultBudget}, {Spends: one}}, []bool{true, false}},
		{"fresh", Target{Fresh: fresh}, []Case{{Spends: Spend{Requests: 1e9}}}, []bool{true}},
		{"each fresh", Target{Fresh: fresh, Budget: one}, []Case{{Spends: one}, {Spends: one}, {Spends: Spend{Requests: 2}}}, []bool{true, true, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, p := range newPlan(tt.cases, tt.target) {
				assert.Equal(t, tt.runs[i], p.leftOut == "", "case %d: %s", i, p.leftOut)
			}
		})
	}
}

// A clock that can be moved makes waits free.
func TestPlanFreeWaits(t *testing.T) {
	target := Target{Budget: Spend{Requests: 1}, Abilities: Abilities{Advance: func(time.Duration) {}}}
	assert.Empty(t, newPlan([]Case{{Spends: Spend{Requests: 1, Wait: day}}}, target)[0].leftOut)
}

func TestPlanSays(t *testing.T) {
	p := newPlan([]Case{
		{Spends: Spend{Requests: 1}},
		{Spends: Spend{Requests: 41}},
		{Spends: Spend{Requests: 1, Wait: time.Hour}},
		{Spends: Spend{Requests: 1}, Needs: []Need{NeedIssueKey}},
	}, Target{})
	assert.Equal(t, "contract: 1 of 4 cases run; 2 left out: over the budget; 1 left out: the target lacks Abilities.IssueKey", p.String())
	assert.Equal(t, "it costs 41 requests, the budget has 39 requests, 5 creations, 1 BYOK set, 1 warm-up left", p[1].leftOut)
}

// What a live run with the default budget is there for.
func TestPlanOfDefaultBudget(t *testing.T) {
	runs := map[string]bool{}
	for _, p := range newPlan(Cases(), Target{}) {
		runs[p.ID] = p.leftOut == ""
		assert.False(t, runs[p.ID] && p.Decision(), p.ID)
	}
	for _, id := range []string{
		"4.1/shape", "4.2/body-absent", "4.4/set-read-clear", "4.6/empty-object", "2.3/every-member",
		"4.7/read", "4.8/reply", "4.9/response/sandbox", "2.3/no-other-member/top", "8.4/text/over", "8.4/all/max", "5/credential-missing/status",
	} {
		assert.True(t, runs[id], id)
	}
}

func TestRuleIsPrinted(t *testing.T) {
	assert.Equal(t, `interface 4.8: "Text."`, Case{ID: "4.8/x", Rule: "Text."}.String())
	assert.Regexp(t, regexp.MustCompile("^decided .*: x$"), Case{ID: "fake/x", Rule: "x"}.String())
}
