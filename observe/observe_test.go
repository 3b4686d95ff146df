package observe_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/stranger"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

var plenty = observe.Spend{Requests: 5000, Creations: 300, BYOKSets: 10, WarmUps: 10, Wait: time.Hour}

// observedFake is a fake as Run calls it, with its clock to move.
func observedFake(t testing.TB, opts ...fakeserver.Option) (observe.Target, *fakeserver.Server) {
	fake := fakeserver.New(quiet{t}, append(opts, fakeserver.WithUnknownRoutes())...)
	return observe.Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, HTTPClient: &http.Client{Transport: fake.Direct()},
	}, fake
}

// quiet keeps a fake from listing its calls when a test fails.
type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }

// wantAnswers ends the test at the first decision that differs: one cause
// changes many.
func wantAnswers(t testing.TB, want map[string]string, o *observe.Observation) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		found := o.Decisions[id]
		if !observe.SameJSON(json.RawMessage(want[id]), found.Answer) {
			t.Fatalf("decision %s: got %q (not asked: %q), want %q", id, found, found.NotAsked, want[id])
		}
	}
}

func jsonOf(t testing.TB, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// TestGoesOn: what a small budget left open, a later run asks, and it keeps what
// is there. A question that finds several answers is asked again where one of them
// is missing. A stored provider key is cleared only where the budget has a set.
func TestGoesOn(t *testing.T) {
	target, fake := observedFake(t)
	before := fake.StoreBYOK(fake.Key(), "k", fakeserver.BYOK{Provider: "openai"})
	o := observe.Observation{Format: 1, Decisions: map[string]observe.Finding{"windows": {Answer: json.RawMessage(`"kept"`)}}}
	require.NoError(t, o.Continue(t.Context(), target, observe.Spend{Requests: 20}))
	assert.Contains(t, o.Decisions["retry_after"].NotAsked, "needs a larger budget")
	require.NoError(t, o.Continue(t.Context(), target, observe.Spend{Requests: 300, Creations: 12, WarmUps: 4}))
	assert.Contains(t, o.Decisions["clear_nothing"].NotAsked, "needs a key without a stored provider key")
	after, _ := fake.BYOK(fake.Key())
	assert.Equal(t, before, after, "the stored provider key")
	require.NoError(t, o.Continue(t.Context(), target, plenty))
	want := observe.FakeAnswers()
	want["windows"] = `"kept"`
	wantAnswers(t, want, &o)
}

// TestPreviewOfLargerLimits: a minute of 100 calls takes more requests than one of
// 60 to fill, and Preview allows for it.
func TestPreviewOfLargerLimits(t *testing.T) {
	target, _ := observedFake(t, fakeserver.WithLimit(fakeserver.LimitKeyMinute, 100))
	o := observe.Observation{Decisions: map[string]observe.Finding{}}
	for id, answer := range observe.FakeAnswers() {
		o.Decisions[id] = observe.Finding{Answer: json.RawMessage(answer)}
	}
	delete(o.Decisions, "windows")
	most := o.Preview(target, observe.DefaultBudget())
	require.NoError(t, o.Continue(t.Context(), target, observe.DefaultBudget()))
	assert.Equal(t, `"fixed"`, o.Decisions["windows"].String())
	assert.Empty(t, o.Spent.Over(most), "spent beyond what Preview says")
}

// TestFindsOtherAnswers: of fakes that answer each second question otherwise no finding
// is wrong, and each other answer is found at least once.
func TestFindsOtherAnswers(t *testing.T) {
	found := map[string]bool{}
	decisions := fakeserver.New(t).Decisions()
	for run := range 6 {
		var opts []fakeserver.Option
		given := map[string]string{}
		for i, d := range decisions {
			if answers := otherAnswers(t, d); i%2 == run%2 {
				given[d.ID] = answers[run/2%len(answers)]
				opts = append(opts, fakeserver.WithDecision(d.ID, json.RawMessage(given[d.ID])))
			}
		}
		target, fake := observedFake(t, opts...)
		o, err := observe.Run(t.Context(), target, plenty)
		require.NoError(t, err)
		for _, d := range fake.Decisions() {
			if o.Decisions[d.ID].Known() {
				wantAnswers(t, map[string]string{d.ID: d.Answer}, o)
				found[d.ID+" "+given[d.ID]] = true
			}
		}
	}
	for _, d := range decisions {
		for _, answer := range otherAnswers(t, d) {
			assert.True(t, found[d.ID+" "+answer], "nobody finds %s %s", d.ID, answer)
		}
	}
}

// otherAnswers are other answers to a question than the fake's own. With windows
// that open bit by bit, other questions may stay open: TestStrangers has those.
func otherAnswers(t *testing.T, d fakeserver.Decision) []string {
	if strings.Contains(d.Possible, " or ") {
		all := strings.Split(strings.ReplaceAll(d.Possible, " or ", ", "), ", ")
		return slices.DeleteFunc(all, func(answer string) bool {
			return answer == d.Default || answer == `"weighted"` || answer == `"token bucket"`
		})
	}
	own := map[string]any{}
	switch {
	case d.ID == "metadata_cap":
		return []string{"100", "4095", "30001"}
	case json.Unmarshal([]byte(d.Default), &own) != nil:
		return []string{`"other_` + d.ID + `"`}
	}
	for name, v := range own {
		if truth, is := v.(bool); is {
			own[name] = !truth
		} else if own[name] = fmt.Sprint(v, "-2"); d.ID == "sms_status" {
			own[name] = "pending"
		}
	}
	return []string{string(jsonOf(t, own))}
}

// TestFile: the names of members in a file stay.
func TestFile(t *testing.T) {
	o := &observe.Observation{Format: 1, Decisions: map[string]observe.Finding{
		"windows": {Answer: json.RawMessage(`"fixed"`), AtLeast: 6, AtMost: 7, Seen: "2026-01-31", Count: 8, NotAsked: "needs a second key",
			Evidence: &observe.Evidence{Request: "GET /v1/status", Answer: "429"}},
	}, Traffic: map[string]observe.Sight{"GET /v1/status 200": {Count: 9, Seen: "2026-01-31"}},
		Spent: observe.Spend{Requests: 1, Creations: 2, BYOKSets: 3, WarmUps: 4, Wait: 5}}
	assert.JSONEq(t, `{"format":1,
		"decisions":{"windows":{"answer":"fixed","at_least":6,"at_most":7,"evidence":{"request":"GET /v1/status","answer":"429"},
			"seen":"2026-01-31","count":8,"not_asked":"needs a second key"}},
		"traffic":{"GET /v1/status 200":{"count":9,"seen":"2026-01-31"}},
		"spent":{"requests":1,"creations":2,"byok_sets":3,"warm_ups":4,"wait_ns":5}}`, string(jsonOf(t, o)))
	file := filepath.Join(t.TempDir(), "observed.json")
	require.NoError(t, o.WriteFile(file))
	again, err := observe.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, jsonOf(t, o), jsonOf(t, again))
	assert.Error(t, o.WriteFile(filepath.Join(file, "no folder")))
}

// TestQuestionsOfTheFake: Run asks what the fake decides, with the same words and
// answers, though neither package imports the other.
func TestQuestionsOfTheFake(t *testing.T) {
	page, answers := new(observe.Observation).Markdown(), observe.FakeAnswers()
	decisions := fakeserver.New(t).Decisions()
	assert.Len(t, answers, len(decisions))
	for _, d := range decisions {
		assert.Contains(t, page, fmt.Sprintf("\n- %s (`%s`): not asked yet\n", d.Question, d.ID))
		assert.JSONEq(t, answers[d.ID], d.Default, d.ID)
	}
}

// TestShowsNoSecret: whatever a target sends back.
func TestShowsNoSecret(t *testing.T) {
	target, fake := observedFake(t)
	target.HTTPClient = &http.Client{Transport: stranger.RoundTrip(func(req *http.Request) (*http.Response, error) {
		sent, err := io.ReadAll(req.Body)
		require.NoError(t, err)
		req.Body = io.NopCloser(bytes.NewReader(sent))
		answer := httptest.NewRecorder()
		fake.ServeHTTP(answer, req)
		var body map[string]any
		require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &body))
		for name, v := range body {
			if _, text := v.(string); text && name != "agent_id" && name != "status" {
				body[name] = fake.Key() + " Ada " + string(sent)
			}
		}
		if body["error"] != nil {
			body["error"], body["reason"] = fake.Key(), "Ada"
		}
		return stranger.Answering(answer.Code, string(jsonOf(t, body)))(req)
	})}
	o, err := observe.Run(t.Context(), target, plenty)
	require.NoError(t, err)
	w := observe.Watch(target.HTTPClient.Transport)
	for _, path := range []string{"/v1/status", "/v1/byok", "/v1/agents/nobody"} {
		ask(t, w, fake.Key(), "GET", path, "")
	}
	for _, text := range []string{string(jsonOf(t, o)), o.Markdown(), string(jsonOf(t, w.Observation()))} {
		for _, secret := range []string{fake.Key(), "Jw4", "Ada"} {
			assert.NotContains(t, text, secret)
		}
	}
}

// TestBadTargets: a target that lies, hangs, drips, answers HTML or refuses all
// ends the run within its budget, answers no question, and costs a baseline no
// answer. Where nothing documented comes back the run has an error.
func TestBadTargets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lies := []string{`{}`, `[]`, `{"agent_id":"../..","error":"x","byok":null,"limit_key":"` + strings.Repeat("l", 9999) + `"}`, `nul`, ""}
	baseline := &observe.Observation{Format: 1, Decisions: map[string]observe.Finding{}}
	for id, answer := range observe.FakeAnswers() {
		baseline.Decisions[id] = observe.Finding{Answer: json.RawMessage(answer), Seen: "2026-01-31"}
	}
	for name, transport := range map[string]stranger.RoundTrip{
		"500": stranger.Answering(500, `{"error":"internal"}`), "HTML": stranger.Answering(200, "<html>"), "HTML 404": stranger.Answering(404, "<html>"),
		"429 for ever": stranger.Answering(429, `{"error":"rate_limited"}`), "401 for ever": stranger.Answering(401, `{"error":"unauthorized"}`),
		"empty": stranger.Answering(200, ""), "another service": stranger.Answering(200, `{"agent_id":"a","status":"active","trace_id":"t","byok":null}`),
		"hangs": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"drips": func(req *http.Request) (*http.Response, error) {
			res, _ := stranger.Answering(200, "")(req)
			res.Body = dripping{req}
			return res, nil
		},
		"lies": func(req *http.Request) (*http.Response, error) {
			return stranger.Answering([]int{200, 400, 404, 429, 503}[random.IntN(5)], lies[random.IntN(len(lies))])(req)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				counted := stranger.RoundTrip(func(req *http.Request) (*http.Response, error) { calls++; return transport(req) })
				target := observe.Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: &http.Client{Transport: counted}}
				budget := observe.Spend{Requests: 46, Creations: 20, WarmUps: 8, Wait: 3 * time.Minute}
				started := time.Now()
				o, err := observe.Run(t.Context(), target, budget)
				assert.Empty(t, o.Spent.Over(budget), "spent beyond the budget")
				assert.LessOrEqual(t, calls, budget.Requests, "calls")
				assert.LessOrEqual(t, time.Since(started), 4*time.Minute, "of waiting")
				assert.Equal(t, name == "429 for ever", err == nil, "error %v", err)
				assert.Len(t, o.Decisions, len(baseline.Decisions))
				for id, found := range o.Decisions {
					assert.NotEqual(t, found.NotAsked == "", found.Answer == nil, "%s: either an answer or a reason why there is none", id)
					assert.True(t, found.Answer == nil || name == "lies", "%s is answered by no answer: %s", id, found)
				}
				assert.Len(t, o.Missing(baseline), len(baseline.Decisions)-o.Unchanged(baseline)-len(o.Drift(baseline)))
				o.Keep(baseline)
				for id := range baseline.Decisions {
					assert.NotNil(t, o.Decisions[id].Answer, "%s is lost", id)
				}
				assert.NotEmpty(t, o.Markdown(), "the page")
			})
		})
	}
}

// dripping is a body that sends a space each second.
type dripping struct{ req *http.Request }

func (d dripping) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Second):
		p[0] = ' '
		return 1, nil
	case <-d.req.Context().Done():
		return 0, d.req.Context().Err()
	}
}

func (dripping) Close() error { return nil }

var strangers = flag.Int("observe.strangers", 40, "how many services with random decisions to observe")

// wrongFindings describes the findings that the service did not decide.
func wrongFindings(t *testing.T, seed uint64, s *stranger.Service, o *observe.Observation) (wrong []string) {
	for id, found := range o.Decisions {
		n, isNumber := s.Decides[id].(int)
		right := observe.SameJSON(jsonOf(t, s.Decides[id]), found.Answer)
		if isNumber && found.Answer == nil {
			right = found.AtLeast <= n && (found.AtMost == 0 || n <= found.AtMost)
		}
		if found.Known() && !right {
			wrong = append(wrong, fmt.Sprintf("seed %d: %s is %s, found %s, seen in %v", seed, id, jsonOf(t, s.Decides[id]), found, found.Evidence))
		}
	}
	return wrong
}

// TestStrangers: whatever a service decides, each answer of Run is right, within
// the default budget and wait.
func TestStrangers(t *testing.T) {
	var wrong []string
	answers, unanswered := 0, map[string]int{}
	for seed := range uint64(*strangers) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 8))
			time.Sleep(time.Duration(random.IntN(100_000)) * time.Millisecond) // the clock's minute starts anywhere
			service := stranger.New(seed, "sk-one", "sk-two")
			target := observe.Target{BaseURL: "http://stranger.example", Key: "sk-one", HTTPClient: &http.Client{Transport: service.After(random, 40*time.Millisecond)}}
			budget := observe.DefaultBudget()
			if seed%2 == 1 {
				target.SecondKey = "sk-two"
			}
			if seed%4 > 1 {
				budget.BYOKSets = 3
			}
			most := new(observe.Observation).Preview(target, budget)
			o, err := observe.Run(t.Context(), target, budget)
			require.NoError(t, err)
			assert.Empty(t, o.Spent.Over(most), "seed %d spends beyond what Preview says", seed)
			for id, found := range o.Decisions {
				if strings.Contains(found.NotAsked, "of waiting") && !strings.Contains(found.NotAsked, " 23h") {
					wrong = append(wrong, fmt.Sprintf("seed %d: %s: %s", seed, id, found.NotAsked))
				}
				if !found.Known() {
					unanswered[id+": "+found.NotAsked]++
					continue
				}
				assert.NotEmpty(t, found.Evidence.Request+found.Evidence.Answer, "evidence of %s", id)
				answers++
			}
			wrong = append(wrong, wrongFindings(t, seed, service, o)...)
		})
	}
	assert.Empty(t, wrong)
	assert.Greater(t, answers, *strangers*25, "answers; not answered: %v", unanswered)
}

// base is the address that a fake takes from its Direct.
var base = new(fakeserver.Server).BaseURL()

// ask makes one call and returns the decoded answer, with the wait of Retry-After
// as its member wait.
func ask(t testing.TB, transport http.RoundTripper, key, method, path, body string) map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var answer map[string]any
	require.NoError(t, json.NewDecoder(res.Body).Decode(&answer))
	_, _ = io.Copy(io.Discard, res.Body)
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	answer["wait"] = time.Duration(seconds) * time.Second
	return answer
}

// use makes random calls, as a program with these keys would over some days. At
// times it reads an agent until a limit refuses that, and comes back when it may.
func use(t testing.TB, transport http.RoundTripper, random *rand.Rand, calls int, keys ...string) {
	agents := []string{"nobody"}
	for range calls {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second)))
		if random.IntN(400) == 0 {
			time.Sleep(time.Duration(2+random.IntN(120)) * time.Minute)
			refused := map[string]any{}
			for range 70 {
				if refused = ask(t, transport, keys[0], "GET", "/v1/agents/"+agents[len(agents)-1], ""); refused["limit_key"] != nil {
					break
				}
			}
			wait, _ := refused["wait"].(time.Duration)
			time.Sleep(wait)
			ask(t, transport, keys[0], "GET", "/v1/agents/"+agents[len(agents)-1], "")
		}
		key, agent := keys[random.IntN(len(keys))], agents[random.IntN(len(agents))]
		call := []struct{ method, path, body string }{
			{"GET", "/v1/status", ""}, {"GET", "/v1/byok", ""}, {"DELETE", "/v1/byok", ""}, {"POST", "/v1/warmup", ""},
			{"POST", "/v1/warmup", `{"mode":"byok"}`}, {"PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-secret"}`},
			{"POST", "/v1/agents", `{}`}, {"POST", "/v1/agents", `{"llm":{"mode":"byok"}}`}, {"POST", "/v1/agents", `{"x":1}`},
			{"POST", "/v1/agents", `{"llm":{"provider":"openai","api_key":"sk-secret"}}`},
			{"POST", "/v1/agents", `{"sms":{"mode":"managed"},"metadata":{"a":"` + strings.Repeat("x", random.IntN(5000)) + `"}}`},
			{"GET", "/v1/agents/" + agent, ""}, {"POST", "/v1/agents/" + agent + "/channels/sms", `{"mode":"sandbox"}`},
			{"POST", "/v1/agents/" + agent + "/messages", `{"text":"Ada Lovelace, 12 St James's Square"}`},
			{"POST", "/v1/agents/" + agent + "/messages", `{"text":7}`},
		}
		c := call[min(random.IntN(20), len(call)-1)]
		if id, created := ask(t, transport, key, c.method, c.path, c.body)["agent_id"].(string); created {
			agents = append(agents, id)
		}
	}
}

// TestWatchStrangers: a Watcher learns nothing wrong from random calls to services
// with random decisions, and Like accepts its answers.
func TestWatchStrangers(t *testing.T) {
	seen := map[string]bool{}
	var wrong []string
	for seed := range uint64(max(8, *strangers/5)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			service := stranger.New(seed, "sk-one", "sk-two")
			w := observe.Watch(service.After(random, 40*time.Millisecond))
			keys := []string{"sk-one", "sk-one", "sk-one", "sk-two"}
			use(t, w, random, 400**strangers/40, keys[:1+3*(seed%2)]...)
			o := w.Observation()
			wrong = append(wrong, wrongFindings(t, seed, service, o)...)
			fake := fakeserver.New(t, fakeserver.Like(jsonOf(t, o)))
			for _, d := range fake.Decisions() {
				found := o.Decisions[d.ID]
				if !found.Known() {
					continue
				}
				seen[d.ID] = true
				assert.True(t, found.Answer == nil || observe.SameJSON(found.Answer, []byte(d.Answer)), "seed %d: the fake answers %s with %s", seed, d.ID, d.Answer)
				assert.Positive(t, found.Count, d.ID)
				assert.NotEmpty(t, found.Seen, d.ID)
			}
			for _, secret := range []string{"sk-", "Ada", "ag~1", "ag%7E1"} {
				assert.NotContains(t, string(jsonOf(t, o)), secret)
			}
		})
	}
	assert.Empty(t, wrong)
	assert.Len(t, seen, 14, "questions that a Watcher answers: %v", seen)
}

// TestWatchLateCall: a call that goes through a second after Retry-After does not
// show that one exactly then would have.
func TestWatchLateCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := stranger.New(1, "sk-one")
		service.Decides["windows"], service.Decides["retry_after"] = "fixed", false // 2 s too short
		w := observe.Watch(service.After(rand.New(rand.NewPCG(1, 1)), 1))
		agent := "/v1/agents/" + ask(t, w, "sk-one", "POST", "/v1/agents", `{}`)["agent_id"].(string)
		for ask(t, w, "sk-one", "GET", agent, "")["error"] == nil {
		}
		time.Sleep(time.Second / 2) // of a second that Retry-After rounds up
		wait := ask(t, w, "sk-one", "GET", agent, "")["wait"].(time.Duration)
		time.Sleep(wait + 1600*time.Millisecond)
		require.NotNil(t, ask(t, w, "sk-one", "GET", agent, "")["created_at"])
		assert.NotContains(t, w.Observation().Decisions, "retry_after")
	})
}

// TestWatchChangesNothing: a call has the same outcome with a Watcher and without.
func TestWatchChangesNothing(t *testing.T) {
	for name, transport := range map[string]stranger.RoundTrip{
		"HTML": stranger.Answering(200, "<html>"), "empty": stranger.Answering(200, ""), "500": stranger.Answering(500, `{"error":"x"}`), "deep": stranger.Answering(200, strings.Repeat("[", 1e5)),
		"a lie": stranger.Answering(200, `{"agent_id":7,"created_at":[],"byok":"x","sms":[],"trace_id":null}`), "418": stranger.Answering(418, "{}"),
		"no body":  func(req *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"nothing":  func(req *http.Request) (*http.Response, error) { return nil, nil },
		"an error": func(req *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
	} {
		w := observe.Watch(transport)
		for _, path := range []string{"/v1/agents", "/v1/byok", "/v1/agents/a%2Fb/messages", "/v1/agents/a", "/other", "/v1/"} {
			for _, method := range []string{"GET", "POST", "DELETE", "PUT"} {
				read := func(t http.RoundTripper) string {
					req := httptest.NewRequest(method, "http://service.example"+path, strings.NewReader(`{"llm":{"mode":"byok","api_key":7}}`))
					res, err := t.RoundTrip(req)
					if res == nil || res.Body == nil {
						return fmt.Sprint(res, err)
					}
					text, _ := io.ReadAll(res.Body)
					return fmt.Sprint(res.StatusCode, string(text), err, res.Body.Close())
				}
				assert.Equal(t, read(transport), read(w), name)
			}
		}
		assert.Empty(t, w.Observation().Decisions, name)
	}
}

// BenchmarkWatch asks a fake over a socket without and with a Watcher. It may lengthen a
// call by 2 %, here of the shortest call that there is: the answer of a service
// elsewhere takes longer.
func BenchmarkWatch(b *testing.B) {
	fake := fakeserver.New(b)
	server := httptest.NewServer(fake)
	defer server.Close()
	for name, transport := range map[string]http.RoundTripper{"without": server.Client().Transport, "with": observe.Watch(server.Client().Transport)} {
		b.Run(name, func(b *testing.B) {
			client, err := agentmessaging.NewClient(server.URL, fake.Key(), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
			require.NoError(b, err)
			for b.Loop() {
				_, err := client.Status(b.Context())
				require.NoError(b, err)
			}
		})
	}
}
