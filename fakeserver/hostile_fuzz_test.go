package fakeserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// FuzzHeaders sends any headers to any path. KEY stands for the default key.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][4]string{
		{"Bearer KEY", "application/json", "identity", "/v1/warmup"},
		{"bearer  KEY ", "application/json; charset=utf-8", "", "/v1/agents"},
		{"Bearer KEY", "KEY", "KEY", "/v1/agents/KEY/messages"},
		{"Bearer KEY", "text/plain; KEY=\"KEY", "gzip", "/v1/agents/%41MK%5Ffake/KEY"},
		{"Basic KEY", "application/json;;", "br, gzip", "//v1/%2e%2e/status"},
		{"Bearer KEY, Bearer KEY", "application/json", "\x00", "/v1/agents/agent_000001/channels/sms"},
		{"", "", "", "/v1/agents/..%2Fbyok?KEY"},
		{"Bearer KEY", "application/json", "", "/v1/agents/%61mk_fake_000001"},
	} {
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
			shown := fmt.Sprintf("%+v", fake.Calls()[1]) + r.raw
			require.NotContains(t, shown, c.key)
			unescaped, err := url.PathUnescape(fake.Calls()[1].Path)
			require.True(t, err != nil || !strings.Contains(unescaped, c.key), "escaped")
		}
	})
}
