package main

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/openapi"
)

// Each path is answered by the part of the program that it belongs to, and the service gets
// all the others.
func TestServe(t *testing.T) {
	a := newAPI(t)
	for _, tt := range []struct {
		path string
		want int
		says string
	}{
		{"/healthz", 200, "ok\n"}, {"/openapi.yaml", 200, openapi.Document}, {"/", 200, "<!doctype html>"}, {"/_fake/v1/info", 200, a.startup.BaseURL},
		{"/_fake/v1/openapi.yaml", 200, "openapi: 3.0.3"}, {"/_fake/v1/info", 200, `"key":"amk_fake_000001"`},
		{"/_fake/nothing", 404, ""}, {"/_fake/v1/nothing", 404, "no route has this method and path"}, {"/v1/status", 200, `"ok":true`},
		{"/favicon.ico", 404, ""}, {"//v1/status", 404, `"error":"not_found"`}, {"/v2/status", 404, `"error":"not_found"`},
	} {
		answered := a.send("GET", tt.path, "", "Authorization: Bearer "+a.startup.APIKey)
		assert.Equal(t, tt.want, answered.Code, tt.path)
		assert.Contains(t, answered.Body.String(), tt.says, tt.path)
	}
	calls := a.get("/calls")
	assert.Contains(t, calls, `"path":"/v2/status"`, "a client with a wrong path can be seen")
	assert.NotContains(t, calls, `"endpoint":""`, "a call of no endpoint has no such member")
	assert.Equal(t, 403, a.send("GET", "/", "", "Host: evil.example").Code)
}

// A shell can read the printed lines, whatever characters the key has.
func TestWhatIsPrinted(t *testing.T) {
	_, _, printed := ended(t, []string{"--addr=:0", "--key=it's$HOME"})
	assert.Regexp(t, `^export AGENT_MESSAGING_BASE_URL=http://127\.0\.0\.1:\d+
export AGENT_MESSAGING_API_KEY='it'\\''s\$HOME'
# page: http://127\.0\.0\.1:\d+/
$`, printed)
	ready := tempFile(t, "")
	a := newAPI(t, "--ready-file", ready)
	file, err := os.ReadFile(ready)
	require.NoError(t, err)
	assert.Equal(t, string(a.startup.text(false)), string(file))
	assert.Equal(t, `{"base_url":"b","api_key":"k","page_url":"p","control_url":"c","token":"t","version":"v","pid":7}`+"\n",
		string(startupInfo{"b", "k", "p", "c", "t", "v", 7}.text(true)), "with --json")
}

// If the port is taken, the program does not start, and advises to take another.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	status, sentence := refused(t, []string{"--addr", taken.Addr().String()})
	assert.Equal(t, exitFailed, status)
	assert.Contains(t, sentence, "in use; give an address of this machine such as 127.0.0.1:8460, where port 0 picks a free one")
}

// The log has a line for each call, without the key and the text of the message.
func TestLog(t *testing.T) {
	for _, form := range []string{"text", "json", "auto", "off"} {
		a := newAPI(t, "--log", form, "--key=cnry-service-key")
		a.play(
			step{"POST /v1/agents", "{}", 200, ""},
			step{"POST /v1/agents/agent_000001/messages", `{"text":"cnry-text"}`, 200, ""},
			step{"GET /v1/status cnry-other", "", 401, ""},
		)
		written := a.log.String()
		assert.NotContains(t, written, "cnry", form)
		switch form {
		case "off":
			assert.Empty(t, written, form)
			a.server.ErrorLog.Print("http: Accept error: too many open files") // as net/http says it
			assert.Equal(t, "agentmessaging-fake: http: Accept error: too many open files\n", a.log.String())
		case "text":
			assert.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} trace_000001 POST /v1/agents key_000001: 200\n.*messages key_000001: 200\n.* unknown: 401 `, written, form)
		default: // a buffer is no terminal
			assert.Regexp(t, `^({.*}\n){2}{"time":.*,"path":"/v1/status","key":"unknown","status":401,"took_ms":\d+}\n$`, written, form)
		}
	}
}

// Each file of the page is served with its type, and no other file is served. Every answer has
// the headers that restrict the browser.
func TestPage(t *testing.T) {
	a := newAPI(t)
	for call, want := range map[string]string{
		"GET /":                        "200 text/html; charset=utf-8",
		"HEAD /":                       "200 text/html; charset=utf-8",
		"GET /_fake/assets/app.js":     "200 text/javascript; charset=utf-8",
		"GET /_fake/assets/style.css":  "200 text/css; charset=utf-8",
		"GET /_fake/assets/icon.svg":   "200 image/svg+xml",
		"POST /":                       "405 text/plain; charset=utf-8",
		"GET /_fake/assets/":           "404 text/plain; charset=utf-8",
		"GET /_fake/assets/index.html": "404 text/plain; charset=utf-8",
		"GET /_fake/assets/../page.go": "404 text/plain; charset=utf-8",
	} {
		method, path, _ := strings.Cut(call, " ")
		answered := a.send(method, path, "")
		assert.Equal(t, want, fmt.Sprint(answered.Code, " ", answered.Header().Get("Content-Type")), call)
		assert.Equal(t, answered.Code == 405, answered.Header().Get("Allow") == "GET, HEAD", call)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; " +
				"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"Cache-Control":                "no-store",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			assert.Equal(t, want, answered.Header().Get(name), call)
		}
	}
	assert.Contains(t, a.send("GET", "/_fake/assets/vendor/preact.js", "").Body.String(), "The MIT License (MIT)")
}
