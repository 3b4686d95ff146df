//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram is the variable that makes the test binary run as the program. Its value is the
// debounce of runUntilSignal.
const asProgram = "TEST_AS_AGENTMESSAGING_FAKE"

func TestMain(m *testing.M) {
	if same, err := time.ParseDuration(os.Getenv(asProgram)); err == nil {
		os.Exit(runUntilSignal(same))
	}
	os.Exit(m.Run())
}

// process starts the program as another process. Once the program serves, nobody reads its log.
func process(t *testing.T, same time.Duration, args ...string) (*exec.Cmd, api) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, append([]string{"--json", "--addr=:0"}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"="+same.String())
	a := api{t: t}
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, json.NewDecoder(stdout).Decode(&a.startup), "the program did not start")
	require.NoError(t, log.Close())
	assert.Equal(t, cmd.Process.Pid, a.startup.PID)
	return cmd, a
}

// After a signal, a call under way gets its answer, streams end, and the state is saved. This
// also holds if the signal comes twice, as from timeout, and if the log has no reader.
func TestSignalsDrain(t *testing.T) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // where the tests run under nohup, the process must not inherit it
	for _, end := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		path := tempFile(t, "")
		cmd, a := process(t, signalDebounce, "--state", path)
		stream, err := http.Get(a.startup.ControlURL + "/calls/stream")
		require.NoError(t, err)
		require.Equal(t, "text/event-stream", stream.Header.Get("Content-Type"))
		conn := a.underWay()
		require.NoError(t, cmd.Process.Signal(end), end)
		_, err = io.ReadAll(stream.Body)
		assert.NoError(t, err, "an end, and no reset")
		require.NoError(t, cmd.Process.Signal(end), end)
		_, err = io.WriteString(conn, "{}")
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		assert.Contains(t, string(answer), "HTTP/1.1 200 OK", end)
		require.NoError(t, cmd.Wait(), "exit status 0")
		assert.FileExists(t, path)
	}
}

// Under nohup the program goes on after its terminal is closed.
func TestNohup(t *testing.T) {
	signal.Ignore(syscall.SIGHUP) // for the process too
	defer signal.Reset(syscall.SIGHUP)
	cmd, a := process(t, signalDebounce)
	require.NoError(t, cmd.Process.Signal(syscall.SIGHUP))
	_, _ = io.WriteString(a.underWay(), "{}")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, cmd.Wait())
}

// underWay makes a call on a connection, and returns once the program waits for its
// body, which is {}.
func (a api) underWay() net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.startup.BaseURL, "http://"))
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = conn.Close() })
	const header = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
	_, err = io.WriteString(conn, "POST /v1/agents HTTP/1.1\r\n"+header+"Authorization: Bearer "+a.startup.APIKey+"\r\n\r\n")
	require.NoError(a.t, err)
	asked, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(a.t, err)
	require.Equal(a.t, "HTTP/1.1 100 Continue\r\n", asked)
	return conn
}

// A signal ends the program while it waits for a file of a flag.
func TestSignalBeforeServing(t *testing.T) {
	pipe := tempFile(t, "")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--like", pipe)
	cmd.Env = append(os.Environ(), asProgram+"=1h")
	require.NoError(t, cmd.Start())
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the program reads
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	time.AfterFunc(10*time.Second, func() { _ = writer.Close() })
	assert.ErrorContains(t, cmd.Wait(), "signal: terminated")
}

// Standard input is empty here.
func TestUntilEOF(t *testing.T) {
	cmd, _ := process(t, signalDebounce, "--until-eof")
	assert.NoError(t, cmd.Wait())
}

// A second signal ends the program at once, even if a call hangs.
func TestSecondSignalEnds(t *testing.T) {
	cmd, a := process(t, time.Millisecond)
	a.underWay()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for cmd.Process.Signal(syscall.SIGTERM) == nil {
		<-time.After(time.Millisecond) // a flood of signals can end a Go process by a segmentation fault
	}
	assert.ErrorContains(t, <-ended, "signal: terminated", "before the bound of draining")
}
