package redisstore_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/pacer/storetest"
	"github.com/agent-messaging-service/agentmessaging-go/redisstore"
)

const key = "agentmessaging:0123456789abcdef"

func TestStore(t *testing.T) {
	server := newServer(t)
	storetest.Run(t, func() pacer.Store { return redisstore.New(server.client(t)) })
}

// TestCluster of one, which refuses a script whose keys are in several slots.
func TestCluster(t *testing.T) {
	t.Parallel() // a new cluster takes no writes for two seconds
	port := clusterPort(t)
	server := newServer(t, "--cluster-enabled", "yes", "--port", fmt.Sprint(port))
	node := server.client(t)
	all := []any{"cluster", "addslots"}
	for slot := range 16384 {
		all = append(all, slot)
	}
	require.NoError(t, node.Do(t.Context(), all...).Err())
	require.Eventually(t, func() bool { return node.Set(t.Context(), "ready", 1, time.Minute).Err() == nil },
		20*time.Second, 50*time.Millisecond)
	storetest.Run(t, func() pacer.Store {
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
		t.Cleanup(func() { cluster.Close() })
		return redisstore.New(cluster)
	})
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

// TestSentinel finds its server by asking a sentinel.
func TestSentinel(t *testing.T) {
	port, at := clusterPort(t), clusterPort(t)
	newServer(t, "--port", fmt.Sprint(port))
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, "port %d\nsentinel monitor m 127.0.0.1 %d 1\n", at, port), 0o600))
	sentinel := exec.Command(program(t), conf, "--sentinel")
	require.NoError(t, sentinel.Start())
	defer sentinel.Wait()
	defer sentinel.Process.Kill()
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{fmt.Sprintf("127.0.0.1:%d", at)}})
	defer client.Close()
	require.Eventually(t, func() bool { return client.Ping(t.Context()).Err() == nil }, 20*time.Second, 50*time.Millisecond)
	storetest.Run(t, func() pacer.Store { return redisstore.New(client) })
}

func TestNilClient(t *testing.T) {
	for _, client := range []redis.Scripter{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := pacer.New(pacer.PreviewLimits(), pacer.WithStore(redisstore.New(client), "key"))
		assert.ErrorContains(t, err, "nil store")
	}
}

// TestRefusalsInWords of real servers.
func TestRefusalsInWords(t *testing.T) {
	for want, test := range map[string]struct {
		args    []string
		prepare []any
		change  func(*redis.Options)
	}{
		"Redis asks for a password":               {args: []string{"--requirepass", "secret"}},
		"may not run EVAL":                        {prepare: []any{"acl", "setuser", "default", "-@scripting"}},
		"on keys agentmessaging:*":                {prepare: []any{"acl", "setuser", "default", "resetkeys", "~other:*"}},
		"this Redis is a replica":                 {prepare: []any{"replicaof", "127.0.0.1", "1"}},
		"the key of the quota holds something":    {prepare: []any{"lpush", key, "x"}},
		"no memory left for the quota":            {args: []string{"--maxmemory", "1"}},
		"redisstore: WRONGPASS":                   {args: []string{"--requirepass", "secret"}, change: func(o *redis.Options) { o.Password = "wrong" }},
		"redisstore: dial unix /nowhere: connect": {change: func(o *redis.Options) { o.Addr = "/nowhere" }},
	} {
		server := newServer(t, test.args...)
		if test.prepare != nil {
			require.NoError(t, server.client(t).Do(t.Context(), test.prepare...).Err(), want)
		}
		var changes []func(*redis.Options)
		if test.change != nil {
			changes = append(changes, test.change)
		}
		store := redisstore.New(server.client(t, changes...))
		_, err := store.Swap(t.Context(), key, "", []byte("x"), time.Minute)
		assert.ErrorContains(t, err, want)
		assert.NotContains(t, fmt.Sprint(err), "secret")
	}
}
