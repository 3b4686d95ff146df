package redisstore_test

import (
	"bufio"
	"cmp"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// server is a redis-server process, or the program that REDIS_SERVER names, on
// another socket than all others.
type server struct {
	socket  string
	args    []string
	process *exec.Cmd
}

// newServer starts a server for the test, and skips it where none is installed.
func newServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	// Not tb.TempDir: the name of a socket has at most 107 bytes.
	dir, err := os.MkdirTemp("", "redisstore")
	require.NoError(tb, err)
	s := &server{socket: filepath.Join(dir, "redis.sock")}
	s.args = append([]string{ // where an option is given twice, the last one counts
		"--port", "0", "--unixsocket", s.socket, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	tb.Cleanup(func() {
		s.kill()
		os.RemoveAll(dir)
	})
	s.start(tb)
	return s
}

// program is what runs as a server, and the test is skipped without it.
func program(tb testing.TB) string {
	tb.Helper()
	binary, err := exec.LookPath(cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server"))
	if err != nil {
		tb.Skip("this test runs a redis-server, which is not installed; apt-get install redis-server, or the like, brings it")
	}
	return binary
}

// start returns once the server takes connections.
func (s *server) start(tb testing.TB) {
	tb.Helper()
	s.process = exec.Command(program(tb), s.args...)
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
	s.process = nil
}

// client returns one with the options that README.md recommends.
func (s *server) client(tb testing.TB) *redis.Client {
	client := redis.NewClient(recommended(s.socket))
	tb.Cleanup(func() { client.Close() })
	return client
}

func recommended(socket string) *redis.Options {
	return &redis.Options{
		Network: "unix", Addr: socket, ContextTimeoutEnabled: true, MaxRetries: -1,
		DialTimeout: 250 * time.Millisecond, ReadTimeout: 250 * time.Millisecond,
	}
}
