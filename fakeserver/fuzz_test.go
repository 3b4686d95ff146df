package fakeserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// FuzzBody sends any bytes to every endpoint that takes a body.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", `{"text":"hello"}`, `{"text":"a","text":"b"}`, `{"mode":"byok"}`, `{"mode":"sandbox"}`,
		`{"provider":"openai","api_key":"sk"}`, `{"metadata":{"api_key":["x"],"a":{"API_KEY":"y"}}}`,
		`{"llm":{"api_key":"sk","provider":"openai","label":"\ud800"}}`, "{\"text\":\"\xff\"}", `{"metadata":{"a":[[[{"a":1}]]]} } `,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fake, c := newFake(t)
		c.agent(emptyBody)
		for _, endpoint := range []fakeserver.Endpoint{
			fakeserver.EndpointWarmUp, fakeserver.EndpointSetBYOK, fakeserver.EndpointCreateAgent, fakeserver.EndpointSendMessage, fakeserver.EndpointEnableSMS,
		} {
			method, path, _ := strings.Cut(string(endpoint), " ")
			r := c.call(method, strings.ReplaceAll(path, "{agent_id}", "agent_000001"), string(body))
			wantDocumented(t, r.status, r.raw)
			require.True(t, r.status == 200 || len(r.raw) < 2000, "a reason is bounded: %d bytes for %d", len(r.raw), r.status)
		}
		require.Equal(t, 6, fake.CallCount())
		for _, call := range fake.Calls() {
			require.LessOrEqual(t, len(call.Body), 64<<10)
			if call.Status == 200 && call.Body != "" {
				require.True(t, len(call.Body) == 64<<10 || json.Valid([]byte(call.Body)), clipped(call.Body))
			}
		}
	})
}

var headerSeeds = [][4]string{
	{"Bearer KEY", "application/json", "identity", "/v1/warmup"},
	{"Bearer KEY", "KEY", "KEY", "/v1/agents/KEY/messages"},
	{"Bearer KEY", "text/plain; KEY=\"KEY", "gzip", "/v1/agents/%41MK%5Ffake/KEY"},
	{"Basic KEY", "application/json;;", "br, gzip", "//v1/%2e%2e/status"},
	{"Bearer KEY, Bearer KEY", "application/json", "\x00", "/v1/agents/agent_000001/channels/sms"},
	{"Bearer KEY", "application/json", "", "/v1/agents/%61mk_fake_000001"},
}

// FuzzHeaders sends any headers to any path. KEY stands for the default key.
func FuzzHeaders(f *testing.F) {
	for _, seed := range headerSeeds {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, auth, contentType, encoding, path string) {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithMessageTexts())
		c.agent(emptyBody)
		fill := func(s string) string { return strings.ReplaceAll(s, "KEY", c.key) }
		u, err := url.Parse(fake.BaseURL() + fill(path))
		if err != nil || u.Scheme+"://"+u.Host != fake.BaseURL() {
			return
		}
		req := c.request("POST", "/", `{"mode":"sandbox"}`)
		req.URL = u
		req.Header = http.Header{"Authorization": {fill(auth)}, "Content-Type": {fill(contentType)}, "Content-Encoding": {fill(encoding)}}
		resp, err := c.wire.RoundTrip(req)
		if err != nil {
			require.ErrorContains(t, err, "net/http: invalid header field value")
			require.NotContains(t, err.Error(), c.key)
			require.Equal(t, 1, fake.CallCount())
			return
		}
		r := read(t, resp)
		wantDocumented(t, r.status, r.raw)
		require.Less(t, len(r.raw), 2000)
		require.Equal(t, 2, fake.CallCount())
		scheme, token, _ := strings.Cut(strings.Trim(fill(auth), " \t"), " ")
		if strings.EqualFold(scheme, "Bearer") && strings.Trim(token, " ") == c.key {
			record, err := json.Marshal(fake.Calls()[1])
			require.NoError(t, err)
			require.NotContains(t, string(record)+r.raw, c.key)
			unescaped, _ := url.PathUnescape(fake.Calls()[1].Path) // "" where nothing can unescape it
			require.NotContains(t, unescaped, c.key)
		}
	})
}
