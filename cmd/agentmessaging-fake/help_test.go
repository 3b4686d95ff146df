package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// running is the program in this process.
type running struct {
	t      testing.TB
	facts  facts
	status chan int
	stderr *bytes.Buffer
	end    context.CancelFunc
}

// begin starts the program on a free port and waits until it says that it
// serves. Environment is "NAME=value".
func begin(t testing.TB, args []string, environment ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	said, stdout := io.Pipe()
	r := &running{t: t, status: make(chan int, 1), stderr: new(bytes.Buffer), end: cancel}
	go func() {
		r.status <- run(ctx, append([]string{"--json", "--addr=127.0.0.1:0"}, args...), environment, stdout, r.stderr)
		_ = stdout.Close()
	}()
	if json.NewDecoder(said).Decode(&r.facts) != nil {
		require.Fail(t, "the program did not start", "%d %s", <-r.status, r.stderr)
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	t.Cleanup(func() { cancel() })
	return r
}

// stop ends the program, and wants it to end well.
func (r *running) stop() {
	r.t.Helper()
	r.end()
	require.Equal(r.t, exitOK, <-r.status, r.stderr)
}

// call calls an address of the program; header lines are "Name: value".
func (r *running) call(method, path, body string, header ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.facts.BaseURL+path, strings.NewReader(body))
	require.NoError(r.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(r.t, err)
	raw, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	require.NoError(r.t, resp.Body.Close())
	return resp.StatusCode, string(raw)
}

// service calls the service with the first key.
func (r *running) service(method, path, body string) (int, string) {
	r.t.Helper()
	return r.call(method, path, body, "Authorization: Bearer "+r.facts.APIKey)
}

// control reads from the control interface.
func (r *running) control(path string) string {
	r.t.Helper()
	status, body := r.call("GET", "/_fake/v1"+path, "")
	require.Equal(r.t, 200, status, body)
	return body
}

// refused runs the program with flags that it must refuse.
func refused(t testing.TB, args []string, environment ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // one that starts all the same ends at once
	var stdout, stderr bytes.Buffer
	status := run(ctx, args, environment, &stdout, &stderr)
	require.NotContains(t, strings.TrimSuffix(stderr.String(), "\n"), "\n", "one sentence")
	if status != exitOK {
		require.Empty(t, stdout.String())
	}
	return status, stderr.String()
}

func tempFile(t testing.TB) string { return filepath.Join(t.TempDir(), "file") }
