package apitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// suite is a server and its document.
type suite struct {
	t      *testing.T
	server *control.Server
	doc    *openapi3.T
	router routers.Router
}

func newSuite(t *testing.T, o control.Options) *suite {
	s, err := control.New(o)
	require.NoError(t, err)
	t.Cleanup(s.End)
	doc, err := openapi3.NewLoader().LoadFromFile("../internal/control/openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	return &suite{t, s, doc, router}
}

// operations are the document's, by operationId.
func (s *suite) operations() map[string][2]string {
	all := map[string][2]string{}
	for path, item := range s.doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[op.OperationID] = [2]string{method, path}
		}
	}
	return all
}

// call makes a call and validates it and its answer.
func (s *suite) call(method, path, body string, want int, header ...string) {
	s.t.Helper()
	answered, err := s.validate(s.request(method, path, body, header...), s.answer(s.request(method, path, body, header...)), want)
	require.NoError(s.t, err, "%s %s: %s", method, path, answered)
}

func (s *suite) request(method, path, body string, header ...string) *http.Request {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	req := httptest.NewRequest(method, "/_fake/v1"+path, strings.NewReader(body)).WithContext(ctx)
	req.Host = "localhost"
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	if strings.HasSuffix(req.URL.Path, "/stream") { // it would have no end
		cancel()
	}
	return req
}

func (s *suite) answer(req *http.Request) *http.Response {
	rec := httptest.NewRecorder()
	s.server.Guard(s.server).ServeHTTP(rec, req)
	return rec.Result()
}

func (s *suite) validate(req *http.Request, resp *http.Response, want int) (string, error) {
	s.t.Helper()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, want, resp.StatusCode, "%s %s: %s", req.Method, req.URL, raw)
	route, params, err := s.router.FindRoute(req)
	require.NoError(s.t, err, req.URL.Path)
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: options}
	if want < 400 {
		require.NoError(s.t, openapi3filter.ValidateRequest(context.Background(), in))
	}
	return string(raw), openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header,
		Body: io.NopCloser(bytes.NewReader(raw)), Options: options,
	})
}

// Every operation, with a success and with a refusal.
func TestAnswersAreAsDocumented(t *testing.T) {
	s := newSuite(t, control.Options{Save: func() error { return nil }, Refuse: func(time.Duration) error { return nil }})
	operations := s.operations()
	succeeded, refused := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		op, known := operations[c.operation]
		require.True(t, known, c.operation)
		s.call(op[0], c.path, c.body, c.want)
		succeeded[c.operation] = succeeded[c.operation] || c.want < 400
		refused[c.operation] = refused[c.operation] || c.want >= 400
	}
	state, err := io.ReadAll(s.answer(s.request("GET", d+"/state", "")).Body)
	require.NoError(t, err)
	s.call("PUT", d+"/state", string(state), 204)
	succeeded["putState"] = true
	for name := range operations {
		assert.True(t, succeeded[name], "%s was not exercised", name)
		assert.True(t, refused[name], "%s was never refused", name)
	}
}

// What every route refuses, at each of them.
func TestRefusalsOfEveryRoute(t *testing.T) {
	s := newSuite(t, control.Options{Token: "a-token-of-16-or-more"})
	fill := strings.NewReplacer("{world}", "none", "{key}", "k", "{limit_key}", "key_day", "{agent_id}", "a", "{id}", "i", "/_fake/v1", "")
	const token = "Authorization: Bearer a-token-of-16-or-more"
	for _, op := range s.operations() {
		path := fill.Replace(op[1])
		s.call(op[0], path, "", 401)
		s.call(op[0], path, "", 403, "Origin: http://evil.example")
		s.call(op[0], path, "", 403, "Host: evil.example")
		s.call(op[0], path, "x", 415, token, "Content-Type: text/plain")
		s.call(op[0], path, strings.Repeat(" ", 1<<20+1), 413, token)
	}
}

// The program and the document have the same routes.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	s := newSuite(t, control.Options{})
	var documented, served []string
	for _, op := range s.operations() {
		documented = append(documented, op[0]+" "+op[1])
	}
	for _, r := range control.Routes() {
		served = append(served, r[0]+" "+r[1])
	}
	sort.Strings(documented)
	sort.Strings(served)
	assert.Equal(t, documented, served)
}

// What is served is what was validated.
func TestDocumentIsServed(t *testing.T) {
	s := newSuite(t, control.Options{})
	resp := s.answer(s.request("GET", "/openapi.yaml", ""))
	served, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	file, err := os.ReadFile("../internal/control/openapi.yaml")
	require.NoError(t, err)
	assert.Equal(t, string(file), string(served))
}
