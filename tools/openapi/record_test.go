package openapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// record holds every reply of a run, and every request that was carried out,
// against the document. What the document refuses it says in its tables, which
// other tests compare with the interface.
type record struct {
	router routers.Router
	loose  bool // a request may have a body that the document does not know
	mu     sync.Mutex
	judged int
	seen   map[string]bool // "SendMessage 404"
	wrong  []string
}

func newRecord(t testing.TB, doc *openapi3.T) *record {
	t.Helper()
	doc.Servers = nil // any address will do
	router, err := gorillamux.NewRouter(doc)
	require.NoError(t, err)
	return &record{router: router, seen: map[string]bool{}}
}

// through is the client with the record on its way; tb's name is that of the
// case.
func (r *record) through(tb testing.TB, client *http.Client) *http.Client {
	client.Transport = recording{r, tb.Name(), client.Transport}
	return client
}

type recording struct {
	to   *record
	id   string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t recording) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	sent, err := reread(&out.Body)
	if err != nil {
		return nil, err
	}
	res, err := t.next.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	received, err := reread(&res.Body)
	if err != nil {
		return nil, err
	}
	t.to.add(t.id, req, sent, res, received)
	return res, nil
}

// reread reads a body and leaves a copy in its place.
func reread(body *io.ReadCloser) ([]byte, error) {
	if *body == nil || *body == http.NoBody {
		return nil, nil
	}
	content, err := io.ReadAll(*body)
	err = errors.Join(err, (*body).Close())
	*body = io.NopCloser(bytes.NewReader(content))
	return content, err
}

func (r *record) add(id string, req *http.Request, sent []byte, res *http.Response, received []byte) {
	req = req.Clone(context.Background())
	req.Body = http.NoBody
	if len(sent) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(sent))
		req.Header.Set("Content-Type", "application/json") // which the fake does without
	}
	operation, err := r.judge(req, res, received)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.judged++
	if operation != "" {
		r.seen[fmt.Sprint(operation, " ", res.StatusCode)] = true
	}
	if err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %s %s %.200q answered %d: %s", id, req.Method, req.URL.Path, sent, res.StatusCode, line))
	}
}

// refusedAnywhere are the statuses that a path outside the document may have: who
// calls can be refused before what is called is looked at.
var refusedAnywhere = []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed}

// judge finds the operation, "" for none, and what the document says against
// the exchange.
func (r *record) judge(req *http.Request, res *http.Response, received []byte) (operation string, err error) {
	route, params, err := r.router.FindRoute(req)
	switch {
	case err != nil && slices.Contains(refusedAnywhere, res.StatusCode):
		return "", nil
	case err != nil:
		return "", err
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true, RejectWhenRequestBodyNotSpecified: !r.loose, SkipSettingDefaults: true,
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
	}
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: options}
	if res.StatusCode < 300 {
		err = openapi3filter.ValidateRequest(req.Context(), in)
	}
	reply := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header, Options: options}
	return route.Operation.OperationID, errors.Join(err, openapi3filter.ValidateResponse(req.Context(), reply.SetBodyBytes(received)))
}

const (
	clearedBody = `{"ok":true,"trace_id":"t"}`
	replyBody   = `{"reply_text":"Hi","trace_id":"t"}`
	limitedBody = `{"error":"rate_limited","trace_id":"t","limit_key":"k"}`
)

var complaints = []struct {
	call, sent    string
	status        int
	received      string
	without, what string // a header, and the complaint: "" for none
}{
	{"DELETE /v1/byok", "", 200, clearedBody, "", ""},
	{"DELETE /v1/byok", "", 200, `{"ok":true}`, "", "trace_id"},
	{"DELETE /v1/byok", "", 200, `{"ok":"true","trace_id":"t"}`, "", "response body"},
	{"DELETE /v1/byok", "", 503, `{"error":"byok_unavailable"}`, "", "status is not supported"},
	{"GET /v1/byok", "", 404, `not found`, "", "response body"},
	{"GET /v1/agents/a", "", 429, limitedBody, "", ""},
	{"GET /v1/agents/a", "", 429, limitedBody, "Retry-After", "Retry-After"},
	{"GET /v1/agents/a", "", 429, limitedBody, "Content-Type", "Content-Type"},
	{"POST /v1/agents/a/messages", `{"text":"Hi"}`, 200, replyBody, "", ""},
	{"POST /v1/agents/a/messages", `{"text":1}`, 200, replyBody, "", "request body"},
	{"POST /v1/agents/a/messages", `{"text":1}`, 400, `{"error":"bad_request"}`, "", ""},
	{"POST /v1/agent", `{}`, 200, replyBody, "", "no matching operation"},
	{"POST /v1/agent", `{}`, 404, `{"error":"not_found"}`, "", ""},
	{"PATCH /v1/byok", `{}`, 405, `{"error":"method_not_allowed"}`, "", ""},
}

// TestRecordComplains: a record that finds nothing would let every run pass.
func TestRecordComplains(t *testing.T) {
	for _, tt := range complaints {
		method, path, _ := strings.Cut(tt.call, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, "http://service.example"+path, nil)
		assert.NoError(t, err)
		header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
		header.Del(tt.without)
		r := newRecord(t, document(t))
		r.add("a case", req, []byte(tt.sent), &http.Response{StatusCode: tt.status, Header: header}, []byte(tt.received))
		if tt.what == "" {
			assert.Empty(t, r.wrong, tt)
		} else {
			assert.Contains(t, strings.Join(r.wrong, "\n"), tt.what, tt)
		}
	}
}
