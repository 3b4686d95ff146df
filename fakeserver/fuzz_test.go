package fakeserver_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	endpoints := []struct {
		method, path string
		statuses     []int
	}{
		{"POST", "/v1/warmup", []int{200, 400, 409}},
		{"PUT", "/v1/byok", []int{200, 400}},
		{"POST", "/v1/agents", []int{200, 400}},
		{"POST", "/v1/agents/agent_000001/messages", []int{200, 400}},
		{"POST", "/v1/agents/agent_000001/channels/sms", []int{200, 400}},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fake, c := newFake(t)
		c.agent(emptyBody)
		for _, e := range endpoints {
			req := c.request(e.method, e.path, string(body))
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			resp, err := c.wire.RoundTrip(req)
			require.NoError(t, err)
			r := read(t, resp)
			require.Contains(t, e.statuses, r.status, r.raw)
			if r.status == 400 {
				require.NotEmpty(t, r.text("error"))
				require.NotEmpty(t, r.text("reason"))
				require.Less(t, len(r.raw), 2000, "a reason is bounded")
			}
		}
		require.Equal(t, 1+len(endpoints), fake.CallCount())
		for _, call := range fake.Calls() {
			require.LessOrEqual(t, len(call.Body), 64<<10)
			if call.Status == 200 && call.Body != "" {
				require.True(t, len(call.Body) == 64<<10 || json.Valid([]byte(call.Body)), call.Body)
			}
		}
	})
}
