package openapi_test

import (
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
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	_ "github.com/oapi-codegen/runtime" // what the clients import
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

const (
	documentFile = "../../openapi/openapi.yaml"
	controlFile  = "../../cmd/agentmessaging-fake/internal/control/openapi.yaml"
)

// load reads a document, which is valid, its examples included.
func load(t testing.TB, file string) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(t.Context()))
	return doc
}

// operations returns the document's operations by call, such as "GET /v1/status".
func operations(doc *openapi3.T) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+path] = op
		}
	}
	return all
}

// TestDefaults of interface 2.3 and 4.2, which no run shows.
func TestDefaults(t *testing.T) {
	schemas := load(t, documentFile).Components.Schemas
	for member, want := range map[string]string{"WarmUpRequest.mode": "hosted", "AgentLlm.mode": "hosted", "AgentLlm.tier": "fast"} {
		object, name, _ := strings.Cut(member, ".")
		assert.Equal(t, want, schemas[object].Value.Properties[name].Value.Default, member)
	}
}

// TestCalls compares the calls and the schemas of their replies with testdata/calls.txt. That
// file was written from the interface, not from the document: TestContract shows that the
// document is not too narrow, and this test that it is not too wide.
//
// A reply in the file is "closed" if it takes no other members, and "open" if the document
// says that it takes them. A line has a member, its type or its values, whether it may be
// null, and whether it is optional.
func TestCalls(t *testing.T) {
	doc := load(t, documentFile)
	assert.Equal(t, openapi3.SecurityRequirements{{"bearer": {}}}, doc.Security)
	scheme := doc.Components.SecuritySchemes["bearer"].Value
	assert.Equal(t, []string{"http", "bearer"}, []string{scheme.Type, scheme.Scheme})
	var calls, replies []string
	for call, op := range operations(doc) {
		assert.Nil(t, op.Security, "%s has its own rule of security", op.OperationID)
		line := call + " is " + op.OperationID + ":"
		for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
			res, name := op.Responses.Value(status).Value, "other errors"
			switch status {
			case "200":
				name = op.OperationID
			case "429":
				name = "429"
			}
			line += " " + status
			for header, ref := range res.Headers {
				line += " with " + header
				assert.True(t, ref.Value.Required, line)
			}
			require.Equal(t, []string{"application/json"}, slices.Collect(maps.Keys(res.Content)), line)
			schema := res.Content["application/json"].Schema.Value
			replies = append(replies, name+": "+typeOrValues(schema)+"\n"+strings.Join(memberLines("  ", schema), "\n")+"\n")
		}
		calls = append(calls, line+"\n")
	}
	slices.Sort(calls)
	slices.Sort(replies)
	want, err := os.ReadFile("testdata/calls.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), strings.Join(calls, "")+"\n"+strings.Join(slices.Compact(replies), "\n"))
}

// memberLines returns a line for each member of an object, and of the objects in it.
func memberLines(prefix string, object *openapi3.Schema) (lines []string) {
	for name, ref := range object.Properties {
		member, line := ref.Value, prefix+name
		null := len(member.OneOf) == 2 && member.OneOf[1].Value.Type.Is("null")
		if null {
			member = member.OneOf[0].Value
		}
		line += " " + typeOrValues(member)
		if null || member.Type.Includes("null") {
			line += " null"
		}
		if !slices.Contains(object.Required, name) {
			line += " optional"
		}
		lines = append(append(lines, line), memberLines(prefix+name+".", member)...)
	}
	slices.Sort(lines)
	return lines
}

// typeOrValues prints a schema whole if it says more than the tests compare.
func typeOrValues(s *openapi3.Schema) string {
	known := &openapi3.Schema{
		Title: s.Title, Description: s.Description, Type: s.Type, Enum: s.Enum, Required: s.Required,
		Properties: s.Properties, AdditionalProperties: s.AdditionalProperties, Items: s.Items, Extensions: s.Extensions, Origin: s.Origin,
	}
	var values []string
	for _, value := range s.Enum {
		values = append(values, fmt.Sprint(value))
	}
	switch more := s.AdditionalProperties.Has; {
	case !reflect.DeepEqual(s, known):
		return fmt.Sprintf("%+v", s)
	case s.Type.Is("object") && more == nil:
		return "object"
	case s.Type.Is("object"):
		return map[bool]string{true: "open", false: "closed"}[*more]
	case s.Type.Is("array"):
		return typeOrValues(s.Items.Value) + "s"
	case len(values) > 0:
		return strings.Join(values, "|")
	}
	return s.Type.Slice()[0]
}

// checker compares every request and reply of a run with the document.
type checker struct {
	router routers.Router
	mu     sync.Mutex
	seen   map[string]bool // "SendMessage 404"
	wrong  map[string]bool // "GET /v1/byok answered 200: " and what the document says
}

func newChecker(t testing.TB, doc *openapi3.T) *checker {
	t.Helper()
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &checker{router: router, seen: map[string]bool{}, wrong: map[string]bool{}}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// clientOver returns a client whose calls over a transport in memory are checked.
func (c *checker) clientOver(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		var sent []byte
		if req.Body != nil {
			sent, _ = io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(sent))
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		received, err := io.ReadAll(res.Body)
		if err == nil {
			c.check(req, sent, res, received)
			res.Body = io.NopCloser(bytes.NewReader(received))
		}
		return res, err
	})}
}

// notInSchemas matches refusals whose rule no schema can state, and those of one rule that
// is the fake's own: interface 2.5 does not close a message.
var notInSchemas = regexp.MustCompile(`twice|byok_|at most (1048576|4096) |/messages .* is not allowed`)

// refusedAnywhere are the statuses that a path outside the document may have: the service
// can refuse a key before it looks at the path.
var refusedAnywhere = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}

// check wants the document to allow the reply, to take a request that the service took,
// and to refuse a request that the service refused.
func (c *checker) check(req *http.Request, sent []byte, res *http.Response, received []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	complain := func(format string, args ...any) {
		line, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
		c.wrong[req.Method+" "+req.URL.Path+" "+line] = true
	}
	route, params, err := c.router.FindRoute(req)
	if err != nil {
		if !slices.Contains(refusedAnywhere, res.StatusCode) {
			complain("answered %d: %v", res.StatusCode, err)
		}
		return
	}
	c.seen[fmt.Sprint(route.Operation.OperationID, " ", res.StatusCode)] = true
	request := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, IncludeResponseStatus: true,
	}}
	reply := &openapi3filter.ResponseValidationInput{RequestValidationInput: request, Status: res.StatusCode, Header: res.Header, Options: request.Options}
	if err := openapi3filter.ValidateResponse(req.Context(), reply.SetBodyBytes(received)); err != nil {
		complain("answered %d: %v", res.StatusCode, err)
	}
	taken := res.StatusCode == http.StatusOK
	if taken && req.Header.Get("Content-Type") != "" ||
		res.StatusCode == http.StatusBadRequest && strictjson.Check(sent) == nil && !notInSchemas.MatchString(req.URL.Path+" "+string(received)) {
		req.Body = io.NopCloser(bytes.NewReader(sent))
		if err := openapi3filter.ValidateRequest(req.Context(), request); (err == nil) != taken {
			complain("%.80q: taken %v, but the document says %v", sent, taken, err)
		}
	}
}

// TestContract runs the whole contract suite on the fake: each bound of a request is
// tried on both sides there.
func TestContract(t *testing.T) {
	c := newChecker(t, load(t, documentFile))
	t.Run("cases", func(t *testing.T) {
		contract.Run(t, contract.Target{Fresh: func(tb testing.TB) contract.Target {
			began := time.Now()
			fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes(), fakeserver.WithClock(func() time.Time { return began }))
			client := c.clientOver(fake.Direct())
			if strings.HasSuffix(tb.Name(), "key_day") { // fills the limit of a day
				client = &http.Client{Transport: fake.Direct()}
			}
			return contract.Target{
				BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, FrozenClock: true, Decisions: true,
				HTTPClient: client,
				ClientFrom: func(ip string) *http.Client { return c.clientOver(fake.Direct(fakeserver.FromIP(ip))) },
			}
		}})
	})
	assert.Empty(t, c.wrong)
	assert.NotEmpty(t, c.seen)
}

// TestControl holds every call that the tests of the control interface make to
// its document, and wants a success of each operation among them. One of these
// tests calls every route, so none is missing in the document.
func TestControl(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/yaml"} {
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
	c := newChecker(t, doc)
	for line := range bytes.Lines(recorded) {
		var call struct {
			Method, URL, Answer string
			Answered            http.Header
			Status              int
		}
		require.NoError(t, json.Unmarshal(line, &call))
		req := httptest.NewRequest(call.Method, call.URL, nil)
		c.check(req, nil, &http.Response{StatusCode: call.Status, Header: call.Answered}, []byte(call.Answer))
	}
	assert.Empty(t, c.wrong)
	for _, op := range operations(doc) {
		succeeded := slices.ContainsFunc([]string{" 200", " 201", " 204"}, func(status string) bool { return c.seen[op.OperationID+status] })
		assert.True(t, succeeded, "no test has %s succeed", op.OperationID)
	}
}

// TestClientsCanBeGenerated of both documents, and compile.
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
