package agentmessaging_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// requiredMembers are those of each success body (interface 4), with a value of
// the documented type.
var requiredMembers = map[string]string{
	"Status":      `{"ok":true,"service":"s","version":"1","mode":"live","trace_id":"t"}`,
	"WarmUp":      `{"ok":true,"warmed":true,"mode":"hosted","trace_id":"t"}`,
	"GetBYOK":     `{"ok":true,"byok":{"provider":"openai","fingerprint":"f","updated_at":"u"},"trace_id":"t"}`,
	"SetBYOK":     `{"ok":true,"byok":{"provider":"openai","fingerprint":"f","updated_at":"u"},"trace_id":"t"}`,
	"ClearBYOK":   `{"ok":true,"trace_id":"t"}`,
	"CreateAgent": `{"agent_id":"a","status":"active","sms":{"status":"pending"},"trace_id":"t"}`,
	"GetAgent":    `{"agent_id":"a","status":"active","created_at":"c","updated_at":"u","sms":{"status":"pending"},"trace_id":"t"}`,
	"SendMessage": `{"reply_text":"hi","trace_id":"t"}`,
	"EnableSMS":   `{"status":"pending","trace_id":"t"}`,
}

// mistyped returns the body once for each member and each type that is not its
// own, by what was changed. sms is optional, what it requires is not.
func mistyped(body, path string) map[string]string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &members) != nil {
		return nil
	}
	changed := map[string]string{}
	change := func(name, value string) string {
		members := map[string]json.RawMessage{}
		_ = json.Unmarshal([]byte(body), &members)
		members[name] = json.RawMessage(value)
		text, _ := json.Marshal(members)
		return string(text)
	}
	for name, value := range members {
		for _, wrong := range []string{`5`, `"text"`, `{}`, `false`, `[]`, `["a"]`} {
			if name != "sms" && kindOfJSON(wrong) != kindOfJSON(string(value)) {
				changed[path+name+" is "+wrong] = change(name, wrong)
			}
		}
		for what, nested := range mistyped(string(value), name+".") {
			changed[what] = change(name, nested)
		}
	}
	return changed
}

func kindOfJSON(value string) byte {
	return strings.NewReplacer("t", "b", "f", "b").Replace(value[:1])[0]
}

// TestRequiredMemberOfTheWrongType: such a body is no success, of any endpoint.
func TestRequiredMemberOfTheWrongType(t *testing.T) {
	for _, call := range nineCalls {
		c, _ := answered(t, answer{status: 200, body: requiredMembers[call.name]}, call.do)
		assert.Equal(t, "success", c.outcome, call.name)
		for what, body := range mistyped(requiredMembers[call.name], "") {
			c, _ := answered(t, answer{status: 200, body: body}, call.do)
			want := []string{"error 200", "outcome unknown"}[columnOf(call.method)]
			assert.Equal(t, want, c.outcome, "%s: %s", call.name, what)
		}
	}
}

// TestOneKindForWhatMayHaveHappened: a POST that was answered by a 5xx which
// the interface does not list for it may have been carried out.
func TestOneKindForWhatMayHaveHappened(t *testing.T) {
	documented := `{"error":"byok_unavailable","reason":"later","trace_id":"trace_7"}`
	for _, call := range nineCalls {
		for _, status := range []int{400, 404, 418, 499, 500, 501, 502, 503, 504, 599, 600, 999} {
			for _, body := range []string{documented, "<html><body>gateway</body></html>", "", `{"trace_id":"t"}`} {
				_, err := answered(t, answer{status: status, body: body}, call.do)
				listed := call.name == "WarmUp" && status == 503 && body == documented
				unknown := call.method == "POST" && status >= 500 && !listed
				assert.Equal(t, unknown, describe(err) == "outcome unknown", "%s: %d with %s: %v", call.name, status, body, err)
				var failure *agentmessaging.Error
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, status, failure.StatusCode)
				if status >= 500 && status <= 599 && status != 503 {
					assert.ErrorIs(t, err, agentmessaging.ErrServer)
				}
			}
		}
	}
	_, err := answered(t, answer{status: 504, body: documented}, post)
	var unknown *agentmessaging.OutcomeUnknownError
	require.ErrorAs(t, err, &unknown)
	assert.Equal(t, "trace_7", unknown.TraceID)
	assert.Equal(t, "agentmessaging: POST /v1/agents/{agent_id}/messages: the request may have been carried out, "+
		"look before you repeat it: 504 byok_unavailable: later (trace trace_7)", err.Error())
}

func TestRetryAfterOfAnError(t *testing.T) {
	for err, want := range map[error]time.Duration{
		nil: 0, io.EOF: 0,
		&agentmessaging.Error{}:                                                        0,
		&agentmessaging.Error{RetryAfter: 3 * time.Second}:                             3 * time.Second,
		&agentmessaging.ValidationError{}:                                              0,
		fmt.Errorf("x: %w", &agentmessaging.Error{RetryAfter: 1}):                      1,
		&agentmessaging.OutcomeUnknownError{Err: &agentmessaging.Error{RetryAfter: 2}}: 2,
	} {
		wait, ok := agentmessaging.RetryAfter(err)
		assert.Equal(t, want, wait, err)
		assert.Equal(t, want > 0, ok, err)
	}
}

// TestImpossibleStatus: the error says what came.
func TestImpossibleStatus(t *testing.T) {
	for status, words := range map[int]string{0: "status 000", 42: "status 042", 600: "600 ", 999: "999 "} {
		for _, do := range nineCalls {
			_, err := answered(t, answer{status: status, body: okBody}, do.do)
			assert.ErrorContains(t, err, words)
		}
	}
}

// TestPageOfAProxy: HTML is named as what it is.
func TestPageOfAProxy(t *testing.T) {
	for _, status := range []int{200, 404, 502} {
		_, err := answered(t, answer{status: status, body: "\n<!DOCTYPE html><html><body>secret page</body></html>"}, get)
		assert.ErrorContains(t, err, "the body is HTML, probably a page of a proxy")
		assert.NotContains(t, err.Error(), "secret")
	}
}
