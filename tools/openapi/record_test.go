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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

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
