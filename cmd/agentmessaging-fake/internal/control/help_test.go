package control_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// api makes calls of the control interface, and of the service behind it.
type api struct {
	t      testing.TB
	server *control.Server
	all    http.Handler
}

func newAPI(t testing.TB, o control.Options) api {
	t.Helper()
	s, err := control.New(o)
	require.NoError(t, err)
	t.Cleanup(s.End)
	return api{t, s, handler(s)}
}

// handler is the server as the program puts it together.
func handler(s *control.Server) http.Handler {
	service := s.Service()
	return s.CheckHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_fake/") {
			s.ServeHTTP(w, r)
			return
		}
		service.ServeHTTP(w, r)
	}))
}

type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (r reply) reason() string { s, _ := r.body["reason"].(string); return s }
func (r reply) text(name string) string {
	s, _ := r.body[name].(string)
	return s
}

func (r reply) list(name string) []any { l, _ := r.body[name].([]any); return l }

// do calls the control interface; header lines are "Name: value".
func (a api) do(method, path, body string, header ...string) reply {
	a.t.Helper()
	return a.send(method, "/_fake/v1"+path, body, header...)
}

// service calls the service with a key.
func (a api) service(key, method, path, body string) reply {
	a.t.Helper()
	return a.send(method, path, body, "Authorization: Bearer "+key)
}

func (a api) send(method, path, body string, header ...string) reply {
	a.t.Helper()
	req := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(a.t.Context())
	req.Host = "127.0.0.1:8460"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	a.all.ServeHTTP(rec, req)
	r := reply{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	_ = json.Unmarshal(rec.Body.Bytes(), &r.body)
	if strings.HasPrefix(path, "/_fake/") {
		record(a.t, req, body, r)
	}
	return r
}

var recording sync.Mutex

// record writes a call to the file that the module tools/openapi names, which
// holds each to openapi.yaml.
func record(t testing.TB, req *http.Request, body string, r reply) {
	name := os.Getenv("AGENTMESSAGING_FAKE_RECORD")
	if name == "" || len(body) > 1<<20 {
		return
	}
	recording.Lock()
	defer recording.Unlock()
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(file).Encode(map[string]any{
		"Method": req.Method, "URL": req.URL.RequestURI(), "Header": req.Header, "Body": body,
		"Status": r.status, "Answered": r.header, "Answer": r.raw,
	}))
	require.NoError(t, file.Close())
}

// must calls and wants a status of success.
func (a api) must(status int, method, path, body string) reply {
	a.t.Helper()
	r := a.do(method, path, body)
	require.Equal(a.t, status, r.status, r.raw)
	return r
}

// wantRefused wants an error with a reason that begins as told.
func (r reply) wantRefused(t testing.TB, status int, reason string) {
	t.Helper()
	assert.Equal(t, status, r.status, r.raw)
	assert.Contains(t, r.reason(), reason)
	assert.NotEmpty(t, r.text("error"))
	assert.Equal(t, "application/json", r.header.Get("Content-Type"))
}

func pick(m map[string]any, names ...string) (values []any) {
	for _, n := range names {
		values = append(values, m[n])
	}
	return values
}
