package fakeserver_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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
	fake, _ := newFake(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	for name, wire := range transports(t, fake) {
		for _, url := range []string{"http://example.com", "https://example.com", strings.Replace(fakeURL, "https", "http", 1)} {
			_, err := (&http.Client{Transport: wire}).Get(url + "/v1/status") //nolint:bodyclose // there is none
			assert.ErrorContains(t, err, "reaches only the fake at "+fakeURL, name)
			assert.ErrorContains(t, err, url, name)
		}
	}
}

// The dial error of a client that does not use HTTPClient says so, at once and
// without a name server.
func TestBaseURLNamesWhatIsMissing(t *testing.T) {
	fake, _ := newFake(t)
	assert.Equal(t, fakeURL, fake.BaseURL())
	_, err := (&http.Client{Transport: new(http.Transport)}).Get(fake.BaseURL()) //nolint:bodyclose // there is none
	var missing *net.DNSError
	require.ErrorAs(t, err, &missing)
	assert.True(t, missing.IsNotFound, "%+v", missing)
	assert.ErrorContains(t, err, "WithHTTPClient(fake.HTTPClient(t)).is-missing")
}

// One fake, made outside, serves the wire and Direct in four bubbles and
// outside, at once. Each bubble has its own time, and waits for its own calls.
func TestEveryWayInManyBubbles(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithLimit("key_minute", 60))
	t.Run("group", func(t *testing.T) {
		for _, ip := range []fakeserver.FromIP{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"} {
			key := fake.IssueKey(fakeserver.KeyOptions{})
			t.Run(string(ip), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ways := transports(t, fake, ip)
					spendTogether(t, key, ways)
					var again sync.WaitGroup
					again.Go(func() { time.Sleep(time.Minute); spendTogether(t, key, ways) })
					_, err := fake.AwaitCalls(t.Context(), 2*(60+2), fakeserver.ByKey(key))
					assert.NoError(t, err)
					again.Wait() // a call is recorded before it has its answer
				})
			})
		}
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			spendTogether(t, fake.Key(), transports(t, fake))
			calls, err := fake.AwaitCalls(t.Context(), (4*2+1)*(60+2))
			assert.NoError(t, err, "calls of bubbles wake the outside")
			assert.Len(t, calls, fake.CallCount())
		})
	})
}

// spendTogether spends a limit of 60 over both ways at once: exactly 60 calls
// pass, and then each way is refused.
func spendTogether(t *testing.T, key string, ways map[string]http.RoundTripper) {
	t.Helper()
	var wait sync.WaitGroup
	for _, wire := range ways {
		wait.Go(func() { caller{t, wire, key}.times(60/len(ways), "GET", anAgent, noBody) })
	}
	wait.Wait()
	for _, wire := range ways {
		caller{t, wire, key}.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	}
}

// A client ends with its test, and only when the fake is done with its calls.
// Where that takes 5 s or longer, the log says what it waits for.
func TestClientEndsWithItsTest(t *testing.T) {
	for takes, want := range map[time.Duration][]string{
		4 * time.Second: nil,
		time.Hour:       {"the fake: the cleanup of a client waits for calls under way that do not return: POST /v1/agents"},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake, watch := fakeserver.New(t), new(spy)
			done := false
			fake.Inject(fakeserver.Change("wait", func() { time.Sleep(takes); done = true }))
			c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
			ended := make(chan string)
			go func() { ended <- seen(c.wire, c.request("POST", "/v1/agents", emptyBody)) }()
			synctest.Wait()
			watch.finish()
			assert.NotContains(t, <-ended, "200")
			assert.True(t, done, "the cleanup waits")
			assert.Equal(t, want, watch.logs)
			_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
			assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		})
	}
}

// The bubble's channels are not touched by a Close outside.
func TestCloseOutsideTheBubbleOfAClient(t *testing.T) {
	fake := fakeserver.New(t)
	next, closed := make(chan bool), make(chan bool)
	go func() {
		<-next
		_ = fake.Close()
		close(closed)
	}()
	synctest.Test(t, func(t *testing.T) {
		c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
		c.call("GET", "/v1/status", noBody).wantOK(t)
		close(next)
		<-closed
		_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}
