package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// api calls any path of the program.
type api struct {
	t       testing.TB
	startup startupInfo
	all     http.Handler
	stop    func()        // ends the program as a signal does
	log     *bytes.Buffer // what the program wrote on standard error
	server  *http.Server  // it does not serve
}

// newAPI returns the program with these flags, without a socket or a goroutine. That is enough
// for most tests, and works in a bubble.
func newAPI(t testing.TB, flags ...string) api {
	t.Helper()
	c, err := parse(append([]string{"--addr=127.0.0.1:0", "--log=off"}, flags...), nil)
	require.NoError(t, err)
	log := new(bytes.Buffer)
	p, err := start(c, log)
	require.NoError(t, err)
	require.NoError(t, p.listener.Close())
	require.NoError(t, p.announce(io.Discard))
	t.Cleanup(p.control.End)
	return api{t, p.startup, p.handler(), func() { require.NoError(t, p.stop()) }, log, p.server}
}

// refused runs the program with flags that it must refuse.
func refused(t testing.TB, args []string, environment ...string) (int, string) {
	t.Helper()
	status, sentence, out := ended(t, args, environment...)
	require.NotContains(t, strings.TrimSuffix(sentence, "\n"), "\n", "one sentence")
	require.Empty(t, out)
	return status, sentence
}

// ended runs the program, which ends at once if it starts.
func ended(t testing.TB, args []string, environment ...string) (status int, stderr, stdout string) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	status = run(func() context.Context { return ctx }, args, environment, &out, &errs)
	return status, errs.String(), out.String()
}

// tempFile returns the path of a file with this content. For "" the file does not exist.
func tempFile(t testing.TB, content string) string {
	path := filepath.Join(t.TempDir(), "file")
	if content != "" {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return path
}

// send makes any call; header lines are "Name: value".
func (a api) send(method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(a.t.Context())
	req.Host = "127.0.0.1:8460"
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
	rec := httptest.NewRecorder()
	a.all.ServeHTTP(rec, req)
	if strings.HasPrefix(path, "/_fake/v1") {
		record(a.t, req, rec)
	}
	return rec
}

// get reads from the control interface.
func (a api) get(path string) string {
	a.t.Helper()
	return a.play(step{"GET " + path, "", 200, ""})
}

// step is a call, and the answer that it must get.
type step struct {
	// call is a method and a path. A path that begins with /v1/ is of the service, any other of
	// the control interface. A call of the service has the first key, unless another key
	// follows the path.
	call, body string
	status     int
	want       string // JSON that the answer holds, or a part of the reason; "": anything
}

// play makes the calls one after the other, and returns all answers.
func (a api) play(steps ...step) (answers string) {
	a.t.Helper()
	for _, s := range steps {
		r := a.request(s)
		require.Equal(a.t, s.status, r.Code, "%s %s: %s", s.call, s.body, r.Body)
		wantHeld(a.t, s, r)
		answers += r.Body.String()
	}
	return answers
}

// request makes the call of a step.
func (a api) request(s step) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(s.call, " ")
	path, key, given := strings.Cut(path, " ")
	if !given {
		key = a.startup.APIKey
	}
	if strings.HasPrefix(path, "/v1/") {
		return a.send(method, path, s.body, "Authorization: Bearer "+key)
	}
	return a.send(method, "/_fake/v1"+path, s.body)
}

func wantHeld(t testing.TB, s step, r *httptest.ResponseRecorder) {
	t.Helper()
	var got, want any
	_ = json.Unmarshal(r.Body.Bytes(), &got)
	switch {
	case s.want == "":
	case strings.HasPrefix(s.want, "{"):
		require.NoError(t, json.Unmarshal([]byte(s.want), &want), s.want)
		assert.True(t, holds(got, want), "%s: %s\nand not %s", s.call, r.Body, s.want)
	default:
		refusal, _ := got.(map[string]any)
		assert.Contains(t, fmt.Sprint(refusal["reason"]), s.want, s.call)
		assert.NotEmpty(t, refusal["error"])
		assert.Equal(t, "application/json", r.Header().Get("Content-Type"))
	}
}

// holds reports whether got has everything that want has: each member of an object, and as many
// elements of an array. A null in want stands for null or a missing member.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, is := got.(map[string]any)
		for name, value := range want {
			is = is && holds(object[name], value)
		}
		return is
	case []any:
		list, is := got.([]any)
		return is && slices.EqualFunc(list, want, holds)
	}
	return got == want
}

// record appends a call, in one write, to the file that the module tools/openapi names. That
// module compares each call with openapi.yaml.
func record(t testing.TB, req *http.Request, rec *httptest.ResponseRecorder) {
	name := os.Getenv("AGENTMESSAGING_FAKE_RECORD")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(file).Encode(map[string]any{
		"Method": req.Method, "URL": req.URL.RequestURI(), "Status": rec.Code, "Answered": rec.Header(), "Answer": rec.Body.String(),
	}))
	require.NoError(t, file.Close())
}
