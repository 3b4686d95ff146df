package fakeserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// socketLimit bounds what one test does on a socket. It is no measure.
const socketLimit = 20 * time.Second

// listen puts a fake on a socket of this machine, as a program would.
func listen(t *testing.T, fake *fakeserver.Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: fake, ReadHeaderTimeout: socketLimit}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(socketLimit)))
	return c.(*net.TCPConn)
}

// exchange sends raw bytes and reads the answers until the server is done.
func exchange(t *testing.T, address, raw string) (statuses []int, bodies []string) {
	t.Helper()
	c := dial(t, address)
	go func() { _, _ = io.WriteString(c, raw); _ = c.CloseWrite() }()
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
	hostLine  = "Host: x\r\n"
	ownKey    = "Authorization: Bearer amk_fake_000001\r\n"
	lineBreak = "\r\n"
	twoOh     = hostLine + ownKey + lineBreak
)

// Bytes that no decent client sends. Where net/http does not answer by itself,
// the answer is one of the service's.
func TestHostileRequests(t *testing.T) {
	for name, row := range map[string]struct {
		raw  string
		want []int
	}{
		"a decent one":            {"GET /v1/status HTTP/1.1\r\n" + twoOh, []int{200}},
		"pipelined":               {"GET /v1/status HTTP/1.1\r\n" + twoOh + "GET /v1/x HTTP/1.1\r\n" + twoOh + "GET /v1/byok HTTP/1.1\r\n" + hostLine + lineBreak, []int{200, 404, 401}},
		"pipelined bodies":        {post("Content-Length: 2\r\n", "{}") + post("Content-Length: 1\r\n", "{") + "GET /v1/status HTTP/1.1\r\n" + twoOh, []int{200, 400, 200}},
		"two slashes":             {"GET //v1/status HTTP/1.1\r\n" + twoOh, []int{404}},
		"slashes inside":          {"GET /v1//status HTTP/1.1\r\n" + twoOh, []int{404}},
		"slash behind":            {"GET /v1/status/ HTTP/1.1\r\n" + twoOh, []int{404}},
		"dots":                    {"GET /v1/x/../status HTTP/1.1\r\n" + twoOh, []int{404}},
		"escaped dots":            {"GET /v1/x/%2e%2e/status HTTP/1.1\r\n" + twoOh, []int{404}},
		"escaped slash":           {"GET /v1%2Fstatus HTTP/1.1\r\n" + twoOh, []int{404}},
		"backslash":               {"GET /v1\\status HTTP/1.1\r\n" + twoOh, []int{404}},
		"dots as an agent":        {"GET /v1/agents/%2e%2e HTTP/1.1\r\n" + twoOh, []int{404}},
		"dots to a sibling":       {"GET /v1/agents/agent_000001/%2e%2e/agent_000001 HTTP/1.1\r\n" + twoOh, []int{404}},
		"escaped way out":         {"GET /v1/agents/..%2Fbyok HTTP/1.1\r\n" + twoOh, []int{404}},
		"agent and slash":         {"GET /v1/agents/agent_000001%2F HTTP/1.1\r\n" + twoOh, []int{404}},
		"agent and zero byte":     {"GET /v1/agents/agent_000001%00 HTTP/1.1\r\n" + twoOh, []int{404}},
		"escaped letter of an id": {"GET /v1/agents/%61gent_000001 HTTP/1.1\r\n" + twoOh, []int{200}},
		"other case":              {"GET /V1/STATUS HTTP/1.1\r\n" + twoOh, []int{404}},
		"method in lower case":    {"get /v1/status HTTP/1.1\r\n" + twoOh, []int{405}},
		"absolute form":           {"GET http://evil.example/v1/status HTTP/1.1\r\n" + twoOh, []int{200}},
		"absolute, path trick":    {"GET http://evil.example//v1/status HTTP/1.1\r\n" + twoOh, []int{404}},
		"asterisk":                {"GET * HTTP/1.1\r\n" + twoOh, []int{404}},
		"tunnel":                  {"CONNECT evil.example:443 HTTP/1.1\r\n" + twoOh, []int{404}},
		"key twice":               {"GET /v1/status HTTP/1.1\r\n" + ownKey + twoOh, []int{401}},
		"key twice, other case":   {"GET /v1/status HTTP/1.1\r\nAUTHORIZATION: Bearer amk_fake_000001\r\n" + twoOh, []int{401}},
		"bEaReR":                  {"GET /v1/status HTTP/1.1\r\n" + hostLine + "authorization: bEaReR amk_fake_000001\r\n\r\n", []int{200}},
		"BEARER, spaces":          {"GET /v1/status HTTP/1.1\r\n" + hostLine + "Authorization:BEARER   amk_fake_000001  \r\n\r\n", []int{200}},
		"folded line":             {"GET /v1/status HTTP/1.1\r\n" + hostLine + "Authorization: Bearer\r\n amk_fake_000001\r\n\r\n", []int{200}},
		"HTTP/1.0":                {"GET /v1/status HTTP/1.0\r\n" + ownKey + lineBreak, []int{200}},
		"HTTP/1.0, kept":          {"GET /v1/status HTTP/1.0\r\nConnection: keep-alive\r\n" + ownKey + lineBreak + "GET /v1/x HTTP/1.0\r\n\r\n", []int{200, 404}},
		"length too great":        {post("Content-Length: 9\r\n", "{}"), []int{400}},
		"length and chunks":       {post("Content-Length: 50\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), []int{200}},
		"half a chunk":            {post("Transfer-Encoding: chunked\r\n", "9\r\n{}"), []int{400}},
		"chunk size too great":    {post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n{}"), []int{400}},
		"announced 1 TiB":         {post("Content-Length: 1099511627776\r\n", "{}"), []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			fake, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes())
			c.agent(emptyBody)
			statuses, bodies := exchange(t, listen(t, fake), row.raw)
			require.Equal(t, row.want, statuses)
			for i, body := range bodies {
				assert.NotContains(t, body, c.key)
				wantDocumented(t, statuses[i], body)
			}
		})
	}
}

func post(headers, body string) string {
	return "POST /v1/warmup HTTP/1.1\r\n" + headers + twoOh + body
}

// wantDocumented checks that an answer has one of the statuses of interface 7
// and the body that goes with it.
func wantDocumented(t *testing.T, status int, body string) {
	t.Helper()
	require.Contains(t, []int{200, 400, 401, 402, 403, 404, 405, 409, 429, 503}, status)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &parsed), body)
	require.NotEmpty(t, parsed["trace_id"])
	require.Equal(t, status != 200, parsed["error"] != nil, body)
}
