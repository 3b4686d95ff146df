//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProgram makes the binary of the tests be the program.
const asProgram = "TEST_AS_AGENTMESSAGING_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// process is the program in a process of its own.
func process(t *testing.T, args ...string) (*exec.Cmd, api) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, append([]string{"--json", "--addr=:0"}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	a := api{t: t, log: new(bytes.Buffer)}
	cmd.Stderr = a.log
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, json.NewDecoder(stdout).Decode(&a.facts), "the program did not start: %v", a.log)
	assert.Equal(t, cmd.Process.Pid, a.facts.PID)
	base, err := url.Parse(a.facts.BaseURL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(base)
	// A connection that was opened and never used would keep a server that drains waiting
	// for 5 s.
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	a.all = proxy
	return cmd, a
}

// underWay makes a call that a fault holds, and returns once it is held.
func (a api) underWay(fault string) (answered chan int) {
	a.t.Helper()
	a.play(step{"POST /faults", `{"fault":` + fault + `,"match":{"endpoint":"GET /v1/status"}}`, 201, ""})
	answered = make(chan int, 1)
	go func() { answered <- a.send("GET", "/v1/status", "", "Authorization: Bearer "+a.facts.APIKey).status }()
	for !strings.Contains(a.get("/faults"), `"hits":1`) {
		continue
	}
	return answered
}

// A call that is under way gets its answer, streams end, and the state is saved, also
// where the signal comes twice at once: as from timeout.
func TestSignalsDrain(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt, syscall.SIGHUP} {
		path := tempFile(t, "")
		cmd, a := process(t, "--state", path)
		s := a.stream()
		answered := a.underWay(`{"kind":"latency","duration":"100ms"}`)
		require.NoError(t, cmd.Process.Signal(signal))
		time.Sleep(sameSignal / 10) // until the first has been taken: two at once are one to the system
		require.NoError(t, cmd.Process.Signal(signal))
		assert.Equal(t, 200, <-answered)
		for s.next() != (event{}) {
			continue
		}
		assert.NoError(t, s.lines.Err(), "an end, and no reset")
		require.NoError(t, cmd.Wait(), "exit status 0")
		assert.FileExists(t, path)
	}
}

// Who does not want to wait for a call that hangs, says so again.
func TestSecondSignalEnds(t *testing.T) {
	cmd, a := process(t)
	a.underWay(`{"kind":"hang"}`)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			assert.ErrorContains(t, err, "signal: terminated", "before the bound of draining")
			return
		case <-time.After(sameSignal / 10):
		}
	}
}
