package fakeserver_test

import (
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
func transports(t testing.TB, fake *fakeserver.Server, opts ...fakeserver.FromIP) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"wire": fake.HTTPClient(t, opts...).Transport, "direct": fake.Direct(opts...)}
}

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
