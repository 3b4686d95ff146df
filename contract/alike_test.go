package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

var differences = []difference{
	{id: "status", answer: `{"mode":"live","service":"agents","version":"2026-01"}`},
	{id: "error_names", answer: `{"not_found":"E404"}`},
	{id: "error_names", answer: `{"bad_request":"invalid","forbidden":"no_access","byok_unavailable":"down"}`},
	{id: "reason", answer: `false`},
	{id: "unknown_method", answer: `404`},
	{id: "path_before_key", answer: `false`},
	{id: "body_before_agent", answer: `false`},
	{id: "times", answer: `"unix seconds"`},
	{id: "times", answer: `"unix milliseconds"`},
	{id: "times", answer: `"rfc3339 with an offset"`},
	{id: "unknown_members", answer: `true`},
	{id: "null_members", answer: `true`},
	{id: "duplicate_members", answer: `true`},
	{id: "other_case_members", answer: `true`},
	{id: "behind_body", answer: `true`},
	{id: "content_type", answer: `true`},
	{id: "length_unit", answer: `"UTF-16 units"`},
	{id: "length_unit", answer: `"bytes"`, breaks: true},
	{id: "metadata_cap", answer: `100`},
	{id: "metadata_cap", answer: `4095`},
	{id: "metadata_cap", answer: `30001`},
	{id: "agent_of_another_key", answer: `200`},
	{id: "clear_nothing", answer: `404`},
	{id: "sms_status", answer: `{"none":"disabled","sandbox":"pending","managed":"active","byo_twilio":"needs_setup"}`},
	{id: "creation_stores_key", answer: `false`},
	{id: "byok_cleared", answer: `200`},
	{id: "byok_cleared", answer: `404`},
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
	{id: "refused_requests_spend", answer: `{"401":false,"404":true,"400":false,"409":true,"status":true}`},
}

// like is the option of a service that differs so.
func like(t *testing.T, all ...difference) fakeserver.Option {
	o := contract.Observation{Format: 1, Decisions: map[string]contract.Finding{}}
	for _, d := range all {
		o.Decisions[d.id] = contract.Finding{Answer: json.RawMessage(d.answer)}
	}
	return fakeserver.Like(jsonOf(t, o))
}

// choose takes up to five differences in other questions each.
func choose(random *rand.Rand) []difference {
	chosen := map[string]difference{}
	for n := 1 + random.IntN(5); len(chosen) < n; {
		d := differences[random.IntN(len(differences))]
		chosen[d.id] = d
	}
	return slices.Collect(maps.Values(chosen))
}

// TestLikeObserved: forty services answer up to five questions otherwise.
// Observe finds each difference and nothing else, and a fake made like the
// finding answers 5,000 random calls as the service does, limits included.
func TestLikeObserved(t *testing.T) {
	own, _ := observedFake(t)
	if o, err := contract.Observe(t.Context(), own, plenty); err != nil || !maps.Equal(answers(o), contract.FakeAnswers()) {
		t.Skip("Observe does not find how the fake itself answers; TestObserveFake shows it")
	}
	random, calls := rand.New(rand.NewPCG(7, 11)), 5000
	if testing.Short() {
		calls = 500
	}
	for n := range 40 {
		all, seed := choose(random), random.Uint64()
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			target, _ := observedFake(t, like(t, all...))
			found, err := contract.Observe(t.Context(), target, plenty)
			require.NoError(t, err)
			want := contract.FakeAnswers()
			for _, d := range all {
				want[d.id] = d.answer
			}
			wantAnswers(t, want, found)
			unlike := firstUnlike(rand.New(rand.NewPCG(seed, 1)), calls, newTwin(t, like(t, all...)), newTwin(t, fakeserver.Like(jsonOf(t, found))))
			assert.Empty(t, unlike, "the service is %v", all)
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

// TestDifferentFakesAreNotAlike: the comparison sees each difference.
func TestDifferentFakesAreNotAlike(t *testing.T) {
	for i, d := range differences {
		unlike := firstUnlike(rand.New(rand.NewPCG(uint64(i), 1)), 5000, newTwin(t), newTwin(t, like(t, d)))
		assert.NotEmpty(t, unlike, "%s: %s", d.id, d.answer)
	}
}

// twin is one of two fakes that are given the same calls.
type twin struct {
	fake   *fakeserver.Server
	keys   []string
	agents int // created so far
}

func newTwin(t *testing.T, opts ...fakeserver.Option) *twin {
	still := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fake := newFake(t, append(opts, fakeserver.WithUnknownRoutes(), fakeserver.WithCallLimit(1),
		fakeserver.WithClock(func() time.Time { return still }))...)
	return &twin{fake: fake, keys: []string{
		fake.Key(), fake.Key(), fake.IssueKeyOn("preview", true), fake.IssueKeyOn("preview", false), fake.IssueKeyOn("free", true), "nobody", "",
	}}
}

// attempt is one random call.
type attempt struct {
	key, ip      int
	method, path string
	contentType  string
	body         string
	advance      time.Duration
	available    bool
}

// firstUnlike makes n random calls of both, and returns the first that they
// answer differently, or "".
func firstUnlike(random *rand.Rand, n int, first, second *twin) string {
	for i := range n {
		a := anAttempt(random, i/500, first.agents)
		if one, other := first.answer(a), second.answer(a); one != other {
			return fmt.Sprintf("call %d: %s %s %.100s\n%.300s\n%.300s", i, a.method, a.path, a.body, one, other)
		}
	}
	return ""
}

var secretive = regexp.MustCompile(`"fingerprint":"[^"]*"`) // keyed by a secret of each fake

func (w *twin) answer(a attempt) string {
	w.fake.Advance(a.advance)
	if a.method == http.MethodPut || a.method == http.MethodPost {
		w.fake.SetBYOKAvailable(a.available)
	}
	req, err := http.NewRequest(a.method, w.fake.BaseURL()+a.path, strings.NewReader(a.body))
	if err != nil {
		panic(err)
	}
	req.RemoteAddr = []string{"203.0.113.7:1", "203.0.113.8:1"}[a.ip]
	if key := w.keys[a.key]; key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	req.Header.Set("Content-Type", a.contentType)
	res := httptest.NewRecorder()
	w.fake.ServeHTTP(res, req)
	if res.Code == http.StatusOK && a.method+a.path == "POST/v1/agents" {
		w.agents++
	}
	body := res.Body.String()
	if strings.HasSuffix(a.path, "/byok") {
		body = secretive.ReplaceAllString(body, "")
	}
	return fmt.Sprint(res.Code, res.Header()["Retry-After"], body)
}

// bodies are what calls send, right and wrong.
var bodies = map[string][]string{
	"POST /v1/warmup": {"", `{}`, `{"mode":"byok"}`, `{"mode":"byok"}`, `{"mode":"turbo"}`, `{"mode":null}`, `{"Mode":"hosted"}`},
	"PUT /v1/byok": {
		`{"provider":"openai","api_key":"k"}`, `{"provider":"anthropic","api_key":"k","model":"m"}`, `{}`, `{"provider":"openai","api_key":"k","label":null}`,
		`{"provider":"openai","api_key":"k"} x`, `{"provider":"openai","provider":"openai","api_key":"k"}`, `{"provider":"openai","api_key":"k","Label":"l"}`,
	},
	"POST /v1/agents": {
		`{}`, `{}`, `{"llm":{"mode":"byok"}}`, `{"llm":{"mode":"byok"}}`, `{"llm":{"provider":"openai","api_key":"k"}}`, `{"x":1}`,
		`{"sms":{"mode":"none"}}`, `{"sms":{"mode":"sandbox"}}`, `{"sms":{"mode":"managed"}}`, `{"sms":{"mode":"byo_twilio"}}`,
		`{"llm":null}`, `{"customer_ref":null}`, `{"Customer_Ref":"a"}`, `{"customer_ref":"a","customer_ref":"a"}`, `{} {}`,
		`{"customer_ref":"` + strings.Repeat("é", 200) + `"}`, `{"customer_ref":"` + strings.Repeat("😀", 150) + `"}`, `{"customer_ref":"` + strings.Repeat("x", 201) + `"}`,
	},
	"POST /v1/agents sized": {sized(100), sized(101), sized(4095), sized(4096), sized(4097), sized(30001), sized(30002)},
	"POST /v1/agents/{}/messages": {
		`{"text":"Hello"}`, `{"text":"Hello"}`, `{}`, `{"text":"Hello","mood":"good"}`, `{"text":"Hello","user_ref":null}`, `{"text":null}`,
		`{"text":"Hello","text":"Bye"}`, `{"Text":"Hello"}`, `{"text":"Hello"} x`, `{"text":"` + strings.Repeat("é", 4000) + `"}`,
	},
	"POST /v1/agents/{}/channels/sms": {`{"mode":"sandbox"}`, `{"mode":"managed"}`, `{"mode":"byo_twilio"}`, `{"mode":"none"}`, `{"mode":"sandbox","x":1}`},
	"GET /v1/status":                  {""}, "GET /v1/byok": {""}, "DELETE /v1/byok": {""}, "GET /v1/agents/{}": {""}, "PATCH /v1/agents": {""}, "GET /v1/nothing": {""},
}

func sized(n int) string { return `{"metadata":{"a":"` + strings.Repeat("x", n-8) + `"}}` }

// often are the calls, those more than once that limits count.
var often = []string{
	"GET /v1/status", "POST /v1/warmup", "POST /v1/warmup", "GET /v1/byok", "PUT /v1/byok", "DELETE /v1/byok", "POST /v1/agents", "POST /v1/agents",
	"GET /v1/agents/{}", "GET /v1/agents/{}", "POST /v1/agents/{}/messages", "POST /v1/agents/{}/messages", "POST /v1/agents/{}/channels/sms",
	"PATCH /v1/agents", "GET /v1/nothing",
}

func anAttempt(random *rand.Rand, phase, agents int) attempt {
	call := often[random.IntN(len(often))]
	a := attempt{key: random.IntN(7), ip: random.IntN(2), contentType: "application/json", available: random.IntN(20) > 0}
	if random.IntN(3) > 0 {
		a.key = []int{0, 0, 3, 2}[phase%4] // so that its limits are met
	}
	a.method, a.path, _ = strings.Cut(call, " ")
	a.path = strings.ReplaceAll(a.path, "{}", fmt.Sprintf("agent_%06d", agents-random.IntN(8)))
	if call == "POST /v1/agents" && random.IntN(8) == 0 {
		call += " sized"
	}
	a.body = bodies[call][random.IntN(len(bodies[call]))]
	switch random.IntN(120) {
	case 0:
		a.advance = time.Duration(random.IntN(120)) * time.Second
	case 1:
		a.advance = time.Duration(random.IntN(24)) * time.Hour
	case 2:
		a.contentType = "text/plain"
	default:
		a.advance = time.Duration(random.IntN(500)) * time.Millisecond
	}
	return a
}
