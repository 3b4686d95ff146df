package fakeserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The tests run for a short time, and spent a third of it on collecting garbage.
func init() { debug.SetGCPercent(400) }

// caller makes calls with one key.
type caller struct {
	t    testing.TB
	wire http.RoundTripper
	key  string
}

// newFake returns a fake and a caller with its default key.
func newFake(t testing.TB, opts ...fakeserver.Option) (*fakeserver.Server, caller) {
	t.Helper()
	fake := fakeserver.New(t, opts...)
	return fake, caller{t, fake.Direct(), fake.Key()}
}

func (c caller) with(key string) caller { c.key = key; return c }

func (c caller) from(fake *fakeserver.Server, ip string) caller {
	c.wire = fake.Direct(fakeserver.FromIP(ip))
	return c
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r reply) text(name string) string { s, _ := r.body[name].(string); return s }

// call sends a request; header lines are "Name: value".
func (c caller) call(method, path, body string, header ...string) reply {
	c.t.Helper()
	resp, err := c.wire.RoundTrip(c.request(method, path, body, header...))
	require.NoError(c.t, err)
	return read(c.t, resp)
}

func (c caller) request(method, path, body string, header ...string) *http.Request {
	c.t.Helper()
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, fakeURL+path, sent)
	require.NoError(c.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	return req
}

func read(t testing.TB, resp *http.Response) reply {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	r := reply{status: resp.StatusCode, header: resp.Header, raw: string(raw)}
	require.NoError(t, json.Unmarshal(raw, &r.body), string(raw))
	require.NotEmpty(t, r.text("trace_id"), "every answer carries a trace_id")
	return r
}

// clipped returns the first 80 bytes of an answer, for the message of a failure.
func clipped(text string) string { return text[:min(len(text), 80)] }

// agent creates an agent and returns its identifier.
func (c caller) agent(body string) string {
	c.t.Helper()
	r := c.call("POST", "/v1/agents", body)
	require.Equal(c.t, 200, r.status, clipped(r.raw))
	return r.text("agent_id")
}

func (c caller) send(agentID, text string) reply {
	c.t.Helper()
	return c.call("POST", "/v1/agents/"+agentID+"/messages", fmt.Sprintf(`{"text":%q}`, text))
}

// setBYOK stores a provider key, which must work.
func (c caller) setBYOK() {
	c.t.Helper()
	c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary"}`).wantOK(c.t)
}

// wantError checks a refusal.
func (r reply) wantError(t testing.TB, status int, code string) {
	t.Helper()
	require.Equal(t, status, r.status, clipped(r.raw))
	require.Equal(t, code, r.text("error"), clipped(r.raw))
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	require.Equal(t, status == 401, r.header.Get("WWW-Authenticate") == "Bearer")
}

func (r reply) wantLimited(t testing.TB, limitKey, retryAfter string) {
	t.Helper()
	r.wantError(t, 429, "rate_limited")
	require.Equal(t, limitKey, r.text("limit_key"))
	require.Equal(t, retryAfter, r.header.Get("Retry-After"))
}

func (r reply) wantOK(t testing.TB) {
	t.Helper()
	require.Equal(t, 200, r.status, clipped(r.raw))
}

// class names the kind of an error as a client can find it with errors.Is. An error with the
// host name is-missing has no class: it means that the client did not reach the fake.
func class(err error) string {
	for _, kind := range []struct {
		name string
		err  error
	}{
		{"ErrUnexpectedEOF", io.ErrUnexpectedEOF}, {"EOF", io.EOF}, {"ECONNRESET", syscall.ECONNRESET},
		{"Canceled", context.Canceled}, {"DeadlineExceeded", context.DeadlineExceeded},
	} {
		if errors.Is(err, kind.err) && !strings.Contains(err.Error(), "is-missing") {
			return kind.name
		}
	}
	if strings.Contains(err.Error(), "stream error") && strings.Contains(err.Error(), "INTERNAL_ERROR") {
		return "STREAM"
	}
	return err.Error()
}

// seen makes a call and returns its outcome for the client: a status or an error,
// some headers, and a body or an error.
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
	return fmt.Sprint(resp.StatusCode, " ", slices.Concat(resp.Header.Values("Content-Type"), resp.Header.Values("Retry-After"), resp.Header.Values("Allow")), " ", string(body))
}

const (
	fakeURL   = "https://WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid"
	year2040  = 2208988800 // Unix time
	noBody    = ""
	emptyBody = "{}"
)
