package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
