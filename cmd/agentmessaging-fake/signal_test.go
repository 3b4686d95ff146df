//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram makes the binary of the tests be the program. It holds how long further
// signals count as the first.
const asProgram = "TEST_AS_AGENTMESSAGING_FAKE"

func TestMain(m *testing.M) {
	if same, err := time.ParseDuration(os.Getenv(asProgram)); err == nil {
		os.Exit(runUntilSignal(same))
	}
	os.Exit(m.Run())
}

// process starts the program as another process.
func process(t *testing.T, same time.Duration, args ...string) (*exec.Cmd, api) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, append([]string{"--json", "--addr=:0"}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"="+same.String())
	a := api{t: t, log: new(bytes.Buffer)}
	cmd.Stderr = a.log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, json.NewDecoder(stdout).Decode(&a.facts), "the program did not start: %v", a.log)
	assert.Equal(t, cmd.Process.Pid, a.facts.PID)
	return cmd, a
}

// A call that is under way gets its answer, streams end, and the state is saved, also
// where the signal comes twice: as from timeout.
func TestSignalsDrain(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		path := tempFile(t, "")
		cmd, a := process(t, sameSignal, "--state", path)
		s := a.stream()
		answered, finish := a.underWay()
		require.NoError(t, cmd.Process.Signal(signal), signal)
		for s.next() != (event{}) {
			continue
		}
		assert.NoError(t, s.lines.Err(), "an end, and no reset")
		require.NoError(t, cmd.Process.Signal(signal), signal)
		finish()
		assert.Equal(t, 200, <-answered, signal)
		require.NoError(t, cmd.Wait(), "exit status 0")
		assert.FileExists(t, path)
	}
}

// underWay makes a call whose body ends with finish, and returns once the program reads it.
func (a api) underWay() (answered chan int, finish func()) {
	a.t.Helper()
	body, rest := io.Pipe()
	req, err := http.NewRequestWithContext(a.t.Context(), "POST", a.facts.BaseURL+"/v1/agents", body)
	require.NoError(a.t, err)
	req.Header = http.Header{"Authorization": {"Bearer " + a.facts.APIKey}, "Content-Type": {"application/json"}, "Expect": {"100-continue"}}
	answered = make(chan int, 1)
	go func() {
		resp, err := (&http.Transport{ExpectContinueTimeout: time.Minute}).RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
			answered <- resp.StatusCode
		}
		close(answered)
	}()
	_, err = io.WriteString(rest, "{}")
	require.NoError(a.t, err)
	return answered, func() { _ = rest.Close() }
}

// Who does not want to wait for a call that hangs, says so again.
func TestSecondSignalEnds(t *testing.T) {
	cmd, a := process(t, time.Millisecond)
	a.underWay()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for cmd.Process.Signal(syscall.SIGTERM) == nil {
		continue
	}
	assert.ErrorContains(t, <-ended, "signal: terminated", "before the bound of draining")
}
