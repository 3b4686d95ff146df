package fakeserver_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// transports are the two in-memory ways to a fake.
func transports(t testing.TB, fake *fakeserver.Server, opts ...fakeserver.ClientOption) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"wire": fake.HTTPClient(t, opts...).Transport, "direct": fake.Direct(opts...)}
}

func TestClientsReachNothingElse(t *testing.T) {
	outside := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(outside.Close)
	t.Setenv("HTTP_PROXY", outside.URL)
	fake, _ := newFake(t)
	assert.Equal(t, fakeURL, fake.BaseURL())
	for name, wire := range transports(t, fake) {
		for _, url := range []string{outside.URL, "http://example.com/v1/status", "https://example.com/v1/status", strings.Replace(fakeURL, "https", "http", 1) + "/v1/status"} {
			_, err := (&http.Client{Transport: wire}).Get(url) //nolint:bodyclose // there is none
			require.Error(t, err, name)
			host := strings.TrimSuffix(url, "/v1/status")
			assert.Contains(t, err.Error(), "reaches only the fake at "+fakeURL, name)
			assert.Contains(t, err.Error(), host, name)
		}
	}
}

// A client that was not given HTTPClient is told so, at once and without a name
// server.
func TestBaseURLNamesWhatIsMissing(t *testing.T) {
	fake, _ := newFake(t)
	_, err := (&http.Client{Transport: new(http.Transport)}).Get(fake.BaseURL()) //nolint:bodyclose // there is none
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	assert.True(t, missing.IsNotFound)
	assert.ErrorContains(t, err, "WithHTTPClient(fake.HTTPClient(t)).is-missing")
}

func TestDirectWithOddRequests(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	roundTrip := func(change func(*http.Request)) (*http.Response, error) {
		req := c.request("POST", "/v1/warmup", "{}")
		change(req)
		return fake.Direct().RoundTrip(req)
	}
	_, err := roundTrip(func(r *http.Request) { r.URL = nil }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "nil Request.URL")
	_, err = roundTrip(func(r *http.Request) { r.URL.Scheme = "http" }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "not http://")
	_, err = roundTrip(func(r *http.Request) { r.ContentLength = 3 }) //nolint:bodyclose // there is none
	assert.ErrorContains(t, err, "ContentLength=3 with Body length 2")
	resp, err := roundTrip(func(r *http.Request) { r.Method, r.Header, r.Body, r.Host = "", http.Header{}, nil, "example.com" })
	require.NoError(t, err)
	read(t, resp).wantError(t, 405, "method_not_allowed")
	resp, err = roundTrip(func(r *http.Request) { r.Method, r.URL.Path = "OPTIONS", "*" })
	require.NoError(t, err)
	read(t, resp).wantError(t, 404, "not_found")
	assert.Equal(t, "GET", fake.Calls()[0].Method)
}

type brokenReader struct{ closed bool }

var errBroken = errors.New("broken")

func (b *brokenReader) Read([]byte) (int, error) { return 0, errBroken }

func (b *brokenReader) Close() error { b.closed = true; return nil }

func TestBodyThatCannotBeRead(t *testing.T) {
	fake, c := newFake(t)
	for name, wire := range transports(t, fake) {
		body := new(brokenReader)
		req := c.request("POST", "/v1/warmup", "{}")
		req.Body, req.ContentLength = body, -1
		_, err := wire.RoundTrip(req) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, errBroken, name)
		assert.True(t, body.closed, name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, wire := range transports(t, fake) {
		_, err := wire.RoundTrip(c.request("GET", "/v1/status", noBody).WithContext(ended)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, context.Canceled, name)
	}
}
