package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordComplains: a record that finds nothing would let every run pass.
func TestRecordComplains(t *testing.T) {
	const (
		cleared = `{"ok":true,"trace_id":"t"}`
		reply   = `{"reply_text":"Hi","trace_id":"t"}`
		limited = `{"error":"rate_limited","trace_id":"t","limit_key":"k"}`
	)
	for _, tt := range []struct {
		call, sent string
		status     int
		received   string
		complaint  string // "" where there is none
	}{
		{"DELETE /v1/byok", "", 200, cleared, ""},
		{"DELETE /v1/byok", "", 200, `{"ok":true}`, "the reply"},
		{"DELETE /v1/byok", "", 200, `{"ok":"true","trace_id":"t"}`, "the reply"},
		{"DELETE /v1/byok", "", 503, `{"error":"byok_unavailable"}`, "status is not supported"},
		{"DELETE /v1/byok", "", 401, `{"error":"unauthorized"}`, "finds this request valid: true"},
		{"GET /v1/byok", "", 404, `{"error":"not_found"}`, ""},
		{"GET /v1/byok", "", 404, `not found`, "the reply"},
		{"POST /v1/agents/a/messages", `{"text":"Hi"}`, 200, reply, ""},
		{"POST /v1/agents/a/messages", `{"text":"Hi"}`, 400, `{"error":"bad_request"}`, "finds this request valid: true"},
		{"POST /v1/agents/a/messages", `{"text":1}`, 200, reply, "finds this request valid: false"},
		{"POST /v1/agents/a/messages", `{"text":1}`, 400, `{"error":"bad_request"}`, ""},
		{"POST /v1/agents/a/messages", `{"text":1}`, 429, limited, ""}, // refused before the body was looked at
		{"POST /v1/agents/a/messages", ``, 404, `{"error":"not_found"}`, "finds this request valid: false"},
		{"POST /v1/agent", `{}`, 200, reply, "no such operation"},
		{"POST /v1/agent", `{}`, 404, `{"error":"not_found"}`, ""},
		{"PATCH /v1/byok", `{}`, 405, `{"error":"method_not_allowed"}`, ""},
	} {
		got := complaints(t, tt.call, exchange{
			sent: []byte(tt.sent), status: tt.status, received: []byte(tt.received),
			header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}},
		})
		if tt.complaint == "" {
			assert.Empty(t, got, tt)
		} else {
			assert.Contains(t, got, tt.complaint, tt)
		}
	}
}

// TestRecordWantsHeaders: of both headers that a reply has.
func TestRecordWantsHeaders(t *testing.T) {
	limited := []byte(`{"error":"rate_limited","trace_id":"t","limit_key":"k"}`)
	for _, header := range []http.Header{
		{"Content-Type": {"application/json"}},
		{"Content-Type": {"text/html"}, "Retry-After": {"1"}},
	} {
		got := complaints(t, "GET /v1/agents/a", exchange{status: 429, received: limited, header: header})
		assert.Contains(t, got, "the reply", header)
	}
}

// complaints are those of a new record about one exchange.
func complaints(t *testing.T, call string, x exchange) string {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	req, err := http.NewRequestWithContext(t.Context(), method, "http://service.example"+path, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("Content-Type", "application/json")
	x.req = req
	r := newRecord(t)
	r.add("a case", x)
	return strings.Join(r.wrong, "\n")
}
