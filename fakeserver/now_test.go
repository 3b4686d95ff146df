package fakeserver_test

import (
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// TestNow: the clock of WithClock and what Advance has added, in UTC, from the
// fake and from the connections of all its clients.
func TestNow(t *testing.T) {
	base := time.Date(2030, 1, 1, 1, 0, 0, 0, time.FixedZone("east", 3600))
	fake := fakeserver.New(t, fakeserver.WithClock(func() time.Time { return base }))
	fake.Advance(90 * time.Minute)
	want := time.Date(2030, 1, 1, 1, 30, 0, 0, time.UTC)
	assert.Equal(t, want, fake.Now())
	for _, transport := range []http.RoundTripper{
		fake.HTTPClient(t, fakeserver.FromIP("203.0.113.7")).Transport, fake.Direct(fakeserver.FromIP("203.0.113.7")),
	} {
		var conn net.Conn
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { conn = info.Conn }})
		req, err := http.NewRequestWithContext(ctx, "GET", fake.BaseURL()+"/v1/status", nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(req)
		require.NoError(t, err)
		resp.Body.Close()
		knows, ok := conn.(interface{ Now() time.Time })
		require.True(t, ok)
		assert.Equal(t, want, knows.Now())
	}
}
