package contract_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

var plenty = contract.Spend{Requests: 5000, Creations: 300, BYOKSets: 10, WarmUps: 4}

// observedFake is a fake as Observe calls it, with its clock to move.
func observedFake(t testing.TB, opts ...fakeserver.Option) (contract.Target, *fakeserver.Server) {
	fake := newFake(t, append(opts, fakeserver.WithUnknownRoutes())...)
	return directly(fake), fake
}

// wantAnswers ends the test at the first decision that differs: one cause
// changes many.
func wantAnswers(t *testing.T, want map[string]string, o *contract.Observation) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		found := o.Decisions[id]
		if !contract.SameJSON(json.RawMessage(want[id]), found.Answer) {
			t.Fatalf("decision %s: got %q (not asked: %q), want %q", id, found.Answer, found.NotAsked, want[id])
		}
	}
}

// TestObserveWithKeysAlone: with an address and one key or two Observe waits in
// real time, stays within the default budget, and sets no provider key.
func TestObserveWithKeysAlone(t *testing.T) {
	for name, found := range map[string]int{"": 26, "second": 27} {
		synctest.Test(t, func(t *testing.T) {
			target, fake := observedFake(t, fakeserver.WithCallLimit(10_000))
			target.Abilities = nil
			if name != "" {
				target.SecondKey = fake.IssueKeyOn("preview", true)
			}
			most := new(contract.Observation).Preview(target, contract.Spend{})
			o, err := contract.Observe(t.Context(), target, contract.Spend{})
			require.NoError(t, err)
			want := contract.FakeAnswers()
			maps.DeleteFunc(want, func(id, _ string) bool { return o.Decisions[id].Answer == nil })
			wantAnswers(t, want, o)
			assert.Len(t, want, found, "questions answered with %q", name)
			assert.Equal(t, name != "", o.Decisions["agent_of_another_key"].NotAsked != "needs a second key", "agent_of_another_key asked, with %q", name)
			assert.Equal(t, name != "", strings.Contains(string(o.Decisions["refused_requests_spend"].Answer), `"401":false`), "a call without a key asked for, with %q", name)
			assert.Contains(t, o.Decisions["byok_cleared"].NotAsked, "needs a larger budget: 1 BYOK set of 0 left")
			assert.Empty(t, contract.Over(o.Spent, most), "spent beyond what Preview says")
			_, set := fake.BYOK(fake.Key())
			assert.False(t, set, "a provider key is stored")
			assert.Less(t, fake.CallCount(), 500, "calls")
			assert.Less(t, len(fake.Agents()), 25, "agents")
		})
	}
}

// TestObserveGoesOn: what a small budget left open, a later run asks, and it
// keeps what is there. A question that finds several answers is asked again
// where one of them is missing. A stored provider key is cleared where the budget
// has a set, and else is there afterwards.
func TestObserveGoesOn(t *testing.T) {
	target, fake := observedFake(t)
	before := fake.StoreBYOK(fake.Key(), "k", fakeserver.BYOK{Provider: "openai"})
	o := contract.Observation{Format: 1, Decisions: map[string]contract.Finding{"windows": {Answer: json.RawMessage(`"kept"`)}}}
	require.NoError(t, o.Continue(t.Context(), target, contract.Spend{Requests: 20}))
	assert.Contains(t, o.Decisions["retry_after"].NotAsked, "needs a larger budget")
	require.NoError(t, o.Continue(t.Context(), target, contract.Spend{Requests: 300, Creations: 12, WarmUps: 4}))
	assert.Contains(t, o.Decisions["clear_nothing"].NotAsked, "needs a key without a stored provider key")
	after, _ := fake.BYOK(fake.Key())
	assert.Equal(t, before, after, "the stored provider key")
	for range 12 {
		require.NoError(t, o.Continue(t.Context(), target, contract.Spend{Requests: 300, Creations: 12, BYOKSets: 1, WarmUps: 4}))
		file := jsonOf(t, o)
		o = contract.Observation{}
		require.NoError(t, json.Unmarshal(file, &o))
	}
	require.NoError(t, o.Continue(t.Context(), target, plenty))
	want := contract.FakeAnswers()
	want["windows"] = `"kept"`
	wantAnswers(t, want, &o)
}

// TestObserveWaitsWithinBudget: what needs a longer wait is not asked.
func TestObserveWaitsWithinBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target, _ := observedFake(t, fakeserver.WithDecision("metadata_cap", 30001)) // more creations than a minute has
		target.Abilities = nil
		started := time.Now()
		o, err := contract.Observe(t.Context(), target, contract.Spend{Requests: 490, Creations: 40, WarmUps: 4, Wait: 30 * time.Second})
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(started), 30*time.Second, "of waiting")
		assert.Equal(t, "needs 1m0s of waiting, of 30s that are left", o.Decisions["metadata_cap"].NotAsked)
		assert.Contains(t, o.Decisions["windows"].NotAsked, "needs a larger budget: 2m30s of waiting of ")
	})
}

func jsonOf(t *testing.T, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// TestObserveOfABucket: it fills while it is asked, so the count says nothing.
func TestObserveOfABucket(t *testing.T) {
	target, fake := observedFake(t)
	target.HTTPClient = &http.Client{Transport: proxy{fake, "192.0.2.1", retryAfter(func(int) string { return "1" })}}
	o, err := contract.Observe(t.Context(), target, plenty)
	require.NoError(t, err)
	assert.Contains(t, o.Decisions["refused_requests_spend"].NotAsked, "the limit opens bit by bit")
}

// TestObserveFindsEachAnswer: a fake that answers one question otherwise is
// found to do so, and to answer all others as the fake does. The dearest question
// is asked for its own answer only.
func TestObserveFindsEachAnswer(t *testing.T) {
	for _, d := range newFake(t).Decisions() {
		for _, answer := range others(t, d) {
			passed := t.Run(d.ID+" "+answer, func(t *testing.T) {
				target, fake := observedFake(t, like(t, map[string]string{d.ID: answer}))
				want := map[string]string{}
				for _, d := range fake.Decisions() {
					want[d.ID] = d.Answer
				}
				assert.JSONEq(t, answer, want[d.ID])
				budget := plenty
				if d.ID != "other_limit_names" {
					budget.Creations = 60
					delete(want, "other_limit_names")
				}
				o, err := contract.Observe(t.Context(), target, budget)
				require.NoError(t, err)
				if d.ID == "unknown_method" {
					delete(want, "error_names") // method_not_allowed cannot be seen
				}
				wantAnswers(t, want, o)
			})
			if !passed {
				return // the others fail of the same
			}
		}
	}
}

// TestObserveFile: the names of members in a file stay.
func TestObserveFile(t *testing.T) {
	assert.JSONEq(t, `{"format":1,
		"decisions":{"windows":{"answer":"fixed","evidence":{"request":"GET /v1/status","answer":"429"},"not_asked":"needs a second key"}},
		"spent":{"requests":1,"creations":2,"byok_sets":3,"warm_ups":4,"wait_ns":5}}`,
		string(jsonOf(t, contract.Observation{Format: 1, Decisions: map[string]contract.Finding{
			"windows": {json.RawMessage(`"fixed"`), &contract.Evidence{Request: "GET /v1/status", Answer: "429"}, "needs a second key"},
		}, Spent: contract.Spend{Requests: 1, Creations: 2, BYOKSets: 3, WarmUps: 4, Wait: 5}})))
}

// TestObserveDrift: each answer has its evidence, and where a service has
// changed the page and the list of changes tell it in words.
func TestObserveDrift(t *testing.T) {
	before, _ := observedFake(t)
	after, _ := observedFake(t, fakeserver.WithDecision("metadata_cap", 8000), fakeserver.WithDecision("windows", "sliding"))
	then, err := contract.Observe(t.Context(), before, plenty)
	require.NoError(t, err)
	for id, found := range then.Decisions {
		require.NotNil(t, found.Evidence, id)
		assert.NotEmpty(t, found.Evidence.Request, id)
		assert.NotEmpty(t, found.Evidence.Answer, id)
	}
	now, err := contract.Observe(t.Context(), after, plenty)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"metadata_cap: How many characters of compact JSON may metadata have? It was 4096, it is 8000.",
		`windows: Is the window of a limit fixed, or does it slide? It was "fixed", it is "sliding".`,
	}, now.Drift(then))
	assert.Contains(t, now.Markdown(), "| `4096` | `8000` **differs** |")
	assert.Contains(t, now.Markdown(), "2 otherwise than the fake")
}
