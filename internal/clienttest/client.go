package clienttest

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
)

// The address and the key of every client of New.
const (
	URL = "https://service.example"
	Key = "key-canary-4711"
)

// New returns a client that sends its calls through transport.
func New(t testing.TB, transport http.RoundTripper, opts ...agentmessaging.Option) *agentmessaging.Client {
	return At(t, URL, append([]agentmessaging.Option{Through(transport)}, opts...)...)
}

// At returns a client of the service at an address.
func At(t testing.TB, baseURL string, opts ...agentmessaging.Option) *agentmessaging.Client {
	client, err := agentmessaging.NewClient(baseURL, Key, opts...)
	require.NoError(t, err)
	return client
}

// Through is WithHTTPClient for a transport.
func Through(transport http.RoundTripper) agentmessaging.Option {
	return agentmessaging.WithHTTPClient(&http.Client{Transport: transport})
}

var (
	// Once has a call try once.
	Once = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1})
	// Quick keeps waits on real sockets too short to notice.
	Quick = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: time.Microsecond})
)

// Jitter fixes the random share of every wait, in [0, 1).
func Jitter(random float64) agentmessaging.Option {
	return Random(func() float64 { return random })
}

// Random has random decide the jitter, with values in [0, 1).
func Random(random func() float64) agentmessaging.Option {
	return testoption.WithRandom(random).(agentmessaging.Option)
}
