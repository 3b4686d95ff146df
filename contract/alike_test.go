package contract_test

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// difference is a question that a service answers otherwise than the fake.
type difference struct {
	id, answer string
	breaks     bool // a rule of the interface too
}

// differences are dealt out to services that differ in five each. Other answers
// to the same question stand apart, so that none has two.
var differences = []difference{
	{id: "status", answer: `{"mode":"live","service":"agents","version":"2026-01"}`},
	{id: "error_names", answer: `{"not_found":"E404"}`},
	{id: "reason", answer: `false`},
	{id: "unknown_method", answer: `404`},
	{id: "path_before_key", answer: `false`},
	{id: "body_before_agent", answer: `false`},
	{id: "times", answer: `"unix seconds"`},
	{id: "unknown_members", answer: `true`},
	{id: "null_members", answer: `true`},
	{id: "duplicate_members", answer: `true`},
	{id: "other_case_members", answer: `true`},
	{id: "behind_body", answer: `true`},
	{id: "content_type", answer: `true`},
	{id: "length_unit", answer: `"UTF-16 units"`},
	{id: "metadata_cap", answer: `100`},
	{id: "agent_of_another_key", answer: `200`},
	{id: "clear_nothing", answer: `404`},
	{id: "sms_status", answer: `{"none":"disabled","sandbox":"pending","managed":"active","byo_twilio":"needs_setup"}`},
	{id: "creation_stores_key", answer: `false`},
	{id: "byok_cleared", answer: `200`},
	{id: "warmup_limit_name", answer: `"warm"`},
	{id: "minute_limit_name", answer: `"rpm"`},
	{id: "refused_operations_spend", answer: `true`},
	{id: "body_before_operation_limit", answer: `false`},
	{id: "windows", answer: `"sliding"`},
	{id: "retry_after", answer: `false`, breaks: true},
	{id: "several_limits", answer: `false`},
	{id: "limit_before_body", answer: `false`},
	{id: "other_limit_names", answer: `{"ip_minute":"address","key_day":"daily","agent_create_ip_minute":"creations","byok_set_key_hour":"sets"}`},
	{id: "permission_before_body", answer: `false`},
	{id: "limit_before_permission", answer: `false`},
	{id: "store_down_first", answer: `false`},
	{id: "refused_requests_spend", answer: `{"401":true,"404":false,"400":true,"409":false,"status":false}`},

	{id: "error_names", answer: `{"bad_request":"invalid","forbidden":"no_access","byok_unavailable":"down"}`},
	{id: "times", answer: `"unix milliseconds"`},
	{id: "length_unit", answer: `"bytes"`, breaks: true},
	{id: "metadata_cap", answer: `4095`},
	{id: "byok_cleared", answer: `404`},
	{id: "refused_requests_spend", answer: `{"401":false,"404":true,"400":false,"409":true,"status":true}`},

	{id: "times", answer: `"rfc3339 with an offset"`},
	{id: "metadata_cap", answer: `30001`},
}

func services() iter.Seq[[]difference] { return slices.Chunk(differences, 5) }

// like is the option of a service that differs so.
func like(t *testing.T, all ...difference) fakeserver.Option {
	o := contract.Observation{Format: 1, Decisions: map[string]contract.Finding{}}
	for _, d := range all {
		o.Decisions[d.id] = contract.Finding{Answer: json.RawMessage(d.answer)}
	}
	return fakeserver.Like(jsonOf(t, o))
}

// TestLikeObserved: nine services answer five questions otherwise. Observe
// finds each difference and nothing else.
func TestLikeObserved(t *testing.T) {
	own, _ := observedFake(t)
	if o, err := contract.Observe(t.Context(), own, plenty); err != nil || !maps.Equal(answers(o), contract.FakeAnswers()) {
		t.Skip("Observe does not find how the fake itself answers; TestObserveFake shows it")
	}
	for all := range services() {
		t.Run(all[0].id, func(t *testing.T) {
			t.Parallel()
			target, _ := observedFake(t, like(t, all...))
			found, err := contract.Observe(t.Context(), target, plenty)
			require.NoError(t, err)
			want := contract.FakeAnswers()
			for _, d := range all {
				want[d.id] = d.answer
			}
			wantAnswers(t, want, found)
		})
	}
}

// TestUnlikeServices: without Decisions the suite refuses a service that answers
// otherwise only where the answer breaks a rule of the interface too.
func TestUnlikeServices(t *testing.T) {
	for all := range services() {
		t.Run(all[0].id, func(t *testing.T) {
			t.Parallel()
			failure := firstFailure(t, false, func(*reply) {}, like(t, all...))
			breaks := slices.ContainsFunc(all, func(d difference) bool { return d.breaks })
			assert.Equal(t, breaks, failure != "", failure)
		})
	}
}

// TestQuestionsOfTheFake: contract asks what the fake decides, with the same
// words and answers, though neither imports the other.
func TestQuestionsOfTheFake(t *testing.T) {
	ofFake, defaults := map[string]string{}, map[string]string{}
	for _, d := range newFake(t).Decisions() {
		ofFake[d.ID], defaults[d.ID] = d.Question, d.Default
	}
	assert.Equal(t, ofFake, contract.Questions())
	for id, answer := range contract.FakeAnswers() {
		assert.JSONEq(t, answer, defaults[id], id)
	}
}
