package contract_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proxy stands before a fake and changes each answer.
type proxy struct {
	fake   *fakeserver.Server
	ip     string // the address that calls
	tamper func(*reply)
}

// reply is an answer of the fake on its way to a case, and the call that it
// answers.
type reply struct {
	proxy
	req    *http.Request
	sent   string
	status int
	header http.Header
	body   map[string]any
}

func (p proxy) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &reply{proxy: p, req: req}
	if req.Body != nil {
		sent, _ := io.ReadAll(req.Body)
		r.sent = string(sent)
	}
	r.send(req.Method, req.URL.RequestURI(), r.sent)
	p.tamper(r)
	body, err := json.Marshal(r.body)
	return &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(body)), Request: req}, err
}

// send makes a call by the same key and takes its answer.
func (r *reply) send(method, path, body string) {
	req, answer := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	req.Header, req.RemoteAddr = r.req.Header, r.ip+":1"
	r.fake.ServeHTTP(answer, req)
	r.status, r.header, r.body = answer.Code, answer.Header(), nil
	if err := json.Unmarshal(answer.Body.Bytes(), &r.body); err != nil {
		panic(err)
	}
}

func (r *reply) also(method, path, body string) {
	other := *r
	other.send(method, path, body)
}

func (r *reply) refuse(status int, code string) {
	r.status, r.body = status, map[string]any{"error": code, "trace_id": "trace_of_the_proxy"}
}

// providerKey is the provider key that was sent, or "".
func (r *reply) providerKey() string {
	_, key, _ := strings.Cut(r.sent, `"api_key":"`)
	key, _, _ = strings.Cut(key, `"`)
	return key
}

func (r *reply) key() string { return strings.TrimPrefix(r.req.Header.Get("Authorization"), "Bearer ") }

func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// tampered runs the case on a fake behind a proxy. The fake's clock moves by
// waits only.
func tampered(t *testing.T, c contract.Case, decisions bool, tamper func(*reply), opts ...fakeserver.Option) (failed bool, log string) {
	fake := newFake(t, append(opts, fakeserver.WithUnknownRoutes(), fakeserver.WithClock(still))...)
	target := targetOf(fake, func(ip string) http.RoundTripper { return proxy{fake, ip, tamper} })
	target.Decisions = decisions
	return contract.Verdict(t, c, target)
}

// firstFailure returns the id of a case that fails with what it printed, or "".
// Cases that take more than a minute's calls, or send a mebibyte, are left out.
// The cases of decisions, the last of the list, come first.
func firstFailure(t *testing.T, decisions bool, tamper func(*reply), opts ...fakeserver.Option) string {
	for _, c := range slices.Backward(contract.AllCases()) {
		if c.Spends.Requests > 66 || strings.HasSuffix(c.ID, "1-MiB") || strings.HasPrefix(c.ID, "fake/") && !decisions {
			continue
		}
		if failed, log := tampered(t, c, decisions, tamper, opts...); failed {
			return c.ID + "\n" + log
		}
	}
	return ""
}

// TestObserveShowsNoSecret: whatever a target sends back.
func TestObserveShowsNoSecret(t *testing.T) {
	target, fake := observedFake(t)
	target.HTTPClient = &http.Client{Transport: proxy{fake, "192.0.2.1", func(r *reply) {
		for name, v := range r.body {
			if _, text := v.(string); text && name != "agent_id" {
				r.body[name] = r.key() + " Ada " + r.sent
			}
		}
		set("error", "error", r.fake.Key())(r)
		set("reason", "reason", "Ada")(r)
	}}}
	o, err := contract.Observe(t.Context(), target, plenty)
	require.NoError(t, err)
	for _, text := range []string{string(jsonOf(t, o)), o.Markdown()} {
		assert.NotContains(t, text, fake.Key())
		assert.NotContains(t, text, "Jw4")
		assert.NotContains(t, text, "Ada")
	}
}

// TestObserveBadTargets: against a target that lies, hangs, answers HTML or
// fails, Observe ends within its budget with what it has.
func TestObserveBadTargets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	lies := []string{`{}`, `[]`, `{"agent_id":"../..","error":"x","byok":null,"limit_key":"` + strings.Repeat("l", 9999) + `"}`, `nul`, ""}
	for name, transport := range map[string]contract.RoundTrip{
		"500": contract.Answering(500, `{"error":"internal"}`), "HTML": contract.Answering(200, "<html>"), "429 for ever": contract.Answering(429, `{"error":"rate_limited"}`),
		"always fine": contract.Answering(200, `{"agent_id":"a","status":"active","trace_id":"t","byok":null}`),
		"hangs": func(req *http.Request) (*http.Response, error) {
			<-req.Context().Done()
			return nil, req.Context().Err()
		},
		"lies": func(req *http.Request) (*http.Response, error) {
			return contract.Answering([]int{200, 400, 404, 429, 503}[random.IntN(5)], lies[random.IntN(len(lies))])(req)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				counted := contract.RoundTrip(func(req *http.Request) (*http.Response, error) { calls++; return transport(req) })
				target := contract.Target{BaseURL: "http://service.example", Key: "key-1", HTTPClient: &http.Client{Transport: counted}}
				budget := contract.Spend{Requests: 46, Creations: 20, WarmUps: 4, Wait: 3 * time.Minute} // the last question may not repeat its call
				started := time.Now()
				o, err := contract.Observe(t.Context(), target, budget)
				assert.Empty(t, contract.Over(o.Spent, budget), "spent beyond the budget")
				assert.LessOrEqual(t, calls, budget.Requests, "calls")
				assert.LessOrEqual(t, time.Since(started), 4*time.Minute, "of waiting")
				assert.Equal(t, name == "hangs", err != nil, "error %v", err)
				assert.Len(t, o.Decisions, len(contract.FakeAnswers()))
				for id, found := range o.Decisions {
					assert.NotEqual(t, found.NotAsked == "", found.Answer == nil, "%s: either an answer or a reason why there is none", id)
				}
				assert.NotEmpty(t, o.Markdown(), "the page")
			})
		})
	}
}
