package redisstore_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// The cluster has one server. Even so it would refuse a script whose keys are in several slots.
func TestCluster(t *testing.T) {
	t.Parallel() // a new cluster takes no writes for two seconds
	port := freePort(t)
	node := newServer(t, "--cluster-enabled", "yes", "--port", fmt.Sprint(port)).client(t)
	require.NoError(t, node.ClusterAddSlotsRange(t.Context(), 0, 16383).Err())
	takesWrites := func() bool { return node.Set(t.Context(), "ready", 1, time.Minute).Err() == nil }
	require.Eventually(t, takesWrites, 20*time.Second, 50*time.Millisecond)
	storetest.Run(t, func() pacer.Store {
		cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{fmt.Sprintf("127.0.0.1:%d", port)}})
		t.Cleanup(func() { cluster.Close() })
		return redisstore.New(cluster)
	})
}

// freePort returns a port that is free together with the one 10,000 above it, which a cluster
// also uses.
func freePort(tb testing.TB) int {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(tb, err)
		port := listener.Addr().(*net.TCPAddr).Port
		listener.Close()
		if above, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10_000)); err == nil {
			above.Close()
			return port
		}
	}
}

func TestNilClient(t *testing.T) {
	for _, client := range []redis.Scripter{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := pacer.New(pacer.PreviewLimits(), pacer.WithStore(redisstore.New(client), "key"))
		assert.ErrorContains(t, err, "nil store", "%T", client)
	}
}

// TestRefusal checks that an error has the server's words, and no password.
func TestRefusal(t *testing.T) {
	options := recommended(newServer(t, "--requirepass", "secret").socket, time.Minute)
	options.Password = "canary-4711"
	client := redis.NewClient(options)
	defer client.Close()
	_, err := redisstore.New(client).Swap(t.Context(), key, "", []byte("x"), time.Minute)
	assert.ErrorContains(t, err, "redisstore: WRONGPASS")
	assert.NotContains(t, err.Error(), options.Password)
	_, _, _, err = redisstore.New(client).Load(t.Context(), key)
	assert.ErrorContains(t, err, "redisstore: WRONGPASS")
}

// Redis refuses a ttl of 0, which a ttl below a millisecond would be in whole milliseconds.
func TestTTLBelowAMillisecond(t *testing.T) {
	swapped, err := redisstore.New(newServer(t).client(t)).Swap(t.Context(), key, "", []byte("x"), time.Nanosecond)
	assert.NoError(t, err)
	assert.True(t, swapped, "the value was set")
}

// server is a process of redis-server, or of the program that REDIS_SERVER names, on a socket
// that no other uses.
type server struct {
	socket  string
	args    []string
	process *exec.Cmd
}

// newServer starts a server for the test.
func newServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	// Not tb.TempDir: the name of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "redisstore")
	require.NoError(tb, err)
	s := &server{socket: filepath.Join(dir, "redis.sock")}
	s.args = append([]string{ // the last of two equal options counts
		"--port", "0", "--unixsocket", s.socket, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	tb.Cleanup(func() {
		s.kill()
		os.RemoveAll(dir)
	})
	s.start(tb)
	return s
}

// start starts the server and waits until it takes connections. It skips the test if no
// server is installed.
func (s *server) start(tb testing.TB) {
	tb.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		tb.Skip("redis-server is not installed; install it, for example with apt-get install redis-server")
	}
	s.process = exec.Command(program, s.args...)
	output, err := s.process.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, s.process.Start())
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "eady to accept connections") {
			go io.Copy(io.Discard, output) // a full pipe would stop the server
			return
		}
	}
	require.Fail(tb, "the server ended before it was ready", "%v", s.process.Wait())
}

func (s *server) kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
}

// client returns a client that waits long enough for an answer of a busy machine.
func (s *server) client(tb testing.TB) *redis.Client {
	client := redis.NewClient(recommended(s.socket, time.Minute))
	tb.Cleanup(func() { client.Close() })
	return client
}

// recommended returns the options of README.md, where the timeout is 250 ms.
func recommended(socket string, timeout time.Duration) *redis.Options {
	return &redis.Options{
		Network: "unix", Addr: socket, ContextTimeoutEnabled: true, MaxRetries: -1,
		DialTimeout: timeout, ReadTimeout: timeout,
	}
}
