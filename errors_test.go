package agentmessaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

// failWith makes one call that the service answers with a.
func failWith(t *testing.T, a answer) *agentmessaging.Error {
	t.Helper()
	err := makeCall(t, get, []answer{a}, once).Err
	var failure *agentmessaging.Error
	require.ErrorAs(t, err, &failure)
	return failure
}

// TestKindOfEachStatus: an error is of the kind of its status, and of no other.
func TestKindOfEachStatus(t *testing.T) {
	listed := map[int]error{
		400: agentmessaging.ErrBadRequest, 401: agentmessaging.ErrUnauthorized, 402: agentmessaging.ErrPaymentRequired,
		403: agentmessaging.ErrForbidden, 404: agentmessaging.ErrNotFound, 409: agentmessaging.ErrConflict,
		429: agentmessaging.ErrRateLimited, 503: agentmessaging.ErrUnavailable,
	}
	others := []error{agentmessaging.ErrServer, agentmessaging.ErrInvalid, agentmessaging.ErrOutcomeUnknown}
	for status := 201; status <= 600; status++ {
		failure, want := failWith(t, answer{Status: status}), listed[status]
		assert.Equal(t, status, failure.StatusCode)
		if want == nil && status >= 500 && status < 600 {
			want = agentmessaging.ErrServer
		}
		for _, kind := range append(others, slices.Collect(maps.Values(listed))...) {
			assert.Equal(t, kind == want, errors.Is(failure, kind), "is %d %q?", status, kind)
		}
	}
}

// TestRangesOfStatuses, at both ends: what each means to a POST, and that nothing
// is read behind a protocol switch, where no body is.
func TestRangesOfStatuses(t *testing.T) {
	for _, tt := range []struct {
		status   int
		want     string
		readBody bool
	}{
		{0, unknown, false},
		{99, unknown, false},
		{100, "error 100", false},
		{199, "error 199", false},
		{200, success, true},
		{299, success, true},
		{300, "error 300", true},
		{499, "error 499", true},
		{500, unknown, true},
		{600, unknown, true},
	} {
		made := makeCall(t, post, []answer{{Status: tt.status, Body: anyReply}})
		assert.Equal(t, tt.want, outcome(made.Err), tt.status)
		if made.Err != nil {
			assert.Regexp(t, fmt.Sprintf(`\b%03d\b`, tt.status), made.Err.Error(), "the error says what came")
		}
		assert.Equal(t, tt.readBody, len(made.Info.Body) > 0, "%d: read %d bytes", tt.status, len(made.Info.Body))
	}
}

// TestErrorBodyIsKept up to 64 KiB, and named where it is no object.
func TestErrorBodyIsKept(t *testing.T) {
	for _, body := range []string{"          null", `{"error":"a"}x`} {
		assert.ErrorContains(t, failWith(t, answer{Status: 404, Body: body}), "the body is not the documented JSON: 14 bytes")
	}
	assert.ErrorContains(t, failWith(t, answer{Status: 502, Body: "<html>busy"}), "the body is HTML, probably a page of a proxy (10 bytes)")
	var info agentmessaging.CallInfo
	client := newClient(t, answering(answer{Status: 404, Body: strings.Repeat("x", 100<<10)}))
	require.Error(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
	assert.Len(t, info.Body, 64<<10)
}

func TestErrorBody(t *testing.T) {
	failure := failWith(t, answer{Status: 429, Header: http.Header{"Retry-After": {"34"}}, Body: document(t, "error")})
	assert.Equal(t, "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: slow down"+
		" (limit key_minute, retry after 34s, trace trace_1)", failure.Error())
	assert.NoError(t, failure.Unwrap())
	assert.Equal(t, agentmessaging.Error{
		StatusCode: 429, Code: "rate_limited", TraceID: "trace_1", LimitKey: "key_minute", Reason: "slow down", RetryAfter: 34 * time.Second,
		Extra:  map[string]json.RawMessage{"extra": json.RawMessage(`{"a":1}`)},
		Method: "GET", Path: "/v1/agents/{agent_id}", Attempts: 1, Refusals: 1,
	}, *failure)
}

// TestLongWordsAreCut, each by its own bound, so that there is room for the others.
func TestLongWordsAreCut(t *testing.T) {
	for _, tt := range []struct {
		member string // of the body; "": there was no answer, and the Go error is long
		bound  int
	}{{"error", 64}, {"reason", 160}, {"limit_key", 40}, {"trace_id", 64}, {"", 200}} {
		whole := strings.Repeat("Z", tt.bound)
		for input, want := range map[string]string{whole: whole, whole + "Z": whole[3:] + "..."} {
			a := answer{Status: 400, Body: fmt.Sprintf(`{%q:%q}`, tt.member, input)}
			if tt.member == "" {
				a = answer{Err: errors.New(input)}
			}
			got := regexp.MustCompile(`Z+(\.\.\.)?`).FindString(failWith(t, a).Error())
			assert.Equal(t, want, got, "%q of %d bytes", tt.member, len(input))
		}
	}
}

// TestErrorMemberOfTheWrongType, of another name or there twice, is kept among the
// others, digit by digit.
func TestErrorMemberOfTheWrongType(t *testing.T) {
	failure := failWith(t, answer{Status: 400, Body: `{"error":"first","error":5,"reason":"r","quota":12345678901234567890}`})
	assert.Empty(t, failure.Code)
	assert.Equal(t, "r", failure.Reason)
	assert.Equal(t, map[string]json.RawMessage{"error": json.RawMessage("5"), "quota": json.RawMessage("12345678901234567890")}, failure.Extra)
	failure = failWith(t, answer{Status: 400, Body: `{"error":"busy","Error":"other","TRACE_ID":"t","Limit_Key":"k","reason":null}`})
	assert.Equal(t, []string{"busy", "", ""}, []string{failure.Code, failure.TraceID, failure.LimitKey})
	assert.Len(t, failure.Extra, 3, "names are exact, and null is kept nowhere")
	_, err := newClient(t, answering(answer{Status: 200, Body: `{"ok":true,"byok":{"provider":5},"trace_id":"trace_9"}`}), once).GetBYOK(t.Context())
	assert.ErrorContains(t, err, "provider is not a string")
	assert.ErrorContains(t, err, "(trace trace_9)", "members behind it are read")
}

// TestOutcomeUnknown tells what is known of the answer, and what to do.
func TestOutcomeUnknown(t *testing.T) {
	const prefix = "agentmessaging: POST /v1/agents/{agent_id}/messages: the request may have been carried out, look before you repeat it: "
	for _, tt := range []struct {
		status              int
		body, traceID, says string
	}{
		{200, `{"reply_text`, "", "200 OK: the body is not the documented JSON: unexpected end of JSON input"},
		{200, `{"reply":"misspelt","trace_id":"trace_7"}`, "trace_7", "200 OK: the body is not the documented JSON: reply_text is missing (trace trace_7)"},
		{200, "\n<!DOCTYPE html><html><body>secret page</body></html>", "", "200 OK: the body is HTML, probably a page of a proxy (53 bytes)"},
		{504, `{"error":"busy","reason":"later","trace_id":"trace_8"}`, "trace_8", "504 busy: later (trace trace_8)"},
	} {
		input := fmt.Sprint(tt.status, " ", tt.body)
		err := post(t.Context(), newClient(t, answering(answer{Status: tt.status, Body: tt.body})))
		var unknown *agentmessaging.OutcomeUnknownError
		require.ErrorAs(t, err, &unknown, input)
		assert.Equal(t, "POST /v1/agents/{agent_id}/messages", unknown.Method+" "+unknown.Path)
		assert.Equal(t, tt.traceID, unknown.TraceID, input)
		assert.EqualError(t, err, prefix+tt.says, input)
		assert.Equal(t, tt.status >= 500, errors.Is(err, agentmessaging.ErrServer), input)
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure, "the answer %s stays reachable", input)
		assert.Equal(t, tt.status, failure.StatusCode, input)
	}
	err := post(t.Context(), newClient(t, answering(answer{Err: io.ErrUnexpectedEOF})))
	assert.EqualError(t, err, prefix+"unexpected EOF")
	assert.False(t, errors.As(err, new(*agentmessaging.Error)), "there was no answer")
}

// TestVerdicts of attempts at a POST, and how each answer was missed.
func TestVerdicts(t *testing.T) {
	const done, notDone, unknown = agentmessaging.VerdictDone, agentmessaging.VerdictNotDone, agentmessaging.VerdictUnknown
	hang := answer{Before: func(req *http.Request) { <-req.Context().Done() }, Err: context.DeadlineExceeded}
	for _, tt := range []struct {
		answer  answer
		verdict agentmessaging.Verdict
		missed  agentmessaging.Missed // "": it was not
	}{
		{okAnswer, done, ""},
		{notDialed, notDone, ""},
		{tooMany("7200", "k"), notDone, ""},
		{answer{Status: 404}, notDone, ""},
		{answer{Status: 503, Body: `{"error":"byok_unavailable"}`}, notDone, ""},
		{answer{Status: 503}, unknown, agentmessaging.MissedServerError},
		{answer{Status: 500}, unknown, agentmessaging.MissedServerError},
		{answer{Status: 200, Body: "{"}, unknown, agentmessaging.MissedUnreadable},
		{answer{Status: 200, Body: strings.Repeat(" ", 1<<20+1)}, unknown, agentmessaging.MissedUnreadable},
		{answer{Status: 200, Reader: func() io.Reader { return iotest.ErrReader(io.ErrUnexpectedEOF) }}, unknown, agentmessaging.MissedConnection},
		{answer{Err: io.ErrUnexpectedEOF}, unknown, agentmessaging.MissedConnection},
		{answer{Err: errors.New("stream error: stream ID 1; REFUSED_STREAM; received from peer")}, unknown, agentmessaging.MissedStream},
		{hang, unknown, agentmessaging.MissedTimeout},
		{answer{Before: func(req *http.Request) { req.Context().Value(spanKey{}).(context.CancelFunc)() }, Err: context.Canceled}, unknown, agentmessaging.MissedCanceled},
	} {
		_, events := eventsOf(func(observer agentmessaging.Option) {
			err := makeCall(t, func(ctx context.Context, client *agentmessaging.Client) error {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				_, err := client.WarmUp(context.WithValue(ctx, spanKey{}, cancel), "")
				return err
			}, []answer{tt.answer}, observer).Err
			var lost *agentmessaging.OutcomeUnknownError
			if assert.Equal(t, tt.missed != "", errors.As(err, &lost), "%+v: %v", tt, err); lost != nil {
				assert.Equal(t, tt.missed, lost.Missed, "%+v", tt)
			}
		})
		for _, event := range events {
			if end, ok := event.(agentmessaging.AttemptEnd); ok {
				assert.Equal(t, tt.verdict, end.Verdict, "%+v", tt)
			}
		}
	}
}

// TestCausesOfAnyType, of a transport and of the caller's context, stay in reach of
// errors.Is and panic nowhere. What errors return can be the key of a map.
func TestCausesOfAnyType(t *testing.T) {
	for _, cause := range []error{list{"a", "b"}, holder{[]string{"a"}}, fmt.Errorf("wrapped: %w", holder{list{"a"}})} {
		ctx, cancel := context.WithCancelCause(t.Context())
		lost := answer{Err: cause, Before: func(*http.Request) { cancel(cause) }}
		_, events := eventsOf(func(observer agentmessaging.Option) {
			err := post(ctx, newClient(t, answering(lost), observer))
			for ; err != nil; err = errors.Unwrap(err) {
				assert.NotPanics(t, func() { _ = map[error]bool{err: true} }, "%T", err)
			}
		})
		assert.ErrorIs(t, events[3].(agentmessaging.AttemptEnd).Err, context.Canceled)
		blocked := agentmessaging.WithBeforeSend(t.Context(), func(context.Context, int) error { return cause })
		assert.ErrorContains(t, post(blocked, newClient(t, answering())), "[a")
	}
}

type list []string

func (l list) Error() string { return fmt.Sprint([]string(l)) }

type holder struct{ any }

func (h holder) Error() string { return fmt.Sprint(h.any) }

// TestErrorsSayWhatToDo next, where neither a wait nor the cause tells. A 400, 403 or
// 409 of a proxy is about something else.
func TestErrorsSayWhatToDo(t *testing.T) {
	for status, want := range map[int]string{
		401: "check the API key", 402: "activate a plan", 404: "check the agent's id",
	} {
		assert.ErrorContains(t, failWith(t, answer{Status: status}), want, status)
	}
	for status, want := range map[int]string{403: "use a key that the dashboard issued", 409: "store a provider key first"} {
		_, err := newClient(t, answering(answer{Status: status})).WarmUp(t.Context(), "byok")
		assert.ErrorContains(t, err, want, status)
		assert.NotContains(t, failWith(t, answer{Status: status}).Error(), want, status)
	}
	assert.ErrorContains(t, failWith(t, answer{Status: 400, Body: `{"error":"bad_request"}`}), "correct the call")
	c := newClient(t, answering(answer{Status: 404}, answer{Status: 404}))
	assert.ErrorContains(t, c.ClearBYOK(t.Context()), "there may be nothing to clear")
	_, err := c.Status(t.Context())
	assert.ErrorContains(t, err, "check the base address")
	assert.ErrorContains(t, makeCall(t, get, []answer{notDialed}).Err, "no such host (3 attempts)")
}

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
		_, err := answered(t, answer{Status: 413, Body: body}, post)
		holdsLaws(t, err, "canary")
		assert.True(t, strings.HasSuffix(err.Error(), says), "%s gives %v", body, err)
	}
}

// TestListed503: in the service's words, the 503 that the interface lists says
// that nothing was done; any other one, to a POST, does not.
func TestListed503(t *testing.T) {
	const documented = `{"error":"byok_unavailable","reason":"later","trace_id":"trace_7"}`
	for _, call := range endpoints {
		for _, body := range []string{documented, "<html><body>gateway</body></html>", "", `{"trace_id":"t"}`} {
			c, err := answered(t, answer{Status: 503, Body: body}, call.call)
			want := "error 503"
			if listed := call.name == "WarmUp" && body == documented; call.isPost() && !listed {
				want = unknown
			}
			assert.Equal(t, want, c.outcome, "%s: 503 with %s", call.name, body)
			assert.ErrorIs(t, err, agentmessaging.ErrUnavailable, "an unknown outcome too says why")
		}
	}
}

// answered makes one call that is always answered with a, in virtual time.
func answered(t *testing.T, a answer, do doCall) (c cell, err error) {
	t.Helper()
	made := makeCall(t, do, []answer{a})
	holdsLaws(t, made.Err, "canary")
	if failure := (*agentmessaging.Error)(nil); errors.As(made.Err, &failure) {
		assert.Len(t, made.Sent, failure.Attempts, "%d: what the error says it took", a.Status)
	}
	return cell{len(made.Sent), outcome(made.Err), made.Elapsed}, made.Err
}
