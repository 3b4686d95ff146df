package fakeserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

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
		if err != nil {
			require.ErrorContains(t, err, "net/http: invalid header field value")
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

// FuzzAnswers makes a fault answer any body, or cuts the service's own answer
// anywhere. The call is recorded with what its client got.
func FuzzAnswers(f *testing.F) {
	f.Add(byte(0), "{\"error\":\"bad\\ngate", 0, `{"nonsense":1}`, true)
	f.Add(byte(1), "", 80, `{"nonsense":1}`, false)
	f.Add(byte(1), "", 17, `{"text":"a\\ \"b\" \ud83d\ude00"}`, true)
	f.Add(byte(2), "<h1>KEY</h1>", 9, `{"text":"KEY"}`, true)
	f.Add(byte(3), "", 3, `{"text":"`+strings.Repeat("é", 2000)+`"}`, true)
	f.Fuzz(func(t *testing.T, kind byte, body string, cut int, sent string, texts bool) {
		opts := []fakeserver.Option{fakeserver.WithUnknownRoutes()}
		if texts {
			opts = append(opts, fakeserver.WithMessageTexts())
		}
		fake, c := newFake(t, opts...)
		agent := c.agent(emptyBody)
		fill := func(s string) string { return strings.ReplaceAll(s, "KEY", c.key) }
		cut = max(0, cut%4096)
		fake.Inject([]fakeserver.Fault{
			fakeserver.RawAnswer(502, "application/json", fill(body)), fakeserver.TruncateReply(cut),
			fakeserver.LoseReply(fakeserver.Answer(500, fill(body))), fakeserver.ResetReply(cut), fakeserver.DripReply(1+cut, 0),
		}[kind%5])
		resp, err := c.wire.RoundTrip(c.request("POST", "/v1/agents/"+agent+"/messages", fill(sent)))
		require.NoError(t, err)
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body) // an error where it was cut
		record := fake.Calls()[1]
		require.Equal(t, []int{resp.StatusCode, len(got)}, []int{record.Sent.Status, record.Sent.Bytes})
		require.NotContains(t, record.Sent.Body+record.ReplyBody+record.Body, c.key)
		require.True(t, utf8.ValidString(record.Sent.Body))
		if texts && kind%5 != 0 && kind%5 != 2 && !strings.Contains(string(got), "amk_fake") && utf8.Valid(got) && len(got) <= 64<<10 {
			require.Equal(t, string(got), record.Sent.Body)
		}
	})
}
