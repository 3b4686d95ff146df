package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// counted counts the writes to a connection.
type counted struct {
	net.Conn
	writes *atomic.Int32
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestOneConnection is kept across refusals, whose bodies are read to the end,
// and a request's body leaves with its header, in one write.
func TestOneConnection(t *testing.T) {
	var dials, writes, requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1)%3 != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"error":"rate_limited"}`)
			return
		}
		io.WriteString(w, okBody)
	}))
	defer server.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counted{conn, &writes}, err
	}}
	defer transport.CloseIdleConnections()
	client := connect(t, server.URL, clienttest.Through(transport), agentmessaging.WithClock(fakeserver.New(t)))
	for _, do := range []clienttest.Do{clienttest.Post, clienttest.Get, clienttest.Post} {
		require.NoError(t, do(t.Context(), client))
	}
	assert.Equal(t, []int32{9, 9, 1}, []int32{requests.Load(), writes.Load(), dials.Load()}, "requests, writes, connections")
}

// TestWarmConnection: on connections that were used before, net/http would send
// a GET again on its own; here the retry policy does, or nobody.
func TestWarmConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		assert.NoError(t, warmThenBroken(t, 3, secure))
		assert.ErrorContains(t, warmThenBroken(t, 1, secure), "ended without an answer")
	}
}

// warmThenBroken opens three connections, and breaks one under a GET.
func warmThenBroken(t *testing.T, attempts int, secure bool) error {
	const warm = 3
	var (
		requests atomic.Int32
		together sync.WaitGroup
	)
	together.Add(warm)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch n := requests.Add(1); {
		case n <= warm:
			together.Done()
			together.Wait()
		case n == warm+1:
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, okBody)
	}))
	defer server.Close()
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	policy := agentmessaging.RetryPolicy{MaxAttempts: attempts, MinWait: time.Microsecond}
	client := connect(t, server.URL, agentmessaging.WithHTTPClient(server.Client()), agentmessaging.WithRetry(policy))
	var group sync.WaitGroup
	for range warm {
		group.Go(func() { assert.NoError(t, clienttest.Get(t.Context(), client)) })
	}
	group.Wait()
	var info agentmessaging.CallInfo
	err := clienttest.Get(agentmessaging.WithCallInfo(t.Context(), &info), client)
	assert.EqualValues(t, info.Attempts, requests.Load()-warm, "what was sent is what is told")
	return err
}
