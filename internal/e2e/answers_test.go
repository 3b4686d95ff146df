package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/clienttest"
)

// TestWordsOfProxies are kept where they cannot be those of a request, behind a byte
// order mark too. Whoever wants more of the body finds it in CallInfo.
func TestWordsOfProxies(t *testing.T) {
	for body, says := range map[string]string{
		"<html><head><title>400 No required SSL certificate was sent</title></head></html>": `(81 bytes, "400 No required SSL certificate was sent")`,
		"<html><title>Blocked: message-canary\n</title></html>":                             "(52 bytes)",
		"upstream connect error, reset reason: connection failure\n":                        `JSON: 57 bytes, "upstream connect error, reset reason: connection failure"`,
		`you sent {"text":"message-canary"}`:                                                "JSON: 34 bytes",
		`{"message":"no healthy\nupstream","request_id":"r"}`:                               "no healthy upstream",
		`{"message":"message-can"}`:                                                         "Request Entity Too Large",
		"\ufeff" + `{"error":"busy","trace_id":17}`:                                         "busy (trace 17)",
		`{"message":"unused","error":"busy"}`:                                               "busy",
		`{"error":"busy","trace_id":["\u006dessage-canary"]}`:                               "busy",
	} {
		_, err := answered(t, clienttest.Answer{Status: 413, Body: body}, clienttest.Post)
		clienttest.HoldsLaws(t, err, "canary")
		assert.True(t, strings.HasSuffix(err.Error(), says), "%s gives %v", body, err)
	}
}

// TestListed503: in the service's words, the 503 that the interface lists says
// that nothing was done; any other one, to a POST, does not.
func TestListed503(t *testing.T) {
	const documented = `{"error":"byok_unavailable","reason":"later","trace_id":"trace_7"}`
	for _, call := range clienttest.Calls {
		for _, body := range []string{documented, "<html><body>gateway</body></html>", "", `{"trace_id":"t"}`} {
			c, err := answered(t, clienttest.Answer{Status: 503, Body: body}, call.Do)
			want := "error 503"
			if listed := call.Name == "WarmUp" && body == documented; call.IsPost() && !listed {
				want = clienttest.Unknown
			}
			assert.Equal(t, want, c.outcome, "%s: 503 with %s", call.Name, body)
			assert.ErrorIs(t, err, agentmessaging.ErrUnavailable, "an unknown outcome too says why")
		}
	}
}

// answered makes one call that is always answered with a, in virtual time.
func answered(t *testing.T, a clienttest.Answer, do clienttest.Do) (c cell, err error) {
	t.Helper()
	made := clienttest.Make(t, do, []clienttest.Answer{a})
	clienttest.HoldsLaws(t, made.Err, "canary")
	if failure := (*agentmessaging.Error)(nil); errors.As(made.Err, &failure) {
		assert.Len(t, made.Sent, failure.Attempts, "%d: what the error says it took", a.Status)
	}
	return cell{len(made.Sent), clienttest.Outcome(made.Err), made.Elapsed}, made.Err
}
