package observe_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
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
			fake := fakeserver.New(t, fakeserver.Like(jsonOf(t, o)))
			for _, d := range fake.Decisions() {
				found := o.Decisions[d.ID]
				if !found.Known() {
					continue
				}
				seen[d.ID] = true
				if !agrees(t, service, d.ID, found) {
					wrong = append(wrong, fmt.Sprintf("seed %d: %s is %s, found %s, seen in %v", seed, d.ID, jsonOf(t, service.Decides[d.ID]), found, found.Evidence))
				}
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

// BenchmarkWatch asks a fake behind a socket by turns without and with a Watcher,
// and reports by how much the Watcher lengthens a call (of the medians: what else
// the machine does spoils a mean). It may be 2 %, here of the shortest call that
// there is: the answer of a service elsewhere takes longer.
func BenchmarkWatch(b *testing.B) {
	fake := fakeserver.New(b)
	server := httptest.NewServer(fake)
	defer server.Close()
	client := func(transport http.RoundTripper) *agentmessaging.Client {
		c, err := agentmessaging.NewClient(server.URL, fake.IssueKeyOn("preview", true), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(b, err)
		return c
	}
	pair := []*agentmessaging.Client{client(server.Client().Transport), client(observe.Watch(server.Client().Transport))}
	var took [2][]time.Duration
	for turn := 0; b.Loop(); turn++ {
		for i := range pair {
			which := (turn + i) % 2
			started := time.Now()
			_, err := pair[which].Status(b.Context())
			took[which] = append(took[which], time.Since(started))
			require.NoError(b, err)
		}
	}
	median := func(all []time.Duration) float64 { slices.Sort(all); return float64(all[len(all)/2]) }
	b.ReportMetric(100*(median(took[1])/median(took[0])-1), "%-of-a-call")
}
