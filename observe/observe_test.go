package observe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/otherservice"
	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// The tests run for a short time, and spent a fifth of it on collecting garbage.
func init() { debug.SetGCPercent(400) }

// plenty needs no Wait: the targets have Abilities.
var plenty = observe.Spend{Requests: 5000, Creations: 300, BYOKSets: 10, WarmUps: 10}

// observedFake returns a fake as Run calls it, with its clock to move.
func observedFake(t testing.TB, opts ...fakeserver.Option) (observe.Target, *fakeserver.Server) {
	fake := fakeserver.New(t, append(opts, fakeserver.WithUnknownRoutes())...)
	return observe.Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, HTTPClient: &http.Client{Transport: fake.Direct()},
	}, fake
}

// changed returns a client of the fake. change changes each answer, and returns its new body.
func changed(fake *fakeserver.Server, change func(res *http.Response, body string) string) *http.Client {
	return &http.Client{Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		res, err := fake.Direct().RoundTrip(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(res.Body)
		res.Body = io.NopCloser(strings.NewReader(change(res, string(body))))
		return res, err
	})}
}

// decided returns the observation of a service with this answer to a question.
func decided(answers map[string]any) *observe.Observation {
	o := &observe.Observation{Format: 1, Decisions: map[string]observe.Finding{}}
	for id, answer := range answers {
		o.Decisions[id] = observe.Finding{Answer: rawcall.JSONOf(answer), Seen: "2026-01-31"}
	}
	return o
}

// asTheFake returns the observation of a service that decides like the fake.
func asTheFake() *observe.Observation {
	answers := map[string]any{}
	for _, q := range decisions.Asked {
		answers[q.ID] = q.Default
	}
	return decided(answers)
}

// calling returns a function that makes calls through a transport, with two keys.
func calling(t testing.TB, transport http.RoundTripper, key, another string) func(rawcall.Call) rawcall.Exchange {
	caller := rawcall.NewCaller(new(fakeserver.Server).BaseURL(), &http.Client{Transport: transport}, key, another, nil)
	return func(c rawcall.Call) rawcall.Exchange {
		t.Helper()
		x, err := caller.Do(t.Context(), c)
		require.NoError(t, err)
		return x
	}
}

// TestContinueAsksTheRest: a later run asks what a small budget left open, and keeps
// earlier answers. A question that finds several answers is asked again if one of them is
// missing. A stored provider key is cleared only if the budget has a BYOK set.
func TestContinueAsksTheRest(t *testing.T) {
	target, fake := observedFake(t)
	before := fake.StoreBYOK(fake.Key(), "k", fakeserver.BYOK{Provider: "openai"})
	o := observe.Observation{Format: 1, Decisions: map[string]observe.Finding{"windows": {Answer: json.RawMessage(`"kept"`)}}}
	assert.ErrorContains(t, o.Continue(t.Context(), observe.Target{BaseURL: target.BaseURL}, plenty), "Target.Key")
	assert.ErrorContains(t, o.Continue(t.Context(), observe.Target{BaseURL: target.BaseURL + "/v1/", Key: target.Key}, plenty), "without /v1")
	assert.Zero(t, o.Spent, "without a key, or at a wrong address")
	require.NoError(t, o.Continue(t.Context(), target, observe.Spend{Requests: 20}))
	assert.Contains(t, o.Decisions["retry_after"].NotAsked, "needs a larger budget")
	require.NoError(t, o.Continue(t.Context(), target, observe.Spend{Requests: 300, Creations: 12, WarmUps: 4}))
	assert.Contains(t, o.Decisions["clear_nothing"].NotAsked, "needs a key without a stored provider key")
	after, _ := fake.BYOK(fake.Key())
	assert.Equal(t, before, after, "the stored provider key")
	require.NoError(t, o.Continue(t.Context(), target, plenty))
	want := asTheFake()
	want.Decisions["windows"] = observe.Finding{Answer: json.RawMessage(`"kept"`)}
	assert.Equal(t, len(want.Decisions), o.Unchanged(want), o.Drift(want))
	assert.Contains(t, o.Markdown(), "\n30 of 30 questions answered, 1 otherwise ")
	assert.Contains(t, o.Markdown(), "\n| How does a limit count calls? | `\"fixed\"` | `\"kept\"` **differs** |")
}

// TestFindsOtherAnswers: about fakes that decide like other services, no finding is wrong, and
// each question gets different answers. These fakes write null for optional members that have
// no value.
func TestFindsOtherAnswers(t *testing.T) {
	found := map[string][]string{}
	nulls := strings.NewReplacer(`{"agent_id"`, `{"sms":null,"agent_id"`, `{"reply_text"`, `{"warnings":null,"reply_text"`)
	for seed := range uint64(7) {
		synctest.Test(t, func(t *testing.T) {
			decides := otherservice.New(seed).Decides
			var opts []fakeserver.Option
			for id, answer := range decides {
				opts = append(opts, fakeserver.WithDecision(id, answer))
			}
			target, fake := observedFake(t, opts...)
			target.HTTPClient = changed(fake, func(_ *http.Response, body string) string { return nulls.Replace(body) })
			o, err := observe.Run(t.Context(), target, plenty)
			require.NoError(t, err, "seed %d", seed)
			assert.Empty(t, o.Drift(decided(decides)), "seed %d", seed)
			for id, f := range o.Decisions {
				if answer := string(f.Answer); answer != "" && !slices.Contains(found[id], answer) {
					found[id] = append(found[id], answer)
				}
			}
		})
	}
	for id := range asTheFake().Decisions {
		assert.Greater(t, len(found[id]), 1, "answers to %s", id)
	}
	assert.Contains(t, strings.Join(found["refused_requests_spend"], " "), `"409"`)
	assert.Contains(t, strings.Join(found["error_names"], " "), `"byok_not_configured":`)
}

// TestFileFormat: the names of members in a file must not change, and ReadFile returns what
// WriteFile wrote.
func TestFileFormat(t *testing.T) {
	o := &observe.Observation{Format: 1, Decisions: map[string]observe.Finding{
		"windows": {Answer: json.RawMessage(`"fixed"`), AtLeast: 6, AtMost: 7, Seen: "2026-01-31", Count: 8, NotAsked: "needs a second key",
			Evidence: &observe.Evidence{Request: "GET /v1/status", Answer: "429"}},
	}, Limits: map[string]int{"key_minute": 60}, Traffic: map[string]observe.Sight{"GET /v1/status 200": {Count: 9, Seen: "2026-01-31"}},
		Spent: observe.Spend{Requests: 1, Creations: 2, BYOKSets: 3, WarmUps: 4, Wait: 7 * time.Minute}}
	assert.JSONEq(t, `{"format":1,
		"decisions":{"windows":{"answer":"fixed","at_least":6,"at_most":7,"evidence":{"request":"GET /v1/status","answer":"429"},
			"seen":"2026-01-31","count":8,"not_asked":"needs a second key"}},
		"limits":{"key_minute":60},"traffic":{"GET /v1/status 200":{"count":9,"seen":"2026-01-31"}},
		"spent":{"requests":1,"creations":2,"byok_sets":3,"warm_ups":4,"wait_ns":420000000000}}`, string(rawcall.JSONOf(o)))
	file := filepath.Join(t.TempDir(), "observed.json")
	require.NoError(t, o.WriteFile(file))
	again, err := observe.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, rawcall.JSONOf(o), rawcall.JSONOf(again))
	assert.Error(t, o.WriteFile(filepath.Join(file, "no folder")))
}

// TestSpendInWords: String names each kind of call that was spent, Over each kind of which there is
// too little left.
func TestSpendInWords(t *testing.T) {
	spent := observe.Spend{Requests: 1, Creations: 2, BYOKSets: 3, WarmUps: 4, Wait: 7*time.Minute - 5}
	assert.Equal(t, "1 request, 2 creations, 3 BYOK sets, 4 warm-ups, 7m0s of waiting", spent.String())
	assert.Equal(t, "1 request, 4 warm-ups", spent.Over(observe.Spend{Creations: 2, BYOKSets: 3, WarmUps: 3, Wait: 7 * time.Minute}))
}

// TestPreview: Preview adds up what the open questions cost. It includes all requests of the
// budget if one of the questions uses up a limit, and all waiting, because any call may meet one.
func TestPreview(t *testing.T) {
	budget := observe.Spend{Requests: 999, Creations: 99, WarmUps: 9, Wait: math.MaxInt64}
	allButTimes := asTheFake()
	delete(allButTimes.Decisions, "times")
	assert.Equal(t, observe.Spend{Requests: 2, Creations: 1, Wait: budget.Wait}, allButTimes.Preview(observe.Target{}, budget), "a read and the creation of its agent")
	assert.Equal(t, budget.Requests, new(observe.Observation).Preview(observe.Target{}, budget).Requests, "everything is open")
}

// TestKeepAddsUp: Keep adds what an earlier run saw and spent. A limit that was measured again
// stays as it is, and Drift tells that it differs.
func TestKeepAddsUp(t *testing.T) {
	run := func(limits map[string]int, day string, n int) *observe.Observation {
		return &observe.Observation{Format: 1, Decisions: map[string]observe.Finding{}, Limits: limits, Traffic: map[string]observe.Sight{"GET /v1/status 200": {Count: n, Seen: day}},
			Spent: observe.Spend{Requests: n, Creations: n, BYOKSets: n, WarmUps: n, Wait: time.Duration(n)}}
	}
	o, earlier := run(map[string]int{"key_minute": 50}, "2026-02-01", 4), run(map[string]int{"key_minute": 60, "ip_minute": 300}, "2026-01-31", 9)
	assert.Equal(t, []string{"key_minute: How many requests may a key make in a minute? It was 60, it is 50."}, o.Drift(earlier))
	o.Keep(earlier)
	assert.Equal(t, run(map[string]int{"key_minute": 50, "ip_minute": 300}, "2026-02-01", 4+9), o)
}

// TestKeep: an answer stays until another is seen. A bound that agrees with it does not
// replace it.
func TestKeep(t *testing.T) {
	answer := func(text string) observe.Finding { return observe.Finding{Answer: json.RawMessage(text)} }
	for _, tt := range []struct {
		earlier, later observe.Finding
		want           string
	}{
		{answer("4096"), answer("5000"), "5000"},
		{answer("4096"), observe.Finding{}, "4096"},
		{answer("4096"), observe.Finding{AtLeast: 3000}, "4096"},
		{answer("4096"), observe.Finding{AtLeast: 5000}, "at least 5000"},
		{observe.Finding{AtLeast: 3, AtMost: 5}, observe.Finding{}, "3 to 5"},
		{observe.Finding{AtMost: 5}, observe.Finding{}, "at most 5"},
		{answer(`{"a":1,"b":2}`), answer(`{"b":3,"c":4}`), `{"a":1,"b":3,"c":4}`},
	} {
		o := &observe.Observation{Decisions: map[string]observe.Finding{"metadata_cap": tt.later}}
		o.Keep(&observe.Observation{Decisions: map[string]observe.Finding{"metadata_cap": tt.earlier}})
		o.Keep(nil)
		assert.Equal(t, tt.want, o.Decisions["metadata_cap"].String(), tt.earlier)
		assert.Empty(t, slices.Concat(o.Drift(nil), o.Missing(nil)), tt.earlier)
	}
}

// TestShowsNoSecret: an observation shows no key, whatever a target sends back.
func TestShowsNoSecret(t *testing.T) {
	target, fake := observedFake(t)
	part := strings.ToUpper(fake.Key())[3:]
	texts := regexp.MustCompile(`"(error|limit_key|reason|reply_text|created_at|updated_at|service|version|mode|trace_id)":"([^"\\]|\\.)*"`)
	target.HTTPClient = changed(fake, func(_ *http.Response, body string) string {
		body = texts.ReplaceAllString(body, `"$1":"`+fake.Key()+` Ada Jw4"`)
		body = strings.ReplaceAll(body, `"limit_key":"`+fake.Key()+` Ada Jw4"`, `"limit_key":"`+part+`"`)
		return strings.ReplaceAll(body, `"error":"`+fake.Key(), `"error":"by`)
	})
	o, err := observe.Run(t.Context(), target, plenty)
	require.NoError(t, err)
	assert.Contains(t, o.Decisions["error_names"].NotAsked, "its value is not an identifier")
	for _, text := range []string{string(rawcall.JSONOf(o)), o.Markdown()} {
		for _, secret := range []string{fake.Key(), part, "Jw4", "Ada"} {
			assert.NotContains(t, text, secret, secret)
		}
	}
}

// TestWatchShowsNoSecret: if an answer repeats a key of the call, in any form and place, a
// Watcher keeps only its status.
func TestWatchShowsNoSecret(t *testing.T) {
	for _, tt := range []struct{ scheme, header, answer string }{
		{"Bearer ", "X-A", `{"error":"the canary of Ada"}`}, {"Bearer ", "X-A", `{"error":"\u0053vc-canary"}`}, {"bearer ", "X-A", `{"error":"Svc-canary"}`},
		{"Bearer  ", "X-A", `{"error":"Svc-canary"}`}, {"Bearer ", "X-Svc-Canary", `{"error":"x"}`},
		{"Bearer ", "X-A", `{"error":"sk-canary"}`}, {"Bearer ", "X-A", `{"error":"x","sk-canary":1}`},
		{"Bearer ", "X-A", `{"error":"vccanary"}`},
	} {
		w := observe.Watch(roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, req.Body)
			return &http.Response{StatusCode: 400, Header: http.Header{tt.header: {"1"}}, Body: io.NopCloser(strings.NewReader(tt.answer))}, nil
		}))
		for _, c := range []rawcall.Call{rawcall.SetBYOK.With(`{"api_key":"sk-canary"}`), rawcall.CreateAgent.With(`{"llm":{"api_key":"sk-canary"}}`)} {
			calling(t, w, "Svc-canary", "")(c.WithHeader("Authorization", func(key string) string { return tt.scheme + key }))
		}
		assert.NotContains(t, strings.ToLower(string(rawcall.JSONOf(w.Observation()))), "canary", tt)
		assert.Contains(t, w.Observation().Traffic, "PUT /v1/byok 400", tt)
	}
}

// badTargets give undocumented answers, or wrong ones.
var badTargets = map[string]roundtrip.Func{
	"500": roundtrip.Answering(500, `{"error":"internal"}`), "HTML": roundtrip.Answering(200, "<html>"), "HTML 404": roundtrip.Answering(404, "<html>"),
	"429 forever": roundtrip.Answering(429, `{"error":"rate_limited"}`), "401 forever": roundtrip.Answering(401, `{"error":"unauthorized"}`),
	"empty": roundtrip.Answering(200, ""), "another service": roundtrip.Answering(200, `{"agent_id":"a","status":"active","trace_id":"t","byok":null}`),
	"refused": func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	},
	"hangs": func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	},
	"lies": lying(rand.New(rand.NewPCG(1, 2))),
}

func lying(random *rand.Rand) roundtrip.Func {
	lies := []string{`{}`, `[]`, `{"agent_id":"../..","error":"x","byok":null,"limit_key":"` + strings.Repeat("l", 9999) + `"}`, `nul`, ""}
	return func(req *http.Request) (*http.Response, error) {
		return roundtrip.Answering([]int{200, 400, 404, 429, 503}[random.IntN(5)], lies[random.IntN(len(lies))])(req)
	}
}

// TestBadTargets: if a target lies, hangs, answers HTML or refuses everything, the run ends
// within its budget, answers no question, and takes no answer from a baseline. If no documented
// answer comes back, the run returns an error.
func TestBadTargets(t *testing.T) {
	baseline := asTheFake()
	for name, transport := range badTargets {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				counted := roundtrip.Func(func(req *http.Request) (*http.Response, error) {
					calls++
					assert.True(t, req.Method != http.MethodGet || req.Body != http.NoBody && req.GetBody == nil, "net/http would repeat the call")
					return transport(req)
				})
				target := observe.Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: &http.Client{Transport: counted}}
				budget := observe.Spend{Requests: 46, Creations: 20, WarmUps: 8, Wait: 3 * time.Minute}
				started := time.Now()
				o, err := observe.Run(t.Context(), target, budget)
				assert.Empty(t, o.Spent.Over(budget), "spent beyond the budget")
				assert.LessOrEqual(t, calls, budget.Requests, "calls")
				assert.LessOrEqual(t, time.Since(started), 4*time.Minute, "of waiting")
				assert.Equal(t, name == "429 forever", err == nil, "error %v", err)
				if name == "HTML" || name == "hangs" {
					assert.Equal(t, 3, calls, "calls in a row without a documented answer")
					assert.ErrorContains(t, err, "no documented answer, the last one ")
				}
				if name == "refused" {
					assert.ErrorContains(t, err, "the last one no answer: dial tcp: connection refused; check the address")
					assert.Equal(t, 3, strings.Count(o.Markdown(), "\n- "), "questions in the page")
				}
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
			})
		})
	}
}

// TestRetryAfter: no form of the header makes an answer wrong. If it is misleading, the way
// of counting stays unknown, but the limit shows in the calls that pass.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		form    func(wait float64) any
		answers string // to retry_after, several_limits (as the fake has decided) and windows
	}{
		{func(wait float64) any { return wait + 0.25 }, `true true "fixed"`},
		{func(wait float64) any { return wait - 1 }, `false true "fixed"`},
		{func(wait float64) any { return wait + 60 }, `true false unknown`},
		{func(wait float64) any { return map[bool]int{true: 60, false: 3600}[wait <= 60] }, `true true unknown`},
	} {
		target, fake := observedFake(t, fakeserver.WithDecision("several_limits", !strings.Contains(tt.answers, "true false")))
		target.HTTPClient = changed(fake, func(res *http.Response, body string) string {
			if wait, err := strconv.ParseFloat(res.Header.Get("Retry-After"), 64); err == nil {
				res.Header.Set("Retry-After", fmt.Sprint(tt.form(wait)))
			}
			return body
		})
		o, err := observe.Run(t.Context(), target, plenty)
		require.NoError(t, err)
		d := o.Decisions
		assert.Equal(t, tt.answers, fmt.Sprint(d["retry_after"], " ", d["several_limits"], " ", d["windows"]))
		assert.Equal(t, 60, o.Limits["key_minute"], tt.answers)
	}
}

// TestErrorNames: if an unexpected answer ends the question, the names that were found before
// are kept.
func TestErrorNames(t *testing.T) {
	target, fake := observedFake(t)
	fake.SetBYOKAvailable(false)
	fake.Inject(fakeserver.Answer(501, `{"error":"not_implemented"}`), fakeserver.Where(func(c fakeserver.Call) bool { return c.Method == "PATCH" }))
	o, err := observe.Run(t.Context(), target, observe.Spend{Requests: 20})
	require.NoError(t, err)
	assert.JSONEq(t, `{"bad_request":"bad_request","unauthorized":"unauthorized","not_found":"not_found","byok_unavailable":"byok_unavailable"}`, o.Decisions["error_names"].String())
}

// distant are the seeds of further services, with longer network delays. Each got a wrong
// answer when a rule of Run was left out: both repeats of atLimit, both margins of the meter,
// and the repeat of a warm-up that a limit on requests refused.
var distant = []uint64{34, 41, 50, 436, 682, 1395}

// TestOtherServices: whatever a service decides, each answer of Run is right, within
// the default budget and wait.
func TestOtherServices(t *testing.T) {
	const near = 16 // seeds
	answers, unanswered := 0, map[string]int{}
	for i := range near + len(distant) {
		seed, latency := uint64(i), 40*time.Millisecond
		if i >= near {
			seed, latency = distant[i-near], 300*time.Millisecond
		}
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 8))
			time.Sleep(time.Duration(random.IntN(100_000)) * time.Millisecond) // the clock's minute starts anywhere
			service := otherservice.New(seed, "sk-one", "sk-two")
			target := observe.Target{BaseURL: "http://other.example", Key: "sk-one", HTTPClient: &http.Client{Transport: service.After(random, latency)}}
			budget := observe.DefaultBudget()
			if seed%2 == 1 {
				target.SecondKey = "sk-two"
			}
			if seed%4 > 1 {
				budget.BYOKSets = 3
			}
			most := new(observe.Observation).Preview(target, budget)
			o, err := observe.Run(t.Context(), target, budget)
			require.NoError(t, err, "seed %d", seed)
			assert.Empty(t, o.Spent.Over(most), "seed %d spends beyond what Preview says", seed)
			for id, found := range o.Decisions {
				assert.False(t, strings.Contains(found.NotAsked, "of waiting") && !strings.Contains(found.NotAsked, " 23h"), "seed %d: %s: %s", seed, id, found.NotAsked)
				if !found.Known() {
					assert.NotEqual(t, "no clear answer", found.NotAsked, id)
					unanswered[id+": "+found.NotAsked]++
					continue
				}
				assert.NotEmpty(t, found.Evidence.Request+found.Evidence.Answer, "evidence of %s", id)
				answers++
			}
			assert.Equal(t, seed%2 == 1, o.Decisions["agent_of_another_key"].Known(), "seed %d: with a second key", seed)
			assert.Empty(t, o.Drift(decided(service.Decides)), "seed %d", seed)
		})
	}
	assert.Greater(t, answers, near*25, "answers; not answered: %v", unanswered)
	assert.LessOrEqual(t, unanswered["refused_requests_spend: no clear answer: the calls that went through do not show it, or the key made other calls meanwhile"], 3)
}

// TestOtherCalls: if the key makes other calls, Run leaves open how a limit counts, unless one
// way clearly fits best. Each of these services got a wrong answer when Run always took the
// best fit, or with a smaller margin. That of 69 got none when the meter did not know how long a
// call takes.
func TestOtherCalls(t *testing.T) {
	for seed, clear := range map[uint64]bool{2: false, 28: true, 39: false, 67: false, 69: true, 343: true} {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 8))
			service := otherservice.New(seed, "sk-one")
			transport := service.After(random, 40*time.Millisecond)
			other := calling(t, transport, "sk-one", "")
			client := &http.Client{Transport: roundtrip.Func(func(req *http.Request) (*http.Response, error) {
				if random.IntN(40) == 0 {
					other(rawcall.ReadUnknownAgent)
				}
				return transport.RoundTrip(req)
			})}
			o, err := observe.Run(t.Context(), observe.Target{BaseURL: "http://other.example", Key: "sk-one", HTTPClient: client}, observe.DefaultBudget())
			require.NoError(t, err, "seed %d", seed)
			assert.Empty(t, o.Drift(decided(service.Decides)), "seed %d", seed)
			assert.Equal(t, clear, o.Decisions["windows"].Known(), "seed %d: one way clearly fits best", seed)
		})
	}
}

// TestOtherLimits: Run does not take another limit for the one that a question is about: a
// limit per day, whenever it is spent and however soon it opens, a limit of few calls a minute,
// and the limit of the address.
func TestOtherLimits(t *testing.T) {
	now := []time.Duration{0}
	late := []time.Duration{0, 23 * time.Hour, 23*time.Hour + 56*time.Minute}
	for _, tt := range []struct {
		limit fakeserver.Limit
		n     int
		begun []time.Duration // before the run
	}{
		{fakeserver.LimitKeyDay, 5, late}, {fakeserver.LimitKeyDay, 25, late}, {fakeserver.LimitKeyDay, 264, late},
		{fakeserver.LimitKeyMinute, 1, now}, {fakeserver.LimitKeyMinute, 2, now}, {fakeserver.LimitIPMinute, 40, now},
	} {
		for _, begun := range tt.begun {
			target, fake := observedFake(t, fakeserver.WithLimit(tt.limit, tt.n))
			calling(t, fake.Direct(), fake.Key(), "")(rawcall.ReadUnknownAgent)
			fake.Advance(begun)
			o, err := observe.Run(t.Context(), target, observe.DefaultBudget())
			require.NoError(t, err, "%s %d, begun %v ago", tt.limit, tt.n, begun)
			assert.Empty(t, o.Drift(asTheFake()), "%s %d, begun %v ago", tt.limit, tt.n, begun)
			assert.NotEqual(t, 40, o.Limits["key_minute"], "a limit of the address")
		}
	}
}

// use makes random calls, as a program with these keys would over some days. At
// times it reads an agent until a limit refuses that, and comes back when it may.
func use(call func(rawcall.Call) rawcall.Exchange, random *rand.Rand, calls int, keys ...rawcall.Key) {
	agents := []string{rawcall.UnknownAgentID}
	for range calls {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(time.Second)))
		if random.IntN(400) == 0 {
			time.Sleep(time.Duration(2+random.IntN(120)) * time.Minute)
			var last rawcall.Exchange
			for range 70 {
				if last = call(rawcall.ReadAgent); last.Status == http.StatusTooManyRequests {
					break
				}
			}
			wait, _ := last.RetryAfter()
			time.Sleep(wait)
			call(rawcall.ReadAgent)
		}
		possible := []rawcall.Call{
			rawcall.GetStatus, rawcall.GetBYOK, rawcall.ClearBYOK, rawcall.WarmUp, rawcall.BYOKWarmUp, rawcall.SetBYOK,
			rawcall.CreateAgent, rawcall.BYOKCreation, rawcall.BadCreation, rawcall.CreationWithKey,
			rawcall.CreateAgent.With(`{"sms":{"mode":"managed"},"metadata":{"a":"` + strings.Repeat("x", random.IntN(5000)) + `"}}`),
			rawcall.ReadAgent, rawcall.EnableSMS, rawcall.SendMessage.With(`{"text":"Ada Lovelace, 12 St James's Square"}`), rawcall.SendMessage.With(`{"text":7}`),
		}
		c := possible[min(random.IntN(20), len(possible)-1)].Of(agents[random.IntN(len(agents))])
		if id, created := call(c.By(keys[random.IntN(len(keys))])).At("agent_id").(string); created {
			agents = append(agents, id)
		}
	}
}

// TestWatchOtherServices: a Watcher learns nothing wrong from random calls to services
// with random decisions, and Like accepts its answers.
func TestWatchOtherServices(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			service := otherservice.New(seed, "sk-one", "sk-two")
			w := observe.Watch(service.After(random, 40*time.Millisecond))
			keys := []rawcall.Key{{}, {}, {}, rawcall.Another}
			withoutGetBody := roundtrip.Func(func(req *http.Request) (*http.Response, error) { // as the client's requests are
				req.GetBody = nil
				return w.RoundTrip(req)
			})
			use(calling(t, withoutGetBody, "sk-one", "sk-two"), random, 160, keys[:1+3*(seed%2)]...)
			o := w.Observation()
			assert.Empty(t, o.Drift(decided(service.Decides)), "seed %d", seed)
			like := map[string]any{}
			for _, d := range fakeserver.New(t, fakeserver.Like(rawcall.JSONOf(o))).Decisions() {
				like[d.ID] = json.RawMessage(d.Answer)
			}
			assert.Empty(t, o.Drift(decided(like)), "seed %d: of the fake", seed)
			for id, found := range o.Decisions {
				seen[id] = true
				assert.Positive(t, found.Count, id)
				assert.NotEmpty(t, found.Seen, id)
			}
			for what := range o.Traffic {
				assert.NotRegexp(t, "^not documented|^member [^d]", what, "these services add one member to errors, detail")
			}
			assert.Subset(t, slices.Collect(maps.Keys(o.Traffic)), []string{"member detail of POST /v1/agents 400", "error rate_limited of POST /v1/agents 429", "header Retry-After"})
			for _, secret := range []string{"sk-", "Ada", "ag~1", "ag%7E1"} {
				assert.NotContains(t, string(rawcall.JSONOf(o)), secret, "seed %d", seed)
			}
		})
	}
	assert.Len(t, seen, 11, "questions that a Watcher answers: %v", seen)
}

// TestWatchStates: what a Watcher learns from a call about a stored provider key depends on the
// calls before.
func TestWatchStates(t *testing.T) {
	clear, set, read, create := rawcall.ClearBYOK, rawcall.SetBYOK, rawcall.GetBYOK, rawcall.CreationWithKey
	for _, tt := range []struct {
		calls                 []rawcall.Call
		ofNothing, ofCreation bool
	}{
		{[]rawcall.Call{clear}, false, false},
		{[]rawcall.Call{clear, clear}, true, false},
		{[]rawcall.Call{read, clear}, true, false},
		{[]rawcall.Call{clear, set, clear}, false, false},
		{[]rawcall.Call{read, create, clear}, false, false},
		{[]rawcall.Call{read, create, read}, false, true},
		{[]rawcall.Call{set, create, read}, false, false},
		{[]rawcall.Call{read, create, read, clear}, false, true},
	} {
		_, fake := observedFake(t)
		w := observe.Watch(fake.Direct())
		for _, c := range tt.calls {
			calling(t, w, fake.Key(), "")(c)
		}
		learned := w.Observation().Decisions
		assert.Equal(t, []bool{tt.ofNothing, tt.ofCreation}, []bool{learned["clear_nothing"].Known(), learned["creation_stores_key"].Known()}, "%v", tt)
	}
}

// TestWatchForgets: beyond 10,000 agents, a Watcher forgets all of them. It counts at most 300
// sights, and an Observation is a copy.
func TestWatchForgets(t *testing.T) {
	calls := 0
	w := observe.Watch(roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		calls++
		_, _ = io.Copy(io.Discard, req.Body)
		return roundtrip.Answering(200, fmt.Sprintf(`{"agent_id":"a%d","status":"active","created_at":"-","updated_at":"-","trace_id":"t","m%[1]d":1}`, calls))(req)
	}))
	for range 10_002 {
		req, _ := http.NewRequest("POST", "http://service.example/v1/agents", strings.NewReader("{}"))
		res, err := w.RoundTrip(req)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, res.Body)
	}
	call := calling(t, w, "sk-one", "sk-two")
	call(rawcall.ReadAgent.Of("a10001").By(rawcall.Another))
	forgotten := w.Observation()
	call(rawcall.ReadAgent.Of("a10002").By(rawcall.Another))
	assert.Nil(t, forgotten.Decisions["agent_of_another_key"].Answer)
	learned := w.Observation().Decisions["agent_of_another_key"]
	assert.Equal(t, "200", learned.String())
	assert.Equal(t, `"unknown"`, forgotten.Decisions["times"].String(), "- is no time")
	learned.Answer[0] = '4'
	assert.Equal(t, "200", w.Observation().Decisions["agent_of_another_key"].String())
	assert.Len(t, forgotten.Traffic, 300)
}

// TestWatchSamples: of the answers that a busy program gets, a Watcher reads the first 32, and then
// every 256th.
func TestWatchSamples(t *testing.T) {
	w := observe.Watch(roundtrip.Answering(200, `{"agent_id":"a","status":"active","created_at":"-","updated_at":"-","trace_id":"t"}`))
	for range 2*256 + 1 {
		calling(t, w, "sk-one", "")(rawcall.ReadAgent.Of("a"))
	}
	assert.Equal(t, 32+2, w.Observation().Decisions["times"].Count)
}

// TestWatchLongBody: a body of less than 64 KiB is read, a longer one is not.
func TestWatchLongBody(t *testing.T) {
	for length, known := range map[int]bool{64<<10 - 1: true, 64 << 10: false} {
		body := fmt.Sprintf("%-*s", length, `{"error":"unauthorized","reason":"send a Bearer token","trace_id":"t"}`)
		w := observe.Watch(roundtrip.Answering(401, body))
		calling(t, w, "sk-one", "")(rawcall.GetStatus)
		assert.Equal(t, known, w.Observation().Decisions["error_names"].Known(), length)
		assert.Contains(t, w.Observation().Traffic, "GET /v1/status 401", length)
	}
}

// TestWatchChangesNothing: a call has the same outcome with a Watcher and without. The
// Watcher reads nothing of the request either: all but one of these transports fail, or
// answer, before they do.
func TestWatchChangesNothing(t *testing.T) {
	for name, transport := range map[string]roundtrip.Func{
		"HTML": roundtrip.Answering(200, "<html>"), "empty": roundtrip.Answering(200, ""), "500": roundtrip.Answering(500, `{"error":"x"}`), "deep": roundtrip.Answering(200, strings.Repeat("[", 1e5)),
		"a lie": roundtrip.Answering(200, `{"agent_id":7,"created_at":[],"byok":"x","sms":[],"trace_id":null}`), "418": roundtrip.Answering(418, "{}"),
		"101": func(*http.Request) (*http.Response, error) {
			here, _ := net.Pipe()
			return &http.Response{StatusCode: 101, Body: here}, here.Close()
		},
		"no body":  func(req *http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil },
		"nothing":  func(req *http.Request) (*http.Response, error) { return nil, nil },
		"an error": func(req *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
		"a close while it reads": func(req *http.Request) (*http.Response, error) { // as over HTTP/2
			end := make(chan error)
			go func() { _, err := io.ReadAll(req.Body); end <- err }()
			return nil, errors.Join(req.Body.Close(), <-end)
		},
	} {
		w := observe.Watch(transport)
		for _, path := range []string{"/v1/agents", "/v1/byok", "/v1/agents/a%2Fb/messages", "/v1/agents/a", "/other", "/v1/"} {
			for _, method := range []string{"GET", "POST", "DELETE", "PUT"} {
				read := func(t http.RoundTripper) string {
					body := strings.NewReader(`{"llm":{"mode":"byok","api_key":7}}`)
					res, err := t.RoundTrip(httptest.NewRequest(method, "http://service.example"+path, body))
					if res == nil || res.Body == nil {
						return fmt.Sprint(res, err, body.Len())
					}
					text, _ := io.ReadAll(res.Body)
					_, writes := res.Body.(io.Writer)
					return fmt.Sprint(res.StatusCode, string(text), err, writes, res.Body.Close(), body.Len())
				}
				assert.Equal(t, read(transport), read(w), name)
			}
		}
		assert.Empty(t, w.Observation().Decisions, name)
		assert.Equal(t, name == "418", w.Observation().Traffic["not documented: PUT /v1/byok 418"].Count > 0, name)
	}
	_, err := observe.Watch(nil).RoundTrip(&http.Request{})
	assert.EqualError(t, err, "http: nil Request.URL")
}
