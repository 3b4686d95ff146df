package openapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestControl holds every call that the tests of the control interface make
// against its document, and wants a success of each operation among them. One of
// these tests calls every route, so none is missing in the document.
func TestControl(t *testing.T) {
	for _, kind := range []string{"text/event-stream", "application/yaml"} {
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	doc := load(t, controlFile)
	r := newRecord(t, doc)
	r.loose = true // the control interface passes over a body that it does not ask for
	r.replay(t, recordedControl(t))
	assert.Empty(t, r.wrong)
	for _, op := range operations(doc) {
		succeeded := slices.ContainsFunc([]string{" 200", " 201", " 204"}, func(status string) bool { return r.seen[op.OperationID+status] })
		assert.True(t, succeeded, "no test has %s succeed", op.OperationID)
	}
}

// recordedControl runs the tests, which record their calls.
func recordedControl(t *testing.T) *os.File {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	tests := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./cmd/agentmessaging-fake/internal/control")
	tests.Dir, tests.Env = "../..", append(os.Environ(), "AGENTMESSAGING_FAKE_RECORD="+file)
	said, err := tests.CombinedOutput()
	require.NoError(t, err, string(said))
	recorded, err := os.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = recorded.Close() })
	return recorded
}

// replay adds calls that others have recorded.
func (r *record) replay(t *testing.T, recorded *os.File) {
	t.Helper()
	for lines := json.NewDecoder(recorded); lines.More(); {
		var c struct {
			Method, URL, Body, Answer string
			Header, Answered          http.Header
			Status                    int
		}
		require.NoError(t, lines.Decode(&c))
		req := httptest.NewRequest(c.Method, c.URL, nil)
		req.Header = c.Header
		r.add("control", req, []byte(c.Body), &http.Response{StatusCode: c.Status, Header: c.Answered}, []byte(c.Answer))
	}
}
