//go:build unix

package main

import (
	"bufio"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// BenchmarkProgram is a message over 64 connections to a program of its own: the
// standalone fake, or the floor. The processor time is that of the program.
func BenchmarkProgram(b *testing.B) {
	for _, of := range []struct {
		name, folder string
		args         []string
	}{
		{"floor", "floor", nil},
		{"fake", "../../cmd/agentmessaging-fake", []string{"--addr=127.0.0.1:0", "--limits=off", "--key=" + key}},
	} {
		program := build(b, of.folder)
		b.Run("of="+of.name, func(b *testing.B) {
			url, stop := start(b, program, of.args...)
			service := byHand(b, pooled(new(http.Transport)), url)
			if of.name == "fake" {
				service.(hand).create(b)
			}
			parallel(b, service.send)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			b.ReportMetric(float64(stop())/float64(b.N), "cpu-ns/op")
		})
	}
}

// create makes the agent that the messages are for.
func (h hand) create(b *testing.B) {
	var agent struct {
		ID string `json:"agent_id"`
	}
	require.NoError(b, h.call(b.Context(), http.MethodPost, "/v1/agents", strings.NewReader("{}"), &agent))
	require.Equal(b, agentID, agent.ID)
}

// BenchmarkStart starts the fake's program, to its first answer, and ends it.
func BenchmarkStart(b *testing.B) {
	program := build(b, "../../cmd/agentmessaging-fake")
	for b.Loop() {
		url, stop := start(b, program, "--addr=127.0.0.1:0")
		resp, err := http.Get(url + "/healthz")
		require.NoError(b, err)
		require.NoError(b, resp.Body.Close())
		stop()
	}
}

func build(b *testing.B, folder string) (program string) {
	program = filepath.Join(b.TempDir(), "program")
	out, err := exec.Command("go", "build", "-C", folder, "-buildvcs=false", "-o", program, ".").CombinedOutput()
	require.NoError(b, err, "%s", out)
	return program
}

// start returns the address that a program prints, and what ends the program and
// tells the processor time that it used.
func start(b *testing.B, program string, args ...string) (url string, stop func() time.Duration) {
	run := exec.Command(program, args...)
	output, err := run.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, run.Start())
	b.Cleanup(func() { _ = run.Process.Kill() })
	for lines := bufio.NewScanner(output); url == "" && lines.Scan(); {
		url = address.FindString(lines.Text())
	}
	require.NotEmpty(b, url, "%s", program)
	return url, func() time.Duration {
		require.NoError(b, run.Process.Kill())
		_ = run.Wait() // it was killed
		return run.ProcessState.UserTime() + run.ProcessState.SystemTime()
	}
}
