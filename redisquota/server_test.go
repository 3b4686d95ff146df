package redisquota_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// server is a redis-server process on a socket of its own.
type server struct {
	socket  string
	process *exec.Cmd
}

// newServer starts a redis-server for the test, and skips it where there is
// none.
func newServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	// Not tb.TempDir: the name of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "redisquota")
	require.NoError(tb, err)
	s := &server{socket: filepath.Join(dir, "redis.sock")}
	tb.Cleanup(func() {
		s.kill()
		os.RemoveAll(dir)
	})
	s.start(tb, args...)
	return s
}

// start returns once the server takes connections.
func (s *server) start(tb testing.TB, args ...string) {
	tb.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Skip("this test runs a redis-server, and there is none; apt-get install redis-server, or the like, brings one")
	}
	args = append([]string{ // of an option that is there twice the last counts
		"--port", "0", "--unixsocket", s.socket, "--dir", filepath.Dir(s.socket),
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	s.process = exec.Command(binary, args...)
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
	require.Fail(tb, "redis-server ended before it was ready", "%v", s.process.Wait())
}

func (s *server) kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
	s.process = nil
}

// client returns one with the options that the documentation recommends.
func (s *server) client(tb testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Network: "unix", Addr: s.socket,
		DialTimeout: 200 * time.Millisecond, ReadTimeout: 200 * time.Millisecond,
		MaxRetries: -1, ContextTimeoutEnabled: true,
	})
	tb.Cleanup(func() { client.Close() })
	return client
}

func (s *server) coordinator(tb testing.TB, apiKey string) *redisquota.Coordinator {
	tb.Helper()
	c, err := redisquota.New(redisquota.GoRedis(s.client(tb)), apiKey)
	require.NoError(tb, err)
	return c
}

func ask(limits []quota.Limit, id uint64) quota.Step {
	return quota.Step{Kind: quota.Ask, Limits: limits, Spends: 1<<len(limits) - 1, ID: id}
}
