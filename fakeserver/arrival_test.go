package fakeserver_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func TestUnknownRouteFailsTheTest(t *testing.T) {
	for call, nearest := range map[string]string{
		"POST /v1/agent":                    "POST /v1/agents",
		"GET /v1/agents":                    "POST /v1/agents",
		"POST /v1/agents//messages":         "POST /v1/agents/{agent_id}/messages",
		"PUT /v2/byok":                      "PUT /v1/byok",
		"DELETE /byok":                      "DELETE /v1/byok",
		"GET /v1/status/":                   "GET /v1/status",
		"POST /v1/agents/x/channels/sms/y/": "POST /v1/agents/{agent_id}/channels/sms",
	} {
		watch, _, c := newSpied(t)
		method, path, _ := strings.Cut(call, " ")
		_ = seen(c.wire, c.request(method, path, noBody))
		assert.Equal(t, []string{"fakeserver: no endpoint is at " + call + "; nearest: " + nearest + "; WithUnknownRoutes allows such calls"}, watch.errors)
	}
}

func TestUnknownRoutesAreBoundedAndEscaped(t *testing.T) {
	watch, fake, c := newSpied(t)
	for range 100 {
		req := c.request("GET", "/", noBody)
		req.Method = "GET\n\x1b[2J" // which net/http would refuse to carry
		req.URL = &url.URL{Scheme: "http", Host: req.URL.Host, Path: "/\n\x1b[31m/" + c.key + strings.Repeat("/x", 5000), RawQuery: "api_key=canary"}
		fake.ServeHTTP(httptest.NewRecorder(), req)
	}
	require.Len(t, watch.errors, 10)
	assert.Contains(t, watch.errors[9], "; further calls to unknown routes are not reported")
	for _, line := range watch.errors {
		assert.Less(t, len(line), 600)
		assert.NotContains(t, line, c.key)
		assert.NotContains(t, line, "canary")
		assert.NotRegexp(t, `[\x00-\x1f]`, line)
		assert.Contains(t, line, "/%0A%1B%5B31m/[redacted]/x/x")
	}
}

// Braces need an escape, but net/http's server accepts them without.
func TestPathsAreRecordedAsTheyWereSent(t *testing.T) {
	fake, _ := newFake(t, fakeserver.WithUnknownRoutes())
	for i, path := range []string{"/v1/agent%73/{a}", "/v1/agents/{a}", "/v1/agents/%7Ba%7D"} {
		fake.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
		assert.Equal(t, path, fake.Calls()[i].Path)
	}
}

// unlimited lifts all limits.
func unlimited() []fakeserver.Option {
	var opts []fakeserver.Option
	for _, limit := range spec.Limits {
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit.Key), 1<<30))
	}
	return opts
}

const (
	one  = "body: must be one JSON document and nothing else"
	half = "must be valid Unicode; half a surrogate pair is none"

	storeIsDown = "BYOK is not available, so no provider key can be used or stored"
)

// badBodies are bodies by their call, with the reason of their refusal, if there is one.
var badBodies = map[string][]struct{ body, reason string }{
	"POST /v1/agents/agent_000001/messages": {
		{`{"text":"\ud800"}`, "text: " + half},
		{"", one},
		{"{\"text\":\"\xed\xa0\x80\"}", "body: must be valid UTF-8"},
		{`{"user_ref":"x"}`, "text: is required"},
		{`{"text":null}`, "text: must be a string"},
		{`{"text":"hello","a1b2c3d":1}`, `body: member "a1b2c3d" is not allowed`},
		{`{"text":"hello","a1b2c3d4":1}`, "body: member … is not allowed"}, // long enough to be a key
		{`{"text":"hello","` + strings.Repeat("é", 65) + `":1}`, `body: member "` + strings.Repeat("é", 30) + `..." is not allowed`},
		{`{"text":"hello","t\u0065xt":"hello"}`, "text: is there twice"},
	},
	"POST /v1/agents": {
		{`{"metadata":{"a":null,"b":[1,-2.5e3,true,false,{"a":{"a":1}}],"":"x","A":1,"c":[{"b":1},{"b":1}]}}`, ""},
		{`{"llm":{"x":1}}`, `llm: member "x" is not allowed`},
		{`{"metadata":[]}`, "metadata: must be an object"},
		{`{"metadata":{"x":[[{"a":1,"\u0061":2}]]}}`, `metadata: member "a" is there twice`},
		{`{"llm":{"mode":"byok"}}`, "llm.mode: byok needs a BYOK configuration, and none is set for this API key"},
		{`{"llm":{"api_key":"sk"}}`, "llm.provider: is required when llm.api_key is given"},
		{`{"llm":{"provider":"openai","api_key":"sk"}}`, "llm.api_key: " + storeIsDown},
	},
	"POST /v1/warmup": {{`{"mode":"byok"}`, "mode: " + storeIsDown}},
	"PUT /v1/byok":    {{`{"provider":"openai","api_key":"sk"}`, "api_key: " + storeIsDown}},
}

// The reason names the member and its rule. Package contract has the statuses.
func TestReasonsOfBodies(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	fake.SetBYOKAvailable(false)
	c.agent(emptyBody)
	for call, rows := range badBodies {
		method, path, _ := strings.Cut(call, " ")
		for _, row := range rows {
			r := c.call(method, path, row.body)
			assert.Equal(t, row.reason, r.text("reason"), clipped(row.body))
			assert.Equal(t, row.reason == "", r.status == 200, clipped(row.body))
		}
	}
}

// exchange sends raw bytes to a fake on a socket, and reads the answers until it is
// done.
func exchange(t *testing.T, fake *fakeserver.Server, raw string) (statuses []int, bodies []string) {
	t.Helper()
	server := httptest.NewServer(fake)
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	go func() { _, _ = io.WriteString(c, raw); _ = c.(*net.TCPConn).CloseWrite() }()
	r := bufio.NewReader(c)
	for {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, bodies
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		statuses, bodies = append(statuses, resp.StatusCode), append(bodies, string(body))
	}
}

const (
	status   = "GET /v1/status HTTP/1.1\r\n"
	hostLine = "Host: x\r\n"
	ownKey   = "Authorization: Bearer amk_fake_000001\r\n"
	rest     = hostLine + ownKey + "\r\n"
)

func warmUp(headers, body string) string {
	return "POST /v1/warmup HTTP/1.1\r\n" + headers + rest + body
}

// Where net/http does not answer by itself, the answer is one of the service's.
func TestRawRequests(t *testing.T) {
	for name, row := range map[string]struct {
		raw  string
		want []int
	}{
		"a decent one":            {status + rest, []int{200}},
		"pipelined bodies":        {warmUp("Content-Length: 2\r\n", "{}") + warmUp("Content-Length: 1\r\n", "{") + status + rest, []int{200, 400, 200}},
		"backslash":               {"GET /v1\\status HTTP/1.1\r\n" + rest, []int{404}},
		"escaped letter of an id": {"GET /v1/agents/%61gent_000001 HTTP/1.1\r\n" + rest, []int{200}},
		"braces":                  {"GET /v1/agents/{a} HTTP/1.1\r\n" + rest, []int{404}},
		"method in lower case":    {"get /v1/status HTTP/1.1\r\n" + rest, []int{405}},
		"absolute form":           {"GET http://evil.example/v1/status HTTP/1.1\r\n" + rest, []int{200}},
		"key twice":               {status + ownKey + rest, []int{401}},
		"BEARER, spaces":          {status + hostLine + "Authorization:BEARER   amk_fake_000001  \r\n\r\n", []int{200}},
		"length too great":        {warmUp("Content-Length: 9\r\n", "{}"), []int{400}},
		"half a chunk":            {warmUp("Transfer-Encoding: chunked\r\n", "9\r\n{}"), []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			fake, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes())
			c.agent(emptyBody)
			statuses, bodies := exchange(t, fake, row.raw)
			require.Equal(t, row.want, statuses)
			for i, body := range bodies {
				assert.NotContains(t, body, c.key)
				wantDocumented(t, statuses[i], body)
			}
		})
	}
}

// wantDocumented checks that an answer has one of the statuses of interface 7
// and the body that goes with it.
func wantDocumented(t *testing.T, status int, body string) {
	t.Helper()
	require.Contains(t, []int{200, 400, 401, 402, 403, 404, 405, 409, 429, 503}, status)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &parsed), clipped(body))
	require.NotEmpty(t, parsed["trace_id"])
	require.Equal(t, status != 200, parsed["error"] != nil, clipped(body))
}

// A body without end is answered when it is longer than 1 MiB, and cut there: what is
// sent after it goes nowhere.
func TestBodyWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t)
		c.wire = fake.HTTPClient(t).Transport
		endless := &spaces{}
		req := c.request("POST", "/v1/warmup", noBody)
		req.Body, req.ContentLength = io.NopCloser(endless), -1
		resp, err := c.wire.RoundTrip(req)
		require.NoError(t, err)
		read(t, resp).wantReason(t, "body: at most 1048576 bytes")
		assert.True(t, resp.Close, "the answer has %v", resp.Header)
		synctest.Wait()
		assert.Less(t, endless.read.Load(), int64(2<<20))
		assert.Equal(t, 1<<20+1, fake.Calls()[0].BodyBytes)
	})
}

// spaces is a body without end.
type spaces struct{ read atomic.Int64 }

func (s *spaces) Read(p []byte) (int, error) {
	s.read.Add(int64(len(p)))
	return copy(p, bytes.Repeat([]byte(" "), len(p))), nil
}

// callSeeds are Authorization, Content-Type, Content-Encoding, path and body.
var callSeeds = [][5]string{
	{"Bearer KEY", "application/json", "identity", "/v1/warmup", `{"mode":"byok"}`},
	{"Bearer KEY", "KEY", "KEY", "/v1/agents/KEY/messages", ""},
	{"Bearer KEY", "text/plain; KEY=\"KEY", "gzip", "/v1/agents/%41MK%5Ffake/KEY", "{}"},
	{"Basic KEY", "application/json;;", "br, gzip", "//v1/%2e%2e/status", "null"},
	{"Bearer KEY, Bearer KEY", "application/json", "\x00", "/v1/agents/agent_000001/channels/sms", `{"mode":"sandbox"}`},
	{"Bearer KEY", "application/json", "", "/v1/agents/%61mk_fake_000001", ""},
	{"Bearer KEY", "application/json", "", "/v1/agents/agent_000001/messages", `{"text":"a","text":"b"}`},
	{"Bearer KEY", "application/json", "", "/v1/agents/agent_000001/messages", "{\"text\":\"\xff\"}"},
	{"Bearer KEY", "application/json", "", "/v1/agents", `{"metadata":{"api_key":["x"],"a":{"API_KEY":"y"}}}`},
	{"Bearer KEY", "application/json", "", "/v1/agents", `{"llm":{"api_key":"sk","provider":"openai","label":"\ud800"}}`},
	{"Bearer KEY", "application/json", "", "/v1/agents", `{"metadata":{"a":[[[{"a":1}]]]} } `},
}

// FuzzCall sends any headers and any body to any path. KEY is replaced by the default key.
func FuzzCall(f *testing.F) {
	for _, seed := range callSeeds {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	f.Fuzz(func(t *testing.T, auth, contentType, encoding, path, body string) {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithMessageTexts())
		c.agent(emptyBody)
		fill := func(s string) string { return strings.ReplaceAll(s, "KEY", c.key) }
		u, err := url.Parse(fake.BaseURL() + fill(path))
		if err != nil || u.Scheme+"://"+u.Host != fake.BaseURL() {
			return
		}
		req := c.request("POST", "/", body)
		req.URL = u
		req.Header = http.Header{"Authorization": {fill(auth)}, "Content-Type": {fill(contentType)}, "Content-Encoding": {fill(encoding)}}
		resp, err := c.wire.RoundTrip(req)
		if err != nil { // net/http does not send it, or cannot read it
			require.Regexp(t, "invalid header field value|malformed HTTP", err.Error())
			require.NotContains(t, err.Error(), c.key)
			require.Equal(t, 1, fake.CallCount())
			return
		}
		r := read(t, resp)
		wantDocumented(t, r.status, r.raw)
		require.True(t, r.status == 200 || len(r.raw) < 2000, "a reason is bounded: %d bytes for %d", len(r.raw), r.status)
		require.Equal(t, 2, fake.CallCount())
		call := fake.Calls()[1]
		require.LessOrEqual(t, len(call.Body), 64<<10)
		require.True(t, call.Status != 200 || call.Body == "" || len(call.Body) == 64<<10 || json.Valid([]byte(call.Body)), clipped(call.Body))
		scheme, token, _ := strings.Cut(strings.Trim(fill(auth), " \t"), " ")
		if strings.EqualFold(scheme, "Bearer") && strings.Trim(token, " ") == c.key {
			record, err := json.Marshal(call)
			require.NoError(t, err)
			require.NotContains(t, string(record)+r.raw, c.key)
			unescaped, _ := url.PathUnescape(call.Path) // "" where nothing can unescape it
			require.NotContains(t, unescaped, c.key)
		}
	})
}
