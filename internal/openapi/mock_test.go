package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/contract"
)

// mock is a service made of the document and of nothing else: it refuses what
// the document forbids, and answers all else with the example.
type mock struct{ *validator }

func (m mock) RoundTrip(req *http.Request) (*http.Response, error) {
	sent, err := reread(&req.Body)
	if err != nil {
		return nil, err
	}
	w := &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Request: req, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	said := m.judge(exchange{req: req, sent: sent, status: http.StatusOK})
	w.StatusCode = map[bool]int{true: http.StatusOK, false: http.StatusBadRequest}[said.request == nil]
	body := `{"error":"not_found"}`
	if route, _, err := m.router.FindRoute(req); err != nil {
		w.StatusCode = http.StatusNotFound
	} else if res := route.Operation.Responses.Status(w.StatusCode); res != nil {
		body = example(res.Value.Content.Get("application/json"))
	}
	w.Body = io.NopCloser(strings.NewReader(body))
	return w, nil
}

// example is the one that the document has, or an error without one.
func example(content *openapi3.MediaType) string {
	if content == nil {
		return `{}`
	}
	text, _ := json.Marshal(content.Example)
	return string(text)
}

// TestObserveMock: what a document alone answers ends in a page, with what it
// could not tell.
func TestObserveMock(t *testing.T) {
	target := contract.Target{
		BaseURL: "http://mock.example", Key: "any", HTTPClient: &http.Client{Transport: mock{newValidator(t)}},
	}
	o, err := contract.Observe(t.Context(), target, contract.Spend{Requests: 490, Creations: 24})
	require.NoError(t, err)
	assert.JSONEq(t, `"code points"`, string(o.Decisions["length_unit"].Answer))
	assert.JSONEq(t, `true`, string(o.Decisions["unknown_members"].Answer), "2.5 closes no object")
	assert.Contains(t, o.Decisions["windows"].NotAsked, "needs ")
	assert.Contains(t, o.Markdown(), "otherwise than the fake")
}
