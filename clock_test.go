package agentmessaging_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// stopped is a clock that stands still, and on which nobody waits.
type stopped struct{ slept time.Duration }

func (*stopped) Now() time.Time  { return time.Unix(0, 0) }
func (*stopped) Random() float64 { return 0 }

func (s *stopped) Sleep(_ context.Context, d time.Duration) error {
	s.slept += d
	return nil
}

// TestCoolDownUnderAClockThatStandsStill: a wait that was waited is over.
func TestCoolDownUnderAClockThatStandsStill(t *testing.T) {
	clock := &stopped{}
	limited(t, "k", []agentmessaging.Option{agentmessaging.WithClock(clock)}, func(t *testing.T, client *agentmessaging.Client, service *gateway) {
		service.close(20*time.Second, agentPath)
		wantRefused(t, client, there, get)
		service.close(0, agentPath)
		wantAfter(t, 0, client, get)
		assert.Equal(t, 20*time.Second, clock.slept)
	})
}

// TestCoolDownInSeveralBubbles: the client is made outside, and what was seen
// by the clock of one bubble holds up nobody by that of another.
func TestCoolDownInSeveralBubbles(t *testing.T) {
	service := &gateway{key: "k"}
	client := newClient(t, service)
	inside := func(t *testing.T) {
		time.Sleep(time.Hour)
		service.close(time.Minute, agentPath)
		wantRefused(t, client, there, get)
		wantRefused(t, client, here, get)
		require.NoError(t, get(t.Context(), client))
		service.close(time.Minute, agentPath)
		wantRefused(t, client, there, get)
	}
	for range 3 {
		synctest.Test(t, inside)
	}
	service.close(time.Hour, agentPath)
	wantRefused(t, client, there, get)
	wantRefused(t, client, here, get)
	synctest.Test(t, inside)
}

// noTime is a clock that refuses to wait.
type noTime struct {
	error
	asked int
}

func (*noTime) Now() time.Time { return time.Now() }

func (n *noTime) Sleep(context.Context, time.Duration) error {
	n.asked++
	return n.error
}

// TestClockThatRefusesToWait ends the call at once, with its reason.
func TestClockThatRefusesToWait(t *testing.T) {
	clock := &noTime{error: errors.New("no time")}
	transport := answering(answer{Status: 503}, clienttest.OK)
	err := get(t.Context(), newClient(t, transport, agentmessaging.WithClock(clock)))
	assert.ErrorIs(t, err, clock.error)
	assert.Equal(t, 1, clock.asked)
	assert.Len(t, transport.Sent(), 1)
}
