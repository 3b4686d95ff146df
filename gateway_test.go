package agentmessaging_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// gateway answers each path with 429 until its time, by the clock of the
// bubble, and counts the requests.
type gateway struct {
	mu    sync.Mutex
	until map[string]time.Time
	key   string // limit_key; empty: none
	came  int
	last  *http.Request
}

func (g *gateway) RoundTrip(req *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came, g.last = g.came+1, req
	if left := time.Until(g.until[req.URL.Path]); left > 0 {
		return answering(clienttest.Limited(fmt.Sprint(left.Seconds()), g.key)).RoundTrip(req)
	}
	return answering(clienttest.OK).RoundTrip(req)
}

func (g *gateway) close(d time.Duration, paths ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		g.until = map[string]time.Time{}
	}
	for _, path := range paths {
		g.until[path] = time.Now().Add(d)
	}
}

func (g *gateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.came
}

// The paths that get and post call.
const agentPath, messagesPath = "/v1/agents/agent_1", "/v1/agents/agent_1/messages"

// limited runs a test in virtual time: a client, with the least jitter unless
// opts say otherwise, of a gateway whose 429s have the limit_key.
func limited(t *testing.T, key string, opts options, test func(t *testing.T, client *agentmessaging.Client, service *gateway)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := &gateway{key: key}
		test(t, newClient(t, service, append(options{clienttest.Jitter(0)}, opts...)...), service)
	})
}

// Who refused a call.
const here, there = true, false

// wantRefused makes one call that is refused by the service or here. The caller
// is too impatient to wait for the end of a cool-down.
func wantRefused(t *testing.T, client *agentmessaging.Client, local bool, do clienttest.Do) *agentmessaging.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := do(ctx, client)
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	require.ErrorIs(t, err, agentmessaging.ErrRateLimited)
	require.Equal(t, local, failure.Local, "refused here")
	return failure
}

// wantAfter makes one call that succeeds after a wait, and nothing earlier.
func wantAfter(t *testing.T, wait time.Duration, client *agentmessaging.Client, do clienttest.Do) {
	t.Helper()
	var info agentmessaging.CallInfo
	begin := time.Now()
	require.NoError(t, do(agentmessaging.WithCallInfo(t.Context(), &info), client))
	assert.Equal(t, wait, time.Since(begin))
	assert.Equal(t, wait, info.Waited)
}
