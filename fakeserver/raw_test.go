package fakeserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// dial opens a connection to a fake, for bytes that no client would send.
func dial(t *testing.T, fake *fakeserver.Server) net.Conn {
	t.Helper()
	address := strings.TrimPrefix(fake.BaseURL(), "https://") + ":443"
	c, err := fake.HTTPClient(t).Transport.(*http.Transport).DialTLSContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	return c
}

// exchange sends raw bytes and reads the answers until the fake is done.
func exchange(t *testing.T, fake *fakeserver.Server, raw string) (statuses []int, bodies []string) {
	t.Helper()
	c := dial(t, fake)
	go func() { _, _ = io.WriteString(c, raw); _ = c.(interface{ CloseWrite() error }).CloseWrite() }()
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
		"pipelined":               {status + rest + "GET /v1/x HTTP/1.1\r\n" + rest + "GET /v1/byok HTTP/1.1\r\n" + hostLine + "\r\n", []int{200, 404, 401}},
		"pipelined bodies":        {warmUp("Content-Length: 2\r\n", "{}") + warmUp("Content-Length: 1\r\n", "{") + status + rest, []int{200, 400, 200}},
		"backslash":               {"GET /v1\\status HTTP/1.1\r\n" + rest, []int{404}},
		"agent and zero byte":     {"GET /v1/agents/agent_000001%00 HTTP/1.1\r\n" + rest, []int{404}},
		"escaped letter of an id": {"GET /v1/agents/%61gent_000001 HTTP/1.1\r\n" + rest, []int{200}},
		"braces":                  {"GET /v1/agents/{a} HTTP/1.1\r\n" + rest, []int{404}},
		"method in lower case":    {"get /v1/status HTTP/1.1\r\n" + rest, []int{405}},
		"absolute form":           {"GET http://evil.example/v1/status HTTP/1.1\r\n" + rest, []int{200}},
		"key twice":               {status + ownKey + rest, []int{401}},
		"BEARER, spaces":          {status + hostLine + "Authorization:BEARER   amk_fake_000001  \r\n\r\n", []int{200}},
		"length too great":        {warmUp("Content-Length: 9\r\n", "{}"), []int{400}},
		"length and chunks":       {warmUp("Content-Length: 50\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"), []int{200}},
		"half a chunk":            {warmUp("Transfer-Encoding: chunked\r\n", "9\r\n{}"), []int{400}},
		"announced 1 TiB":         {warmUp("Content-Length: 1099511627776\r\n", "{}"), []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // where net/http waits before it closes
				fake, c := newFake(t, frozen(), fakeserver.WithUnknownRoutes())
				c.agent(emptyBody)
				statuses, bodies := exchange(t, fake, row.raw)
				require.Equal(t, row.want, statuses)
				for i, body := range bodies {
					assert.NotContains(t, body, c.key)
					wantDocumented(t, statuses[i], body)
				}
			})
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

// A body without end is answered when it is longer than 1 MiB, and cut there:
// what is sent behind it goes nowhere.
func TestBodyWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t)
		c := dial(t, fake)
		chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
		sent := make(chan int, 1)
		go func() {
			n, err := io.WriteString(c, warmUp("Transfer-Encoding: chunked\r\n", ""))
			for m := 0; err == nil; n += m {
				m, err = io.WriteString(c, chunk)
			}
			sent <- n
		}()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		read(t, resp).wantReason(t, "body: at most 1048576 bytes")
		assert.True(t, resp.Close, "the answer has %v", resp.Header)
		assert.Less(t, <-sent, 2<<20)
		assert.Equal(t, 1<<20+1, fake.Calls()[0].BodyBytes)
	})
}
