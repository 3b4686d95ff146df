package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badFlags are flags, some with the file BROKEN or MISTYPED, and what is said of them.
var badFlags = []struct{ flag, want string }{
	{"--addr=8460", "--addr: must be host and port, such as 127.0.0.1:8460"},
	{"--addr=0.0.0.0:0", "--addr: must be a loopback address such as 127.0.0.1:8460; --allow-remote allows others"},
	{"--allow-remote=maybe", "--allow-remote: must be true or false"},
	{"--token=secret-15-chars", "--token: must be 16 to 256 characters of visible ASCII"},
	{"--token=", "--token: must be 16 to 256"},
	{"--key=secret,key", "--key: only visible ASCII characters but the comma"},
	{"--key=", "--key: the text is empty"},
	{"--state=", "--state: must be the path of a file"},
	{"--log=loud", "--log: must be one of auto, text, json, off"},
	{"--plan=gold", "--plan: unknown plan; the plans are preview, free, pro and byok"},
	{"--limits=none", "--limits: must be off, one of preview, free, pro, byok, or calls in a window such as key_minute=5"},
	{"--limits=key_hour=5", "--limits: unknown limit; the limits are key_minute, "},
	{"--decisions=window=fixed", "--decisions: \"window\": unknown question; the questions are status, error_names, "},
	{"--decisions=windows=rolling", "--decisions: \"windows\": "},
	{"--cold-start=-1s", "--cold-start: must be a duration such as 250ms or 1.5s, and not negative"},
	{"--latency=5", "--latency: must be a duration"},
	{"--calls=0", "--calls: must be an integer from 1 to 1000000"},
	{"--replies=/no/such/file", "--replies: must be a file that can be read"},
	{"--replies=BROKEN", "--replies: [0].replies: give at least one reply"},
	{"--replies=MISTYPED", "--replies: [1].match.endpoint: must be one of GET /v1/status, "},
	{"--like=/no/such/file", "--like: must be a file that can be read"},
	{"--like=BROKEN", "--like: not the JSON that observe.Run writes"},
	{"--state=BROKEN", "--state: BROKEN: fakeserver: ReadState: not the state of a fake: its format is not agentmessaging-fake-state; move it away to begin anew"},
	{"--state=/no/such/folder/state", "--state: /no/such/folder/state: must be in a folder that can be written to"},
	{"--ready-file=/no/such/folder/file", "--ready-file: /no/such/folder/file: must be in a folder that can be written to"},
	{"--nothing", "flag provided but not defined: -nothing; --help lists the flags"},
	{"start", "there is no such command; the commands are version, observe, help"},
	{"help more", "one argument too many"},
	{"observe --nothing", "observe: flag provided but not defined: -nothing; observe --help lists the flags"},
}

// One sentence that names the flag and says what is allowed, without the
// value: it may be a secret.
func TestBadFlags(t *testing.T) {
	broken := tempFile(t)
	require.NoError(t, os.WriteFile(broken, []byte(`[{"replies":[]}]`), 0o600))
	mistyped := tempFile(t)
	require.NoError(t, os.WriteFile(mistyped, []byte(`[{"replies":[{"text":"a"}]},{"replies":[{"text":"a"}],"match":{"endpoint":"GET /v1/statu"}}]`), 0o600))
	names := strings.NewReplacer("BROKEN", broken, "MISTYPED", mistyped)
	for _, tt := range badFlags {
		args := strings.Fields(names.Replace(tt.flag))
		if strings.HasPrefix(tt.flag, "--") && !strings.HasPrefix(tt.flag, "--addr") {
			args = append(args, "--addr=127.0.0.1:0")
		}
		status, sentence := refused(t, args)
		assert.Equal(t, exitUsage, status, tt.flag)
		assert.Contains(t, sentence, "agentmessaging-fake: "+names.Replace(tt.want))
		assert.NotContains(t, sentence, "secret")
	}
}

func TestFlags(t *testing.T) {
	replies := tempFile(t)
	require.NoError(t, os.WriteFile(replies, []byte(`{"replies":[{"text":"from the file"}]}`), 0o600))
	like := tempFile(t)
	require.NoError(t, os.WriteFile(like, []byte(`{"format":1,"decisions":{"metadata_cap":{"answer":100}}}`), 0o600))
	r := begin(t, []string{
		"--key=k", "--plan=pro", "--limits=key_day=3,key_minute=2", "--decisions=windows=sliding,clear_nothing=404", "--cold-start=1ms",
		"--latency=1ms", "--calls=1", "--replies", replies, "--like", like, "--log=off",
	})
	assert.Equal(t, "k", r.facts.APIKey)
	assert.NotContains(t, r.control("/info"), `"key"`, "a key that was chosen may be a secret")
	assert.Contains(t, r.control("/keys"), `"plan":"pro"`)
	assert.Contains(t, r.control("/keys/key_000001"), `{"limit_key":"key_minute","max":2,`)
	decisions := r.control("/decisions")
	assert.Regexp(t, `{"id":"windows","question":"[^"]+","answer":"sliding","default":"fixed","observed":false}`, decisions)
	assert.Regexp(t, `{"id":"metadata_cap","question":"[^"]+","answer":100,"default":4096,"observed":true}`, decisions)
	assert.Contains(t, r.control("/faults"), `"name":"Latency(1ms)"`)
	assert.Contains(t, r.control("/replies"), `"text":"from the file"`)
	for range 2 {
		status, _ := r.service("DELETE", "/v1/byok", "")
		assert.Equal(t, 404, status)
	}
	assert.Contains(t, r.control("/calls"), `"dropped":1`)
	r.stop()
	for limits, want := range map[string]string{"off": `"max":null,"used":0,"left":null`, "byok": `"max":600`} {
		r := begin(t, []string{"--limits", limits})
		assert.Contains(t, r.control("/keys/key_000001"), `{"limit_key":"key_minute",`+want)
		r.stop()
	}
}

// Each flag has a variable, and the flag wins.
func TestEnvironment(t *testing.T) {
	for _, o := range new(config).options() {
		if o.name == "state" || o.name == "ready-file" {
			continue // any path will do, until it is written
		}
		variable := "AGENT_MESSAGING_FAKE_" + strings.ToUpper(strings.ReplaceAll(o.name, "-", "_"))
		status, sentence := refused(t, nil, variable+"=bad, value:", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
		assert.Equal(t, exitUsage, status, o.name)
		assert.Contains(t, sentence, variable+": ", o.name)
	}
	status, sentence := refused(t, nil, "AGENT_MESSAGING_FAKE_STAET=x", "AGENT_MESSAGING_FAKE_ADDR=127.0.0.1:0")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, sentence, "AGENT_MESSAGING_FAKE_STAET: no flag has this variable; --help lists them")
	r := begin(t, []string{"--plan=pro"}, "AGENT_MESSAGING_FAKE_LATENCY=", "AGENT_MESSAGING_FAKE_PLAN=free", "AGENT_MESSAGING_FAKE_KEY=mine", "AGENT_MESSAGING_FAKE_ADDR=bad")
	assert.Equal(t, "mine", r.facts.APIKey)
	assert.Contains(t, r.control("/keys"), `"plan":"pro"`)
	r.stop()
}

func TestHelpAndVersion(t *testing.T) {
	for _, command := range []string{"--help", "-h", "help"} {
		status, errs, out := ended(t, []string{command})
		assert.Equal(t, exitOK, status)
		for _, o := range new(config).options() {
			assert.Contains(t, out, "--"+o.name)
			assert.Contains(t, out, o.variable())
		}
		assert.Contains(t, out, "AGENT_MESSAGING_FAKE_ADDR, default 127.0.0.1:8460")
		assert.Empty(t, errs)
	}
	for _, command := range []string{"--version", "version"} {
		_, _, out := ended(t, []string{command})
		assert.Regexp(t, `^agentmessaging-fake \S+\n$`, out)
	}
}

// TestFilesOfOthersStay: what is no regular file is not replaced, and what has
// taken the place of the ready file is not removed.
func TestFilesOfOthersStay(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	for _, flag := range []string{"--ready-file", "--state"} {
		_, sentence := refused(t, []string{"--addr=127.0.0.1:0", flag, folder})
		assert.Contains(t, sentence, "must be a regular file", flag)
		assert.DirExists(t, folder)
	}
	ready := tempFile(t)
	r := begin(t, []string{"--ready-file", ready})
	require.FileExists(t, ready)
	require.NoError(t, os.Rename(ready, ready+".old")) // so that its number is not used again
	require.NoError(t, os.WriteFile(ready, []byte("another's"), 0o600))
	r.stop()
	assert.FileExists(t, ready)
}

// A state that somebody has made read-only is not replaced at the end.
func TestReadOnlyState(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write to every file")
	}
	path := tempFile(t)
	require.NoError(t, os.WriteFile(path, nil, 0o400))
	status, sentence := refused(t, []string{"--addr=127.0.0.1:0", "--state", path})
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, sentence, "--state: cannot be saved to: ")
}

func TestState(t *testing.T) {
	path := tempFile(t)
	r := begin(t, []string{"--state", path})
	r.service("POST", "/v1/agents", `{"customer_ref":"kept"}`)
	r.service("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	r.stop()
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotRegexp(t, "sk-canary|amk_", string(saved))

	again := begin(t, []string{"--state", path})
	assert.Contains(t, again.control("/agents"), `"customer_ref":"kept"`)
	_, second := refused(t, []string{"--addr=127.0.0.1:0", "--state", path})
	assert.Contains(t, second, "another agentmessaging-fake uses this file")
	again.stop()
	left, err := os.ReadDir(strings.TrimSuffix(path, "/file"))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file is left")

	require.NoError(t, os.WriteFile(path, saved[:len(saved)/2], 0o600))
	code, sentence := refused(t, []string{"--addr=:0", "--state", path})
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, sentence, "--state: "+path+": fakeserver: ReadState: not one JSON document")
	damaged, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, saved[:len(saved)/2], damaged, "what could not be read is not written over")
}

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
	}
	req.Host = req.Header.Get("Host")
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
	status, sentence, out := ended(t, args, environment...)
	require.NotContains(t, strings.TrimSuffix(sentence, "\n"), "\n", "one sentence")
	require.Empty(t, out)
	return status, sentence
}

// ended runs the program; if it starts, it ends at once.
func ended(t testing.TB, args []string, environment ...string) (status int, stderr, stdout string) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	status = run(ctx, args, environment, &out, &errs)
	return status, errs.String(), out.String()
}

func tempFile(t testing.TB) string { return filepath.Join(t.TempDir(), "file") }
