package agentmessaging_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

func TestNewClientRefusesOptions(t *testing.T) {
	var (
		noLogger   *slog.Logger
		noObserver agentmessaging.ObserverFunc
		noLimiter  *limiterStub
		noPool     *http.Transport
		noJar      *cookiejar.Jar
	)
	for _, tt := range []struct {
		field, given string
		option       agentmessaging.Option
	}{
		{"opts", "nil", nil},
		{"WithHTTPClient", "nil", agentmessaging.WithHTTPClient(nil)},
		{"WithHTTPClient", "a nil transport", agentmessaging.WithHTTPClient(&http.Client{Transport: noPool})},
		{"WithHTTPClient", "a nil jar", agentmessaging.WithHTTPClient(&http.Client{Jar: noJar})},
		{"WithLimiter", "nil", agentmessaging.WithLimiter(nil)},
		{"WithLimiter", "a nil pointer", agentmessaging.WithLimiter(noLimiter)},
		{"WithClock", "nil", agentmessaging.WithClock(nil)},
		{"WithLogger", "a nil pointer", agentmessaging.WithLogger(noLogger)},
		{"WithLogger", "no handler", agentmessaging.WithLogger(new(slog.Logger))},
		{"WithObserver", "nil", agentmessaging.WithObserver(nil)},
		{"WithObserver", "a nil function", agentmessaging.WithObserver(noObserver)},
		{"WithUserAgent", "nothing", agentmessaging.WithUserAgent("")},
		{"WithUserAgent", "another header", agentmessaging.WithUserAgent("shop/1\r\nX: y")},
		{"WithUserAgent", "a letter of two bytes", agentmessaging.WithUserAgent("caf\u00e9/1")},
		{"WithTimeout", "0", agentmessaging.WithTimeout(0)},
		{"WithTimeout", "-1 s", agentmessaging.WithTimeout(-time.Second)},
		{"RetryPolicy.MaxAttempts", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: -1})},
		{"RetryPolicy.MinWait", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: -1})},
		{"RetryPolicy.MaxWait", "-1", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: -1})},
		{"RetryPolicy.MinWait", "more than MaxWait", agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: 2 * time.Minute})},
	} {
		_, err := agentmessaging.NewClient(serviceURL, testKey, tt.option)
		wantInvalid(t, err, tt.field, "", "%s given %s", tt.field, tt.given)
	}
}

// TestWithKeepsKeyAndConnections, and changes what it is told to.
func TestWithKeepsKeyAndConnections(t *testing.T) {
	first, second := answering(okAnswer), answering(okAnswer)
	client := newClient(t, first, agentmessaging.WithUserAgent("shop/1"))
	other, err := client.With(agentmessaging.WithUserAgent("batch/2"), agentmessaging.WithTimeout(time.Hour))
	require.NoError(t, err)
	elsewhere, err := client.With(through(second))
	require.NoError(t, err)
	for _, c := range []*agentmessaging.Client{client, other, elsewhere} {
		require.NoError(t, get(t.Context(), c))
	}
	require.Len(t, first.Sent(), 2)
	require.Len(t, second.Sent(), 1)
	assert.Equal(t, "Bearer "+testKey, first.Sent()[1].Header.Get("Authorization"))
	assert.Regexp(t, "^shop/1 ", first.Sent()[0].UserAgent())
	assert.Regexp(t, "^batch/2 shop/1 ", first.Sent()[1].UserAgent())
	assert.Regexp(t, "^shop/1 ", second.Sent()[0].UserAgent())

	_, err = client.With(nil)
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
	_, err = new(agentmessaging.Client).With()
	assert.ErrorIs(t, err, agentmessaging.ErrInvalid)
}

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct{}

func (stopped) Now() time.Time                             { return time.Unix(0, 0) }
func (stopped) Sleep(context.Context, time.Duration) error { return nil }
