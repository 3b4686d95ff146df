// Package openapi_test checks openapi.yaml, the description of the Agent Messaging Service for
// machines. Nothing in openapi.yaml was generated from the client or from the fake. The
// tests
//
//   - compare the calls and replies of openapi.yaml with the interface, in both
//     directions, with kin-openapi,
//   - run the contract suite against Prism, a mock server of another project that serves
//     openapi.yaml,
//   - send messages to Prism through the limits of nginx and of HAProxy,
//   - generate a client with oapi-codegen, and compile the client,
//   - and check the standalone fake's control interface against its document.
//
// The package is a nested module, so that none of these tools is a dependency of the SDK.
// Prism needs Node 20 and "npm ci" in this folder. Without Prism, nginx or HAProxy, the tests
// that need them are skipped.
package openapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/oapi-codegen/runtime" // imported by the generated clients
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

const (
	documentFile = "../../openapi/openapi.yaml"
	controlFile  = "../../cmd/agentmessaging-fake/internal/control/openapi.yaml"
)

// load reads a document, and checks that it and its examples are valid.
func load(t testing.TB, file string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	return doc
}

// operations returns the document's operations by their calls, such as "GET /v1/status".
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+path] = op
		}
	}
	return all
}

// TestDefaults checks the defaults of interface 2.3 and 4.2, which no call shows.
func TestDefaults(t *testing.T) {
	schemas := load(t, documentFile).Components.Schemas
	for member, want := range map[string]string{"WarmUpRequest.mode": "hosted", "AgentLlm.mode": "hosted", "AgentLlm.tier": "fast"} {
		object, name, _ := strings.Cut(member, ".")
		assert.Equal(t, want, schemas[object].Value.Properties[name].Value.Default, member)
	}
}

// TestCalls compares the document with package rawcall, which was written from the
// interface, not from the document: it has the same calls with the same statuses, and
// the same bodies of answers. The bounds of requests are those of internal/spec.
func TestCalls(t *testing.T) {
	all := operations(load(t, documentFile))
	assert.Len(t, all, len(rawcall.Endpoints))
	for _, call := range rawcall.Endpoints {
		op := all[call.Method+" "+call.Path]
		require.NotNil(t, op, call.Name)
		if op.RequestBody != nil {
			wantBounds(t, call.Name, op.RequestBody.Value.Content["application/json"].Schema.Value, spec.Find(call.Method, call.Path).Body)
		}
		assert.Len(t, op.Responses.Map(), 1+len(call.Errors), call.Name)
		for _, status := range append(call.Errors, http.StatusOK) {
			res := op.Responses.Status(status)
			require.NotNil(t, res, "%s %d", call.Name, status)
			if status == http.StatusTooManyRequests {
				assert.True(t, res.Value.Headers["Retry-After"].Value.Required, call.Name)
			}
			require.Len(t, res.Value.Content, 1, call.Name)
			reply := res.Value.Content["application/json"]
			closed := op.OperationID == "Status" && status == http.StatusOK // interface 4.1
			shape, _ := rawcall.Exchange{Call: call, Status: status}.Documented()
			for _, body := range variants(reply.Example.(map[string]any)) {
				want := shape.Problem(body, closed)
				err := reply.Schema.Value.VisitJSON(body, openapi3.EnableJSONSchema2020())
				assert.Equal(t, want == "", err == nil, "%s %d %v: the interface says %q, the document %v", call.Name, status, body, want, err)
			}
		}
	}
}

// wantBounds compares the lengths and the values of a schema with internal/spec.
func wantBounds(t *testing.T, where string, schema *openapi3.Schema, field *spec.Field) {
	most := uint64(0)
	if schema.MaxLength != nil {
		most = *schema.MaxLength
	}
	assert.EqualValues(t, field.MaxLen, most, "%s: the length of %s", where, field.Path)
	assert.Equal(t, fmt.Sprint(field.Enum), fmt.Sprint(schema.Enum), "%s: the values of %s", where, field.Path)
	for _, f := range field.Fields {
		if inside := schema.Properties[f.Name()]; inside != nil { // NewAgent has no api_key
			wantBounds(t, where, inside.Value, f)
		}
	}
}

// variants returns an example, and copies of it with one member less or more, or with another
// value.
func variants(example map[string]any) []map[string]any {
	all := []map[string]any{example}
	with := func(name string, value any) {
		variant := maps.Clone(example)
		variant[name] = value
		all = append(all, variant)
	}
	for _, name := range append(slices.Collect(maps.Keys(example)), "limit_key", "reason", "more") {
		for _, value := range []any{nil, true, 5.0, "other", []any{"other"}, []any{5.0}, map[string]any{}} {
			with(name, value)
		}
		without := maps.Clone(example)
		delete(without, name)
		all = append(all, without)
		if inner, nested := example[name].(map[string]any); nested {
			for _, variant := range variants(inner) {
				with(name, variant)
			}
		}
	}
	return all
}

// TestControl compares every reply that the tests of the control interface get with its
// document. There must be a success of each operation. One of these tests calls every route,
// so the document misses none. What a test adds to the fake has the bounds of a request.
func TestControl(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/yaml", "application/jsonl"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	file := filepath.Join(t.TempDir(), "calls")
	tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./cmd/agentmessaging-fake")
	tests.Dir, tests.Env = "../..", append(os.Environ(), "AGENTMESSAGING_FAKE_RECORD="+file)
	out, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", out)
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)

	doc := load(t, controlFile)
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	wantBounds(t, "NewAgent", doc.Components.Schemas["NewAgent"].Value, spec.CreateAgent.Body)
	wantBounds(t, "NewExchange", doc.Components.Schemas["NewExchange"].Value, spec.SendMessage.Body)
	untested := operations(doc)
	for line := range bytes.Lines(recorded) {
		var call struct {
			Method, URL, Answer string
			Answered            http.Header
			Status              int
		}
		require.NoError(t, json.Unmarshal(line, &call), "%s", line)
		req := httptest.NewRequest(call.Method, call.URL, nil)
		route, _, err := router.FindRoute(req)
		if err != nil {
			assert.Contains(t, []int{401, 403, 404, 405}, call.Status, "%s %s: %v", call.Method, call.URL, err)
			continue
		}
		reply := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
			Status:                 call.Status, Header: call.Answered,
			Options: &openapi3filter.Options{IncludeResponseStatus: true},
		}
		err = openapi3filter.ValidateResponse(t.Context(), reply.SetBodyBytes([]byte(call.Answer)))
		assert.NoError(t, err, "%s %s answered %d", call.Method, call.URL, call.Status)
		if call.Status < 300 {
			delete(untested, route.Method+" "+route.Path)
		}
	}
	assert.Empty(t, slices.Collect(maps.Keys(untested)), "no test has these succeed")
}

// TestClientsCanBeGenerated checks that generated clients of both documents compile.
func TestClientsCanBeGenerated(t *testing.T) {
	for _, document := range []string{documentFile, controlFile} {
		client := filepath.Join(t.TempDir(), "client.gen.go")
		for _, step := range [][]string{
			{"tool", "oapi-codegen", "-generate", "types,client", "-package", "client", "-o", client, document},
			{"vet", client},
		} {
			out, err := exec.CommandContext(t.Context(), "go", step...).CombinedOutput()
			require.NoError(t, err, "%s: %s", document, out)
		}
	}
}

// startPrism starts Prism, a mock server that others wrote, on the document, and returns its
// address. Prism checks each request with its own validator.
func startPrism(t *testing.T) string {
	prism, err := exec.LookPath("node_modules/.bin/prism")
	if err != nil {
		t.Skip("npm ci installs Prism")
	}
	mock := exec.CommandContext(t.Context(), prism, "mock", "--port", "0", documentFile)
	out, err := mock.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, mock.Start())
	t.Cleanup(func() { _ = mock.Wait() })
	lines := bufio.NewScanner(out)
	for !strings.Contains(lines.Text(), "listening on ") {
		require.True(t, lines.Scan(), "Prism did not start")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // a line for each step of each call
	_, address, _ := strings.Cut(lines.Text(), "listening on ")
	return address
}

// beyondPrism matches the cases of rules that Prism does not know. Prism keeps no state,
// accepts any key and any agent, and has other errors for JSON that it cannot read.
const beyondPrism = "TestLive/.*/(ids-differ|null|set-|byok-(mode|not|cleared|of|neither)|400-(changes|creation)|" +
	"credential-(unknown|shortened|lengthened|two-keys|other-case)|agent-(unknown|id)|unknown-among|body-invalid|key-not-in-errors)"

// TestContractOnPrism runs the contract suite as on the live service. Its cases try each
// bound of a request on both sides, and calls without a key, so the document must accept
// and refuse the same. testdata/prism.json has the cases that have passed, each with its
// date, as -contract.progress writes it.
func TestContractOnPrism(t *testing.T) {
	progress := filepath.Join(t.TempDir(), "progress.json")
	cases := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run=TestLive$", "-skip="+beyondPrism, "./contract",
		"-contract.live", "-contract.progress="+progress, "-contract.budget=requests=9000,creations=900,byok=900,warmups=900")
	cases.Dir = "../.."
	cases.Env = append(os.Environ(), "AGENT_MESSAGING_BASE_URL="+startPrism(t), "AGENT_MESSAGING_API_KEY=key-1", "AGENT_MESSAGING_SECOND_API_KEY=key-2")
	out, err := cases.CombinedOutput()
	require.NoError(t, err, "exclude in beyondPrism what asks for more than Prism can\n%s", out)
	var passed, recorded map[string]string
	for file, dates := range map[string]*map[string]string{progress: &passed, "testdata/prism.json": &recorded} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, dates))
	}
	assert.Equal(t, slices.Sorted(maps.Keys(recorded)), slices.Sorted(maps.Keys(passed)))
	page, _ := os.ReadFile("../../docs/contract.md")
	assert.Contains(t, string(page), fmt.Sprintf("%d cases passed", len(passed)))
}
