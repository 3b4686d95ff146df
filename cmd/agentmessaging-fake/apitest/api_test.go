package apitest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// call is a call of the control interface and its answer, as the tests of
// package control record them.
type call struct {
	Method, URL, Body string
	Header            http.Header
	Status            int
	Answered          http.Header
	Answer            string
}

// judge holds calls to the document.
type judge struct {
	t         *testing.T
	doc       *openapi3.T
	router    routers.Router
	succeeded map[string]bool // by operationId
}

func newJudge(t *testing.T) *judge {
	doc, err := openapi3.NewLoader().LoadFromFile("../internal/control/openapi.yaml")
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	openapi3filter.RegisterBodyDecoder("text/event-stream", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	return &judge{t, doc, router, map[string]bool{}}
}

// judge validates an answer, and of a success the call itself too.
func (j *judge) judge(c call) {
	req := httptest.NewRequest(c.Method, c.URL, strings.NewReader(c.Body))
	req.Header = c.Header
	req.Header.Set("Content-Type", strings.ToLower(c.Header.Get("Content-Type"))) // the validator knows no other case
	route, params, err := j.router.FindRoute(req)
	if err != nil {
		assert.Contains(j.t, []int{401, 403, 404, 405}, c.Status, "%s %s is not in the document", c.Method, c.URL)
		return
	}
	options := &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: options}
	if c.Status < 400 {
		j.succeeded[route.Operation.OperationID] = true
		assert.NoError(j.t, openapi3filter.ValidateRequest(j.t.Context(), in), "%s %s %s", c.Method, c.URL, c.Body)
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: c.Status, Header: c.Answered, Options: options}
	out.SetBodyBytes([]byte(c.Answer))
	assert.NoError(j.t, openapi3filter.ValidateResponse(j.t.Context(), out), "%s %s: %s", c.Method, c.URL, c.Answer)
}

// operations are the document's: "GET /path" by operationId.
func (j *judge) operations() map[string]string {
	all := map[string]string{}
	for path, item := range j.doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[op.OperationID] = method + " " + path
		}
	}
	return all
}

// Every call that the tests of package control make, and each operation among
// them with a success.
func TestCallsAreAsDocumented(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls")
	tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./internal/control")
	tests.Dir, tests.Env = "..", append(os.Environ(), "AGENTMESSAGING_FAKE_RECORD="+file)
	said, err := tests.CombinedOutput()
	require.NoError(t, err, string(said))
	recorded, err := os.Open(file)
	require.NoError(t, err)
	defer recorded.Close()
	j := newJudge(t)
	for lines := json.NewDecoder(bufio.NewReader(recorded)); lines.More(); {
		var c call
		require.NoError(t, lines.Decode(&c))
		j.judge(c)
	}
	for name := range j.operations() {
		assert.True(t, j.succeeded[name], "no test has %s succeed", name)
	}
}

// What every route refuses, at each of them.
func TestRefusalsOfEveryRoute(t *testing.T) {
	const token = "a-token-of-16-or-more"
	s, err := control.New(control.Options{Token: token, Refuse: func(time.Duration) error { return nil }})
	require.NoError(t, err)
	t.Cleanup(s.End)
	j := newJudge(t)
	fill := strings.NewReplacer("{world}", "none", "{key}", "k", "{limit_key}", "key_day", "{agent_id}", "a", "{id}", "i", "{seq}", "1")
	ask := func(op, host, body string, header http.Header) int {
		method, path, _ := strings.Cut(fill.Replace(op), " ")
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Host, req.Header = host, header
		rec := httptest.NewRecorder()
		s.Guard(s).ServeHTTP(rec, req)
		j.judge(call{method, path, body, header, rec.Code, rec.Header(), rec.Body.String()})
		return rec.Code
	}
	known := http.Header{"Authorization": {"Bearer " + token}}
	for _, op := range j.operations() {
		assert.Equal(t, 401, ask(op, "localhost", "", http.Header{}), op)
		assert.Equal(t, 403, ask(op, "localhost", "", http.Header{"Origin": {"http://evil.example"}}), op)
		assert.Equal(t, 403, ask(op, "evil.example", "", http.Header{}), op)
		assert.Equal(t, 400, ask(op+"?odd=1", "localhost", "", known), op)
		assert.Equal(t, 413, ask(op, "localhost", strings.Repeat(" ", 1<<20+1), known), op)
		assert.Equal(t, 415, ask(op, "localhost", "x", http.Header{"Authorization": known["Authorization"], "Content-Type": {"text/plain"}}), op)
	}
}

// The program and the document have the same routes.
func TestRoutesAreThoseOfTheDocument(t *testing.T) {
	var documented, served []string
	for _, op := range newJudge(t).operations() {
		documented = append(documented, op)
	}
	for _, r := range control.Routes() {
		served = append(served, r[0]+" "+r[1])
	}
	slices.Sort(documented)
	slices.Sort(served)
	assert.Equal(t, documented, served)
}
