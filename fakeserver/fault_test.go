package fakeserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// socket sends the requests for a fake to a server on a socket.
type socket struct {
	http.RoundTripper
	scheme, host string
}

func (s socket) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host, req.Host = s.scheme, s.host, ""
	return s.RoundTripper.RoundTrip(req)
}

// ways are the four ways to a fake. Over HTTP/1.1 each call has a connection of
// its own: net/http repeats some requests by itself on one that was used before.
func ways(t testing.TB, fake *fakeserver.Server) map[string]http.RoundTripper {
	all := transports(t, fake)
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	all["socket"] = socket{transport, "http", server.Listener.Addr().String()}
	all["wire"].(*http.Transport).DisableKeepAlives = true
	all["HTTP/2"] = overHTTP2(t, fake)
	return all
}

// overHTTP2 is the way to a fake over TLS and HTTP/2.
func overHTTP2(t testing.TB, fake *fakeserver.Server) http.RoundTripper {
	server := httptest.NewUnstartedServer(fake)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return socket{server.Client().Transport, "https", server.Listener.Addr().String()}
}

// class is what a client can tell of an error.
func class(err error) string {
	var op *net.OpError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "ErrUnexpectedEOF"
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, syscall.ECONNRESET) && errors.As(err, &op):
		return "ECONNRESET"
	case errors.Is(err, context.Canceled):
		return "Canceled"
	case strings.Contains(err.Error(), "stream error") && strings.Contains(err.Error(), "INTERNAL_ERROR"):
		return "STREAM"
	}
	return err.Error()
}

// seen is what a client sees of a call: a status or an error, and a body or an
// error.
func seen(wire http.RoundTripper, req *http.Request) string {
	resp, err := wire.RoundTrip(req)
	if err != nil {
		return class(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprint(resp.StatusCode, " ", resp.ContentLength, " ", string(body), " ", class(err))
	}
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Values("Content-Type"), " ", string(body))
}

const (
	whole  = `200 [application/json] {"reply_text":"ok","trace_id":"TRACE"}`
	caught = `,"reason":"injected by the test"}`
)

type faultRow struct {
	fault  fakeserver.Fault
	name   string
	sees   string // over HTTP/1.1
	effect int
	status int // of the call's record
}

// faults are all of them, with what the client sees of a message, and how
// many messages the service then has.
var faults = []faultRow{
	{fakeserver.Answer(503, ""), "Answer(503)", `503 [application/json] {"error":"service_unavailable","trace_id":"TRACE"` + caught, 0, 0},
	{fakeserver.Answer(402, ""), "Answer(402)", `402 [application/json] {"error":"payment_required","trace_id":"TRACE","reason":"the plan of this API key is not active"}`, 0, 0},
	{fakeserver.Answer(599, ""), "Answer(599)", `599 [application/json] {"error":"status_599","trace_id":"TRACE"` + caught, 0, 0},
	{fakeserver.Answer(200, "{}"), "Answer(200, 2 characters)", `200 [application/json] {}`, 0, 0},
	{fakeserver.Answer(204, "x"), "Answer(204, 1 characters)", `204 [] `, 0, 0},
	{fakeserver.RawAnswer(502, "text/html", "<html>"), "RawAnswer(502, 6 characters)", `502 [text/html] <html>`, 0, 0},
	{fakeserver.RawAnswer(200, "", "<html>"), "RawAnswer(200, 6 characters)", `200 [] <html>`, 0, 0},
	{fakeserver.RawAnswer(200, "application/json", ""), "RawAnswer(200)", `200 [application/json] `, 0, 0},
	{fakeserver.RateLimited("7"), `RateLimited("7")`, `429 [application/json] {"error":"rate_limited","trace_id":"TRACE","limit_key":"key_minute"}`, 0, 0},
	{fakeserver.Hang(), "Hang()", "Canceled", 0, 0},
	{fakeserver.CloseEarly(), "CloseEarly()", "EOF", 0, 0},
	{fakeserver.ResetConnection(), "ResetConnection()", "ECONNRESET", 0, 0},
	{fakeserver.Latency(time.Nanosecond), "Latency(1ns)", whole, 1, 200},
	{fakeserver.LoseReply(fakeserver.Answer(504, "")), "LoseReply(Answer(504))", `504 [application/json] {"error":"gateway_timeout","trace_id":"TRACE"` + caught, 1, 200},
	{fakeserver.LoseReply(fakeserver.RawAnswer(502, "text/html", "")), "LoseReply(RawAnswer(502))", `502 [text/html] `, 1, 200},
	{fakeserver.LoseReply(fakeserver.Hang()), "LoseReply(Hang())", "Canceled", 1, 200},
	{fakeserver.LoseReply(fakeserver.CloseEarly()), "LoseReply(CloseEarly())", "EOF", 1, 200},
	{fakeserver.LoseReply(fakeserver.ResetConnection()), "LoseReply(ResetConnection())", "ECONNRESET", 1, 200},
	{fakeserver.TruncateReply(0), "TruncateReply(0)", `200 45  ErrUnexpectedEOF`, 1, 200},
	{fakeserver.TruncateReply(5), "TruncateReply(5)", `200 45 {"rep ErrUnexpectedEOF`, 1, 200},
	{fakeserver.TruncateReply(44), "TruncateReply(44)", `200 45 {"reply_text":"ok","trace_id":"TRACE" ErrUnexpectedEOF`, 1, 200},
	{fakeserver.TruncateReply(45), "TruncateReply(45)", whole, 1, 200},
	{fakeserver.ResetReply(0), "ResetReply(0)", `200 45  ECONNRESET`, 1, 200},
	{fakeserver.ResetReply(5), "ResetReply(5)", `200 45 {"rep ECONNRESET`, 1, 200},
	{fakeserver.ResetReply(1000), "ResetReply(1000)", whole, 1, 200},
	{fakeserver.DripReply(1, 0), "DripReply(1, 0s)", whole, 1, 200},
	{fakeserver.DripReply(44, time.Nanosecond), "DripReply(44, 1ns)", whole, 1, 200},
	{fakeserver.DripReply(1000, time.Hour), "DripReply(1000, 1h0m0s)", whole, 1, 200},
	{fakeserver.GoAway(), "GoAway()", whole, 1, 200},
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
				assert.Len(t, fake.Conversation(agent), row.effect, way)
				assert.Equal(t, 1, injection.Hits(), way)
				call := fake.Calls(fakeserver.ByAgent(agent))[0]
				assert.Equal(t, []any{row.name, row.status, "trace_000002"}, []any{call.Fault, call.Status, call.TraceID}, way)
			}
		})
	}
}

// seen is what the client sees over one way: HTTP/2 ends the stream of a call
// and not its connection, and shows a body that ends too early as HTTP/1.1 does.
func (row *faultRow) seen(way string) string {
	sees := strings.ReplaceAll(row.sees, "TRACE", "trace_000002")
	if way == "HTTP/2" {
		sees = regexp.MustCompile(`(^|\W)(EOF|ECONNRESET)$`).ReplaceAllString(sees, "${1}STREAM")
	}
	return sees
}

// Retry-After and the other headers are the same on every way.
func TestHeadersOfFaults(t *testing.T) {
	const date = "Wed, 21 Oct 2099 07:28:00 GMT"
	for _, row := range []struct {
		fault fakeserver.Fault
		want  string
	}{
		{fakeserver.RateLimited("0.5"), "0.5"},
		{fakeserver.RateLimited(date), date},
		{fakeserver.RateLimited(" soon,\tperhaps "), "soon,\tperhaps"},
		{fakeserver.RateLimited(""), ""},
		{fakeserver.Answer(429, ""), "1"},
		{fakeserver.Answer(429, "{}"), "1"},
		{fakeserver.RawAnswer(429, "", "{}"), ""},
		{fakeserver.RawAnswer(304, "text/html", "x"), ""},
		{fakeserver.Answer(401, ""), ""},
		{fakeserver.Answer(405, ""), ""},
	} {
		fake, c := newFake(t, frozen())
		fake.Inject(row.fault)
		headers := map[string]http.Header{}
		for name, wire := range ways(t, fake) {
			resp, err := wire.RoundTrip(c.request("GET", "/v1/status", noBody))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, row.want, resp.Header.Get("Retry-After"), name)
			resp.Header.Del("Connection") // which ways adds, since it reuses none
			headers[name] = resp.Header
		}
		assert.Equal(t, headers["socket"], headers["wire"], row.fault)
		assert.Equal(t, headers["socket"], headers["direct"], row.fault)
		assert.Equal(t, headers["socket"], headers["HTTP/2"], row.fault)
		assert.NotEmpty(t, headers["direct"].Get("Date"))
	}
}

// Faults in place of a call come before its key and limits, and spend nothing.
// Those behind it act on refusals too.
func TestFaultsOnRefusedCalls(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithLimit("key_minute", 1))
	answer := fake.Inject(fakeserver.Answer(503, ""))
	for _, key := range []string{"", "amk_stranger", c.key} {
		c.with(key).call("POST", "/v1/warmup", emptyBody).wantError(t, 503, "byok_unavailable")
	}
	c.call("GET", "/v1/nothing", noBody).wantError(t, 503, "service_unavailable")
	c.call("POST", "/v1/warmup", "{").wantError(t, 503, "byok_unavailable")
	answer.Remove()
	c.call("POST", "/v1/warmup", emptyBody).wantOK(t)
	c.call("POST", "/v1/warmup", emptyBody).wantError(t, 429, "rate_limited")
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()))
	assert.Equal(t, "EOF", seen(c.wire, c.request("POST", "/v1/warmup", emptyBody)))
	calls := fake.Calls(fakeserver.Where(func(call fakeserver.Call) bool { return call.Fault == "LoseReply(CloseEarly())" }))
	require.Len(t, calls, 1)
	assert.Equal(t, []any{429, "rate_limited"}, []any{calls[0].Status, calls[0].Code})
	assert.Contains(t, calls[0].String(), "LoseReply(CloseEarly())")
}
