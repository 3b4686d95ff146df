package fakeserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func at2040() time.Time { return time.Unix(2208988800, 0) }

// stage is a fake in which every answer can be had.
type stage struct {
	*Server
	foreign, free, revoked string // keys: not dashboard-issued, inactive, revoked
}

// newStage returns one of several fakes that give the same answers: the clock
// stands still, and the fingerprints of one provider key are equal.
func newStage(t *testing.T, shared *vault) stage {
	s := stage{Server: New(t, WithClock(at2040), WithUnknownRoutes())}
	s.vault = shared
	s.foreign = s.IssueKey(KeyOptions{NotDashboard: true})
	s.free = s.IssueKey(KeyOptions{Plan: PlanFree})
	s.revoked = s.IssueKey(KeyOptions{})
	s.RevokeKey(s.revoked)
	s.must("POST", "/v1/agents", `{"sms":{"mode":"sandbox"}}`)
	return s
}

// must makes a call that has to work.
func (s stage) must(method, path, body string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+s.Key())
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		panic(w.Body.String())
	}
}

const (
	agentPath = "/v1/agents/agent_000001"
	provider  = `{"provider":"openai","api_key":"sk-canary","label":"mine"}`
)

// What a row of answers needs beyond the stage.
func exhausted(limit Limit) func(stage) { return func(s stage) { s.Exhaust(s.Key(), limit) } }

func storeDown(s stage) { s.SetBYOKAvailable(false) }

func withBYOK(s stage) { s.must("PUT", "/v1/byok", provider) }

func asRevoked(s stage) string { return s.revoked }

func asFree(s stage) string { return s.free }

func asForeign(s stage) string { return s.foreign }

// answers are calls that get every status that the fake gives, of every route.
var answers = []struct {
	status             int
	method, path, body string
	given              func(stage)        // nil: nothing
	as                 func(stage) string // nil: the default key
}{
	{200, "GET", "/v1/status", "", nil, nil},
	{401, "GET", "/v1/status", "", nil, asRevoked},
	{402, "GET", "/v1/status", "", nil, asFree},

	{200, "POST", "/v1/warmup", "", nil, nil},
	{200, "POST", "/v1/warmup", `{"mode":"byok"}`, withBYOK, nil},
	{400, "POST", "/v1/warmup", `{"mode":`, nil, nil},
	{401, "POST", "/v1/warmup", "{}", nil, asRevoked},
	{402, "POST", "/v1/warmup", "{}", nil, asFree},
	{403, "POST", "/v1/warmup", `{"mode":"byok"}`, nil, asForeign},
	{409, "POST", "/v1/warmup", `{"mode":"byok"}`, nil, nil},
	{429, "POST", "/v1/warmup", "{}", exhausted("warmup_key_hour"), nil},
	{503, "POST", "/v1/warmup", `{"mode":"byok"}`, storeDown, nil},

	{200, "GET", "/v1/byok", "", nil, nil},
	{200, "GET", "/v1/byok", "", withBYOK, nil},
	{401, "GET", "/v1/byok", "", nil, asRevoked},
	{402, "GET", "/v1/byok", "", nil, asFree},
	{403, "GET", "/v1/byok", "", nil, asForeign},

	{200, "PUT", "/v1/byok", provider, nil, nil},
	{400, "PUT", "/v1/byok", "", nil, nil},
	{401, "PUT", "/v1/byok", provider, nil, asRevoked},
	{402, "PUT", "/v1/byok", provider, nil, asFree},
	{403, "PUT", "/v1/byok", provider, nil, asForeign},
	{429, "PUT", "/v1/byok", provider, exhausted("byok_set_key_hour"), nil},
	{503, "PUT", "/v1/byok", provider, storeDown, nil},

	{200, "DELETE", "/v1/byok", "", withBYOK, nil},
	{401, "DELETE", "/v1/byok", "", nil, asRevoked},
	{402, "DELETE", "/v1/byok", "", nil, asFree},
	{403, "DELETE", "/v1/byok", "", nil, asForeign},

	{200, "POST", "/v1/agents", `{"system_prompt":"p","customer_ref":"c","metadata":{"a":[1]},"sms":{"mode":"managed"}}`, nil, nil},
	{400, "POST", "/v1/agents", `{"llm":{"mode":"byok"}}`, nil, nil},
	{401, "POST", "/v1/agents", "{}", nil, asRevoked},
	{402, "POST", "/v1/agents", "{}", nil, asFree},
	{429, "POST", "/v1/agents", "{}", exhausted("agent_create_key_day"), nil},

	{200, "GET", agentPath, "", nil, nil},
	{401, "GET", agentPath, "", nil, asRevoked},
	{402, "GET", agentPath, "", nil, asFree},
	{404, "GET", agentPath, "", nil, asForeign},
	{429, "GET", agentPath, "", exhausted("key_minute"), nil},

	{200, "POST", agentPath + "/messages", `{"text":"héllo","user_ref":"u"}`, nil, nil},
	{400, "POST", agentPath + "/messages", `{"text":"` + strings.Repeat("x", 4001) + `"}`, nil, nil},
	{401, "POST", agentPath + "/messages", `{"text":"x"}`, nil, asRevoked},
	{402, "POST", agentPath + "/messages", `{"text":"x"}`, nil, asFree},
	{404, "POST", "/v1/agents/a%2Fb/messages", `{"text":"x"}`, nil, nil},
	{429, "POST", agentPath + "/messages", `{"text":"x"}`, exhausted("key_day"), nil},
	{200, "POST", agentPath + "/messages", `{"text":"large"}`, func(s stage) { s.OnMessage().Reply(strings.Repeat("reply ", 20_000)) }, nil},
	{0, "POST", agentPath + "/messages", `{"text":"panics"}`, func(s stage) {
		s.OnMessage().ReplyFunc(func(Message) Reply { panic(http.ErrAbortHandler) })
		s.tb = nil // the panic is reported
	}, nil},

	{200, "POST", agentPath + "/channels/sms", `{"mode":"byo_twilio"}`, nil, nil},
	{400, "POST", agentPath + "/channels/sms", `{"mode":"none"}`, nil, nil},
	{401, "POST", agentPath + "/channels/sms", `{"mode":"sandbox"}`, nil, asRevoked},
	{402, "POST", agentPath + "/channels/sms", `{"mode":"sandbox"}`, nil, asFree},
	{404, "POST", agentPath + "/channels/sms", `{"mode":"sandbox"}`, nil, asForeign},
	{429, "POST", agentPath + "/channels/sms", `{"mode":"sandbox"}`, exhausted("ip_minute"), nil},

	{404, "GET", "/v1/nothing?a=b&c", "", nil, nil},
	{404, "GET", "//v1/status", "", nil, nil},
	{404, "GET", "/v1/../v1/status", "", nil, nil},
	{405, "PATCH", agentPath, "{}", nil, nil},
	{405, "HEAD", "/v1/status", "", nil, nil},
	{404, "HEAD", "/v1/nothing", "", nil, nil},
}

// Each answer over four ways, from four fakes in the same state.
func TestAnswersOnFourWays(t *testing.T) {
	reached := map[string]bool{}
	for i, row := range answers {
		reached[fmt.Sprint(row.status, " ", row.method, " ", template(row.path))] = true
		t.Run(fmt.Sprintf("%d %d %s %s", i, row.status, row.method, row.path), func(t *testing.T) {
			var seens [4]seen
			var gots [4]got
			var calls [4][]Call
			shared := newVault()
			for way := range 4 {
				s := newStage(t, shared)
				if row.given != nil {
					row.given(s)
				}
				key := s.Key()
				if row.as != nil {
					key = row.as(s)
				}
				callers, arrived := s.ways(t)
				gots[way] = get(callers[way].RoundTrip(callOf(t, row.method, s.BaseURL()+row.path, row.body, key)))
				seens[way] = <-arrived
				calls[way] = s.Calls()
			}
			if row.status != 0 {
				assert.Equal(t, fmt.Sprint(row.status, " ", http.StatusText(row.status)), gots[0].Status)
			}
			assert.Equal(t, seens[1], seens[0])
			assert.Equal(t, gots[1], gots[0])
			assert.Equal(t, calls[1], calls[0])
			assert.Equal(t, butFor(seens[1]), butFor(seens[2]), "direct")
			assert.Equal(t, gots[1], gots[2], "direct")
			assert.Equal(t, calls[1], calls[2], "direct")
			assert.Equal(t, asOver1(gots[3], calls[3]), got2{gots[1], calls[1]}, "HTTP/2")
		})
	}
	wantEveryStatus(t, reached)
}

type got2 struct {
	got
	calls []Call
}

// asOver1 is what came over HTTP/2, in the words of HTTP/1.1.
func asOver1(g got, calls []Call) got2 {
	g.Proto = strings.Replace(g.Proto, "HTTP/2.0", "HTTP/1.1", 1)
	if strings.Contains(g.Error, "INTERNAL_ERROR") { // the stream ends, and not the connection
		g.Error = "EOF"
	}
	for i := range calls {
		if calls[i].Header.Get("User-Agent") == "Go-http-client/2.0" {
			calls[i].Header.Set("User-Agent", "Go-http-client/1.1")
		}
	}
	return got2{g, calls}
}

// ways are the wire, loopback, Direct and HTTP/2, and what arrives at the fake.
func (s stage) ways(t *testing.T) ([4]http.RoundTripper, <-chan seen) {
	arrived := make(chan seen, 2)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call := see(r)
		r.Body = io.NopCloser(strings.NewReader(call.Body)) // once more, for the fake
		arrived <- call
		s.ServeHTTP(w, r)
	})
	memory, loopback := bothWires(t, s.Server, h)
	own := s.hostOf(h).Direct(localhost)
	return [...]http.RoundTripper{memory, loopback, own, secured{h, t}}, arrived
}

// secured starts a server with HTTP/2 for the one call that is made over it.
type secured struct {
	handler http.Handler
	t       *testing.T
}

func (s secured) RoundTrip(r *http.Request) (*http.Response, error) {
	server := httptest.NewUnstartedServer(s.handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	s.t.Cleanup(server.Close)
	r.URL.Scheme, r.URL.Host = "https", server.Listener.Addr().String()
	return server.Client().Transport.RoundTrip(r)
}

// butFor leaves out what Direct does not do as a connection does. This is the
// one list of it; everything else is equal.
func butFor(s seen) seen {
	// There is no http.Server: the context of a request knows none, nor the
	// address that it listens on.
	s.KnowsServer, s.KnowsAddr = false, false
	// There is no connection that Request.Close could end.
	s.Close = false
	s.Header.Del("Connection")
	// Trailers of a request are not carried; the service has none.
	s.Trailer = nil
	return s
}

func callOf(t *testing.T, method, url, body, key string) *http.Request {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, sent)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// wantEveryStatus holds the rows to interface section 4. A 404 that an
// endpoint without {agent_id} lists is that of its path, and has a row of its
// own.
func wantEveryStatus(t *testing.T, reached map[string]bool) {
	for _, e := range spec.Endpoints {
		for _, status := range append([]int{200}, e.Errors...) {
			if status != http.StatusNotFound || strings.Contains(e.Path, "{agent_id}") {
				assert.True(t, reached[fmt.Sprint(status, " ", e.Method, " ", e.Path)], "%d of %s has no row", status, e.Name)
			}
		}
	}
}

// template is the path that the interface has for a path of these tests.
func template(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 3 && parts[2] == "agents" {
		parts[3] = "{agent_id}"
	}
	return strings.Join(parts, "/")
}
