package openapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
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
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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

// operation is one of the document, and its place there.
type operation struct {
	*openapi3.Operation
	call string // "GET /v1/status"
}

func operations(doc *openapi3.T) []operation {
	var all []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op, method + " " + path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// jsonSchema is the schema of the only media type there is.
func jsonSchema(content openapi3.Content) *openapi3.Schema {
	media := content["application/json"]
	if len(content) != 1 || media == nil || media.Schema == nil {
		return nil
	}
	return media.Schema.Value
}

// TestEveryCall: the endpoints and statuses of interface 4, a bearer credential for
// each (5), and Retry-After for 429 and no other header (7).
func TestEveryCall(t *testing.T) {
	doc := load(t, documentFile)
	assert.Equal(t, openapi3.SecurityRequirements{{"bearer": {}}}, doc.Security)
	scheme := doc.Components.SecuritySchemes["bearer"].Value
	assert.Equal(t, []string{"http", "bearer"}, []string{scheme.Type, scheme.Scheme})
	want := map[string][]int{}
	for _, e := range spec.Endpoints {
		want[e.Name+" is "+e.Call] = slices.Sorted(slices.Values(append([]int{200}, e.Errors...)))
	}
	got := map[string][]int{}
	for _, op := range operations(doc) {
		assert.Nil(t, op.Security, "%s has a rule of its own", op.OperationID)
		var statuses []int
		for text, res := range op.Responses.Map() {
			status, err := strconv.Atoi(text)
			require.NoError(t, err)
			statuses = append(statuses, status)
			assert.Equal(t, status == 429, len(res.Value.Headers) > 0, "%s %s", op.OperationID, text)
			for name, header := range res.Value.Headers {
				assert.Equal(t, "Retry-After true", fmt.Sprint(name, " ", header.Value.Required), "%s %s", op.OperationID, text)
			}
		}
		got[op.OperationID+" is "+op.call] = slices.Sorted(slices.Values(statuses))
	}
	assert.Equal(t, want, got)
}

// TestDefaults of interface 2.3 and 4.2, which no run shows.
func TestDefaults(t *testing.T) {
	schemas := load(t, documentFile).Components.Schemas
	for member, want := range map[string]string{"WarmUpRequest.mode": "hosted", "AgentLlm.mode": "hosted", "AgentLlm.tier": "fast"} {
		object, name, _ := strings.Cut(member, ".")
		assert.Equal(t, want, schemas[object].Value.Properties[name].Value.Default, member)
	}
}

// A run against a service that answers well shows only that the document is
// not too narrow. That it is not too wide these tables show: a line is a
// member, its type or its values, and whether null will do and whether it may
// be absent. They are read from the interface once more. "closed" takes no
// other members, "open" says that it takes them.
var successes = map[string]string{
	"Status": `closed
		ok boolean
		service string
		version string
		mode string
		trace_id string`,
	"WarmUp": `object
		ok boolean
		warmed boolean
		mode hosted|byok
		trace_id string`,
	"GetBYOK": `object
		ok boolean
		byok closed null` + stored,
	"SetBYOK": `object
		ok boolean
		byok closed` + stored,
	"ClearBYOK": `object
		ok boolean
		trace_id string`,
	"CreateAgent": `object
		agent_id string
		status active
		sms object optional
		sms.status disabled|needs_compliance|pending|active|needs_setup optional
		trace_id string`,
	"GetAgent": `object
		agent_id string
		status string
		created_at string
		updated_at string
		sms object optional
		sms.status string
		sms.phone_number string optional
		trace_id string`,
	"SendMessage": `object
		reply_text string
		warnings strings optional
		trace_id string`,
	"EnableSMS": `object
		status disabled|needs_compliance|pending|active|needs_setup
		trace_id string`,
}

const (
	stored = `
		byok.provider openai_compat|openai|anthropic
		byok.base_url string null optional
		byok.model string null optional
		byok.fingerprint string
		byok.updated_at string
		trace_id string`
	failure = `open
		error string
		trace_id string optional
		limit_key string optional
		reason string optional`
	limited = `open
		error rate_limited
		trace_id string
		limit_key string
		reason string optional`
)

// TestReplies: the schema of each reply is what the interface lets the service
// answer.
func TestReplies(t *testing.T) {
	for _, op := range operations(load(t, documentFile)) {
		for status, res := range op.Responses.Map() {
			table := failure
			switch status {
			case "200":
				table = successes[op.OperationID]
			case "429":
				table = limited
			}
			schema := jsonSchema(res.Value.Content)
			require.NotNil(t, schema, "%s %s", op.OperationID, status)
			want := strings.Split(strings.ReplaceAll(table, "\t", ""), "\n")
			slices.Sort(want[1:])
			assert.Equal(t, want, append([]string{kind(schema)}, members("", schema)...), "%s %s", op.OperationID, status)
		}
	}
}

// members are the lines of an object's members, sorted.
func members(prefix string, object *openapi3.Schema) (lines []string) {
	for name, ref := range object.Properties {
		member, line := ref.Value, prefix+name
		null := len(member.OneOf) == 2 && member.OneOf[1].Value.Type.Is("null")
		if null {
			member = member.OneOf[0].Value
		}
		line += " " + kind(member)
		if null || member.Type.Includes("null") {
			line += " null"
		}
		if !slices.Contains(object.Required, name) {
			line += " optional"
		}
		lines = append(append(lines, line), members(prefix+name+".", member)...)
	}
	slices.Sort(lines)
	return lines
}

// kind is a schema's type or values. A schema that says more than a test reads
// is shown as it is.
func kind(s *openapi3.Schema) string {
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
		return kind(s.Items.Value) + "s"
	case len(values) > 0:
		return strings.Join(values, "|")
	}
	return s.Type.Slice()[0]
}

// record holds every request and reply of a run to the document. What the document refuses
// it says in its tables, which other tests compare with the interface.
type record struct {
	router routers.Router
	mu     sync.Mutex
	seen   map[string]bool // "SendMessage 404"
	wrong  map[string]bool // "GET /v1/byok answered 200: " and what the document says
}

func newRecord(t testing.TB, doc *openapi3.T) *record {
	t.Helper()
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &record{router: router, seen: map[string]bool{}, wrong: map[string]bool{}}
}

// through is the client with the record on its way.
func (r *record) through(client *http.Client) *http.Client {
	client.Transport = recording{r, client.Transport}
	return client
}

type recording struct {
	to   *record
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t recording) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	res, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(received))
	t.to.add(req, sent, res, received)
	return res, nil
}

// beyondSchemas are the reasons of refusals that no schema can give, and of one that is
// the fake's own: interface 2.5 does not close a message.
var beyondSchemas = regexp.MustCompile(`twice|byok_|at most (1048576|4096) |/messages .* is not allowed`)

// refusedAnywhere are the statuses that a path outside the document may have: who
// calls can be refused before what is called is looked at.
var refusedAnywhere = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}

// add wants the document to allow the reply, to take a request that the service took,
// and to refuse one that it refused.
func (r *record) add(req *http.Request, sent []byte, res *http.Response, received []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	complain := func(format string, args ...any) {
		line, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
		r.wrong[req.Method+" "+req.URL.Path+" "+line] = true
	}
	route, params, err := r.router.FindRoute(req)
	if err != nil {
		if !slices.Contains(refusedAnywhere, res.StatusCode) {
			complain("answered %d: %v", res.StatusCode, err)
		}
		return
	}
	r.seen[fmt.Sprint(route.Operation.OperationID, " ", res.StatusCode)] = true
	request := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, IncludeResponseStatus: true,
	}}
	reply := &openapi3filter.ResponseValidationInput{RequestValidationInput: request, Status: res.StatusCode, Header: res.Header, Options: request.Options}
	if err := openapi3filter.ValidateResponse(req.Context(), reply.SetBodyBytes(received)); err != nil {
		complain("answered %d: %v", res.StatusCode, err)
	}
	taken := res.StatusCode == http.StatusOK
	if taken && req.Header.Get("Content-Type") != "" ||
		res.StatusCode == http.StatusBadRequest && strictjson.Check(sent) == nil && !beyondSchemas.MatchString(req.URL.Path+" "+string(received)) {
		req.Body = io.NopCloser(bytes.NewReader(sent))
		if err := openapi3filter.ValidateRequest(req.Context(), request); (err == nil) != taken {
			complain("%.80q: taken %v, but the document says %v", sent, taken, err)
		}
	}
}

// TestContract runs the whole contract suite on the fake: each bound of a request is
// tried on both sides there.
func TestContract(t *testing.T) {
	r := newRecord(t, load(t, documentFile))
	t.Run("cases", func(t *testing.T) {
		contract.Run(t, contract.Target{Fresh: func(tb testing.TB) contract.Target {
			began := time.Now()
			fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes(), fakeserver.WithClock(func() time.Time { return began }))
			client := r.through(&http.Client{Transport: fake.Direct()})
			if strings.HasSuffix(tb.Name(), "key_day") { // fills the limit of a day
				client = &http.Client{Transport: fake.Direct()}
			}
			return contract.Target{
				BaseURL: fake.BaseURL(), Key: fake.Key(), Abilities: fake, FrozenClock: true, Decisions: true,
				HTTPClient: client,
				ClientFrom: func(ip string) *http.Client {
					return r.through(&http.Client{Transport: fake.Direct(fakeserver.FromIP(ip))})
				},
			}
		}})
	})
	assert.Empty(t, r.wrong)
	assert.NotEmpty(t, r.seen)
}

// TestControl holds every call that the tests of the control interface make to
// its document, and wants a success of each operation among them. One of these
// tests calls every route, so none is missing in the document.
func TestControl(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/yaml"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	file := filepath.Join(t.TempDir(), "calls")
	tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./cmd/agentmessaging-fake/internal/control")
	tests.Dir, tests.Env = "../..", append(os.Environ(), "AGENTMESSAGING_FAKE_RECORD="+file)
	out, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", out)
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)

	doc := load(t, controlFile)
	r := newRecord(t, doc)
	for line := range bytes.Lines(recorded) {
		var c struct {
			Method, URL, Answer string
			Answered            http.Header
			Status              int
		}
		require.NoError(t, json.Unmarshal(line, &c))
		r.add(httptest.NewRequest(c.Method, c.URL, nil), nil, &http.Response{StatusCode: c.Status, Header: c.Answered}, []byte(c.Answer))
	}
	assert.Empty(t, r.wrong)
	for _, op := range operations(doc) {
		succeeded := slices.ContainsFunc([]string{" 200", " 201", " 204"}, func(status string) bool { return r.seen[op.OperationID+status] })
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
