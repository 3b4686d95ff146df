package redisquota_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// TestCluster runs on a cluster of one, which refuses a script whose keys are
// in several slots.
func TestCluster(t *testing.T) {
	t.Parallel() // a new cluster takes no writes for two seconds
	port := clusterPort(t)
	server := newServer(t, "--cluster-enabled", "yes", "--port", fmt.Sprint(port))
	node := server.client(t)
	require.NoError(t, node.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	require.Eventually(t, func() bool { return node.Set(t.Context(), "ready", 1, time.Minute).Err() == nil },
		20*time.Second, 50*time.Millisecond)

	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
	defer cluster.Close()
	c, err := redisquota.New(redisquota.GoRedis(cluster), canary)
	require.NoError(t, err)
	allSteps(t, c)
	assert.Len(t, node.Keys(t.Context(), "agentmessaging:*").Val(), 3)
}

// clusterPort is a free port whose companion, 10,000 above, exists.
func clusterPort(tb testing.TB) int {
	tb.Helper()
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		listener.Close()
		if port := listener.Addr().(*net.TCPAddr).Port; port < 55_000 {
			return port
		}
	}
}
