package fakeserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

const (
	whole   = `200 [application/json] {"reply_text":"ok","trace_id":"TRACE"}`
	caught  = `,"reason":"injected by the test"}`
	limited = `{"error":"rate_limited","trace_id":"TRACE","limit_key":"key_minute"}`
	date    = "Wed, 21 Oct 2099 07:28:00 GMT"
)

type faultRow struct {
	fault fakeserver.Fault
	name  string
	sees  string // over HTTP/1.1
	line  string // what the record says: what was sent, and what the service had decided
	runs  int    // how often the call reaches the service: 1, or 0
}

// faults are all of them, with what the client sees of a message.
var faults = []faultRow{
	{fakeserver.Answer(503, ""), "Answer(503)", `503 [application/json] {"error":"service_unavailable","trace_id":"TRACE"` + caught, "503", 0},
	{fakeserver.Answer(204, "x"), "Answer(204, 1 characters)", `204 [] `, "204", 0},
	{fakeserver.RawAnswer(502, "text/html", "<html>"), "RawAnswer(502, 6 characters)", `502 [text/html] <html>`, "502", 0},
	{fakeserver.RawAnswer(200, "", "<html>"), "RawAnswer(200, 6 characters)", `200 [] <html>`, "200", 0},
	{fakeserver.RateLimited(date), "RateLimited(29 characters)", `429 [application/json ` + date + `] {"error":"rate_limited","trace_id":"TRACE","limit_key":"key_day"}`, "429", 0},
	{fakeserver.RateLimited(" soon,\tperhaps "), "RateLimited(15 characters)", "429 [application/json soon,\tperhaps] " + limited, "429", 0},
	{fakeserver.Answer(429, ""), "Answer(429)", `429 [application/json 1] ` + limited, "429", 0},
	{fakeserver.RawAnswer(304, "text/html", "x"), "RawAnswer(304, 1 characters)", `304 [] `, "304", 0},
	{fakeserver.Hang(), "Hang()", "Canceled", "no answer, hung", 0},
	{fakeserver.CloseEarly(), "CloseEarly()", "EOF", "no answer, closed", 0},
	{fakeserver.ResetConnection(), "ResetConnection()", "ECONNRESET", "no answer, reset", 0},
	{fakeserver.Latency(time.Nanosecond), "Latency(1ns)", whole, "200", 1},
	{fakeserver.LoseReply(fakeserver.Answer(504, "")), "LoseReply(Answer(504))", `504 [application/json] {"error":"gateway_timeout","trace_id":"TRACE"` + caught, "504, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.RawAnswer(502, "text/html", "")), "LoseReply(RawAnswer(502))", `502 [text/html] `, "502, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.Hang()), "LoseReply(Hang())", "Canceled", "no answer, hung, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.CloseEarly()), "LoseReply(CloseEarly())", "EOF", "no answer, closed, decided 200", 1},
	{fakeserver.LoseReply(fakeserver.ResetConnection()), "LoseReply(ResetConnection())", "ECONNRESET", "no answer, reset, decided 200", 1},
	{fakeserver.TruncateReply(5), "TruncateReply(5)", `200 45 {"rep ErrUnexpectedEOF`, "200, closed after 5 bytes", 1},
	{fakeserver.TruncateReply(45), "TruncateReply(45)", whole, "200", 1},
	{fakeserver.ResetReply(5), "ResetReply(5)", `200 45 {"rep ECONNRESET`, "200, reset after 5 bytes", 1},
	{fakeserver.DripReply(1, 0), "DripReply(1, 0s)", whole, "200", 1},
	{fakeserver.DripReply(44, time.Nanosecond), "DripReply(44, 1ns)", whole, "200", 1},
	{fakeserver.GoAway(), "GoAway()", whole, "200", 1},
}

// Each fault looks the same on every way, and has or has no effect as it says.
func TestFaults(t *testing.T) {
	for _, row := range faults {
		t.Run(row.name, func(t *testing.T) {
			assert.Equal(t, row.name, row.fault.String())
			for _, way := range []string{"wire", "direct", "socket", "HTTP/2"} {
				fake, c := newFake(t)
				fake.OnMessage().Reply("ok")
				agent := c.agent(emptyBody)
				c.wire = ways(t, fake)[way]
				injection := fake.Inject(row.fault, fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Required()
				ctx, cancel := context.WithCancel(t.Context())
				if strings.Contains(row.name, "Hang") {
					go func() {
						_, _ = fake.AwaitCalls(ctx, 1, fakeserver.ByAgent(agent))
						cancel()
					}()
				}
				got := seen(c.wire, c.request("POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).WithContext(ctx))
				cancel()
				assert.Equal(t, row.seen(way), got, way)
				assert.Equal(t, 1, injection.Hits(), way)
				call := fake.Calls(fakeserver.ByAgent(agent))[0]
				assert.Regexp(t, "^trace_000002 POST /v1/agents/agent_000001/messages key_000001: "+row.line+`( \[|[a-z_ ()]*: )`+regexp.QuoteMeta(row.name), call.String(), way)
				assert.Len(t, fake.Conversation(agent), row.runs, way)
				assert.Equal(t, 200*row.runs, call.Status, way)
			}
		})
	}
}

// seen returns the outcome that the client should see over one transport: HTTP/2
// ends the stream of a call and not its connection, and shows a body that ends too
// early as HTTP/1.1 does.
func (row *faultRow) seen(way string) string {
	sees := strings.ReplaceAll(row.sees, "TRACE", "trace_000002")
	if way == "HTTP/2" {
		sees = regexp.MustCompile(`(^|\W)(EOF|ECONNRESET)$`).ReplaceAllString(sees, "${1}STREAM")
	}
	return sees
}

// A body that the fake does not read to its end hides from net/http that the
// client has left: a hang must end all the same.
func TestFaultsWithEndlessBodies(t *testing.T) {
	fake, c := newFake(t)
	fake.Inject(fakeserver.Hang())
	for name, wire := range ways(t, fake) {
		ctx, cancel := context.WithCancel(t.Context())
		done := fake.CallCount() + 1
		go func() {
			_, _ = fake.AwaitCalls(ctx, done)
			cancel()
		}()
		got := seen(wire, c.request("POST", "/v1/warmup", strings.Repeat(" ", 3<<20)).WithContext(ctx))
		assert.Equal(t, "Canceled", got, name)
	}
}

// The way below TLS is cut, not closed politely.
func TestFaultsOverTLS(t *testing.T) {
	fake, c := newFake(t)
	server := httptest.NewTLSServer(fake)
	defer server.Close()
	wire := socket{server.Client().Transport, "https", server.Listener.Addr().String()}
	fake.Inject(fakeserver.ResetConnection())
	assert.Equal(t, "ECONNRESET", seen(wire, c.request("POST", "/v1/warmup", emptyBody)))
	assert.Equal(t, server.URL+"/v1/warmup", fake.Calls()[0].URL)
}

// Behind GoAway the next calls take another connection, and none is lost.
func TestGoAway(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	for name, wire := range map[string]http.RoundTripper{"wire": fake.HTTPClient(t).Transport, "HTTP/2": overHTTP2(t, fake)} {
		call := func() (reused bool) {
			trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
			req := c.request("POST", "/v1/agents", emptyBody)
			assert.Contains(t, seen(wire, req.WithContext(httptrace.WithClientTrace(t.Context(), trace))), "200", name)
			return reused
		}
		call()
		require.True(t, call(), "the connection is kept")
		before := len(fake.Agents())
		leaving := fake.Inject(fakeserver.GoAway()).Times(1)
		require.True(t, call(), "the answer still comes over it")
		calls := 2
		for ; call(); calls++ { // the GOAWAY may come behind the answer
			require.Less(t, calls, 10_000, "no new connection")
		}
		assert.Equal(t, 1, leaving.Hits(), name)
		assert.Len(t, fake.Agents(), before+calls, name)
	}
}
