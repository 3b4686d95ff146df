package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestAdvanceEndsTheCoolDown of a client that has the fake's clock, or hears it
// from the fake's connections.
func TestAdvanceEndsTheCoolDown(t *testing.T) {
	wrapped := func(t *testing.T, fake *fakeserver.Server) (string, http.RoundTripper) {
		return fake.BaseURL(), struct{ http.RoundTripper }{fake.HTTPClient(t).Transport}
	}
	socket := func(t *testing.T, fake *fakeserver.Server) (string, http.RoundTripper) {
		server := httptest.NewServer(fake)
		t.Cleanup(server.Close)
		return server.URL, nil
	}
	for name, way := range map[string]wayToFake{"wire": overMemory, "direct": directly, "wrapped": wrapped, "socket": socket} {
		t.Run(name, func(t *testing.T) {
			fake := fakeserver.New(t)
			fake.Advance(48 * time.Hour) // its clock and the machine's are apart from the start
			opts := []agentmessaging.Option{clienttest.Once}
			if name == "socket" {
				opts = append(opts, agentmessaging.WithClock(fake))
			}
			client := clientBy(t, fake, way, opts...)
			fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
			assert.ErrorIs(t, clienttest.Get(t.Context(), client), agentmessaging.ErrRateLimited)
			fake.Advance(time.Hour / 2)
			told, _ := agentmessaging.RetryAfter(clienttest.Get(t.Context(), client))
			assert.InDelta(t, 23*time.Hour+time.Hour/2, told, float64(time.Minute))
			assert.Equal(t, 1, fake.CallCount(), "the second was refused here")
			fake.Advance(24 * time.Hour)
			assert.ErrorIs(t, clienttest.Get(t.Context(), client), agentmessaging.ErrNotFound)
			assert.Equal(t, 2, fake.CallCount(), "calls that reached the service")
		})
	}
}
