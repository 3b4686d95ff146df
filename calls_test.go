package agentmessaging_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// A callCase is one or several calls that end alike, each with a list of answers.
type callCase struct {
	rule    string // what the case shows; "": the same as the case above
	do      doCall
	opts    options
	timeout time.Duration // of the http.Client
	given   [][]answer    // one call each: the answers to its attempts; the last one repeats
	want    string        // how each call ends, as madeCall.end writes it
}

// end describes how a call ended, part by part:
//
//	not done, done                    the verdict of each attempt
//	: ErrServer io.ErrUnexpectedEOF   the kinds of its error, if it failed
//	, 3s                              the time that it took, if any
//	, requests: 1                     if an attempt sent nothing
func (m madeCall) end(verdicts []string) string {
	text := cmp.Or(strings.Join(verdicts, ", "), "no attempt")
	if kinds := kindsOf(m.Err); kinds != nil {
		text += ": " + strings.Join(kinds, " ")
	}
	if m.Elapsed > 0 {
		text += ", " + m.Elapsed.String()
	}
	if len(verdicts) != len(m.Sent) && len(verdicts) > 0 {
		text += fmt.Sprintf(", requests: %d", len(m.Sent))
	}
	return text
}

const (
	inDoubt  = "unknown: ErrOutcomeUnknown"
	userLeft = "context.Canceled io.ErrUnexpectedEOF"
)

// verdicts are answers and what follows from them: together with worded and the tables of
// docs/faults.md, they are the policy of the client. For example,
//
//	do: get, given: inOrder(busy("10"), tooMany("1", "k"), okAnswer), want: "unknown, not done, done, 11s"
//
// is a GET whose first attempt meets a 503 that asks for 10 s, whose second meets a 429 that
// asks for 1 s, and whose third succeeds, 11 s after the first.
var verdicts = []callCase{
	{rule: "A pause is made once.", do: get, given: inOrder(busy("10"), tooMany("1", "k"), okAnswer), want: "unknown, not done, done, 11s"},
	{rule: "A call that ends in a later pause does not blame an earlier 429.",
		do: leaving(1200*time.Millisecond, get), given: inOrder(tooMany("1", ""), bare(502)), want: "not done, unknown: ErrServer " + userLeft + ", 1.2s"},
	{rule: "A context that an observer made from nothing is ignored, so the caller can still leave.",
		do: leaving(time.Second, get), opts: options{at("CallStart", func(context.Context) context.Context { return context.Background() })},
		given: each(hang), want: "unknown: context.Canceled context.DeadlineExceeded io.ErrUnexpectedEOF, 1s"},
	{rule: "The backoff doubles, up to 8 s.",
		do: get, opts: retries(policy{MaxAttempts: 5, MinWait: 3 * time.Second}),
		given: each(notDialed), want: strings.Repeat("not done, ", 5) + "25s"},
	{rule: "A random number of 0.5 adds half of the longest jitter.",
		do: post, opts: options{jitter(0.5)},
		given: inOrder(notDialed, tooMany("7", ""), okAnswer), want: "not done, not done, done, 8.1s"},
	{rule: "Without a cool-down too, a call waits for a second after a 429 without Retry-After.",
		do: get, opts: options{agentmessaging.WithoutCoolDown()},
		given: inOrder(tooMany("", ""), okAnswer), want: "not done, done, 1s"},
	{rule: "A policy may allow any number of attempts. Dials that fail draw nothing from the retry budget.",
		do: get, opts: tireless, given: inOrder(append(slices.Repeat([]answer{notDialed}, 15), okAnswer)...),
		want: strings.Repeat("not done, ", 15) + "done, 32.767µs"}, // 1, 2, 4 ... and 2^14 ns
	{rule: "A MinWait above 8 s does not double.",
		do: get, opts: retries(policy{MinWait: 9 * time.Second}),
		given: inOrder(notDialed, notDialed, okAnswer), want: "not done, not done, done, 18s"},
	{rule: "A MaxWait below the default MinWait is the MinWait.",
		do: get, opts: maxWait(time.Millisecond),
		given: inOrder(notDialed, notDialed, okAnswer), want: "not done, not done, done, 2ms"},
	{rule: "A program that was frozen has asked nobody meanwhile: it tries again, with a Pacer too.",
		do:    inTurn(get, paced(pacer.ProLimits(), get)),
		opts:  append(timed(30*time.Second), agentmessaging.WithClock(lateClock{})),
		given: inOrder(refused, refused, okAnswer, refused, refused, okAnswer),
		want:  "not done, not done, done, not done, not done, done, 5m20s"}, // four waits of 20 s, each a minute late
	{rule: "A request that ends within a second, without an answer, did not get through: the client asks as rarely as before. One that took 2 s did.",
		do:    inTurn(get, paced(pacer.BYOKPlanLimits(), get)),
		given: inOrder(again, again, again, broken, again, okAnswer, again, again, again, slow(2*time.Second, broken), again, okAnswer),
		want:  "not done, not done, not done, unknown, not done, done, not done, not done, not done, unknown, not done, done, 16s"},
	{rule: "Under WithoutCoolDown a 429 holds back no other call.", do: inTurn(get, get), opts: options{agentmessaging.WithoutCoolDown(), once},
		given: inOrder(refused, okAnswer), want: "not done, done"},
	{rule: "A wait that ends before the deadline is begun.",
		do: within(31*time.Second, get), given: inOrder(busy("30"), okAnswer), want: "unknown, done, 30s"},
	{rule: "A wait longer than MaxWait is not begun, with a later deadline or without one.",
		do: inTurn(get, within(time.Hour, get)), opts: maxWait(29 * time.Second),
		given: inOrder(busy("30"), busy("30"), okAnswer), want: "unknown, unknown: ErrUnavailable"},
	{rule: "A wait of MaxWait is begun, and jitter does not lengthen it.",
		do: get, opts: append(maxWait(30*time.Second), jitter(0.999)),
		given: inOrder(busy("30"), okAnswer), want: "unknown, done, 30s"},
	{rule: "A wait that would use up WithTimeout is not begun.",
		do: get, opts: timed(30 * time.Second), given: inOrder(busy("30"), okAnswer), want: "unknown: ErrUnavailable"},
	{rule: "The deadline and MaxWait also bound a call that finds others in line for a limit.",
		do:    inTurn(impatient, within(20*time.Second, get)),
		given: inOrder(refused, okAnswer), want: "not done, not done: ErrRateLimited, requests: 1"},
	{do: inTurn(impatient, within(20*time.Second+1, get)), opts: maxWait(20 * time.Second),
		given: inOrder(refused, okAnswer), want: "not done, done, 20s"},
	{do: inTurn(impatient, get), opts: maxWait(20*time.Second - 1),
		given: inOrder(refused, okAnswer), want: "not done, not done: ErrRateLimited, requests: 1"},
	{rule: "A deadline that passes after a 429, before the call is in line, is a 429.",
		do: within(29*time.Second, get), opts: options{at("AttemptStart", slowly(15*time.Second))},
		given: each(tooMany("13", "k")), want: "not done, not done: ErrRateLimited context.DeadlineExceeded, 30s, requests: 1"},
	{rule: "WithTimeout does not bound the wait for a limit, with a deadline or without one.",
		do: inTurn(within(time.Hour, get), get), opts: append(timed(5*time.Second), maxWait(time.Hour)...),
		given: inOrder(tooMany("600", "k"), okAnswer, tooMany("600", "k"), okAnswer),
		want:  "not done, done, not done, done, 20m0s"},
	{rule: "A call that waits for its limiter does not keep its place in the cool-down: the next call finds the limit open.",
		do: inTurn(get, get), opts: limiterWaits(time.Second),
		given: inOrder(refused, refused, okAnswer), want: "not done, not done, done, done, 44s"}, // twice 20 s, and a second for each attempt
	{rule: "If the context has a deadline, WithTimeout does not bound the call.",
		do: within(time.Hour, get), opts: timed(7 * time.Second),
		given: each(hang), want: "unknown: context.DeadlineExceeded, 1h0m0s"},
}

// worded are failures whose words callsFile shows.
var worded = []callCase{
	{rule: "The error of a 4xx says what to do, where neither a wait nor the cause says it.",
		do: get, given: each(bare(401)), want: "not done: ErrUnauthorized"},
	{do: get, given: each(bare(402)), want: "not done: ErrPaymentRequired"},
	{rule: "The service's 404 to ClearBYOK may mean that nothing is stored.",
		do: clearBYOK, given: bodies(404, `{"error":"not_found"}`), want: "not done: ErrNotFound"},
	{rule: "A 404 to a call without an agent, or not in the service's words, means that the base address is wrong.",
		do: getStatus, given: each(bare(404)), want: "not done: ErrNotFound"},
	{do: get, given: each(bare(404)), want: "not done: ErrNotFound"},
	{rule: "A 400 is advised on only if it is in the service's words.",
		do: get, given: bodies(400, "", `{"error":"bad_request"}`), want: "not done: ErrBadRequest"},
	{rule: "A 403 or 409 is advised on only if the endpoint lists it. Any other is a proxy's, about something else.",
		do: warmUpOwn, given: each(bare(403)), want: "not done: ErrForbidden"},
	{do: get, given: each(bare(403)), want: "not done: ErrForbidden"},
	{do: warmUpOwn, given: each(bare(409)), want: "not done: ErrConflict"},
	{do: get, given: each(bare(409)), want: "not done: ErrConflict"},
	{rule: "A POST that got a status which HTTP does not define is in doubt.",
		do: post, given: slices.Concat(bodies(0, anyReply), bodies(99, anyReply), bodies(600, anyReply)), want: inDoubt},
	{rule: "A wait that ends at the deadline is not begun.",
		do: within(30*time.Second, get), given: inOrder(busy("30"), okAnswer), want: "unknown: ErrUnavailable"},
	{rule: "A clock that does not wait ends the call with its error.",
		do: get, opts: options{agentmessaging.WithClock(brokenClock{})},
		given: inOrder(notDialed, okAnswer), want: "not done: io.ErrUnexpectedEOF"},
	{rule: "A redirect is not followed. Only its host is named: the rest may hold a credential.",
		do: getStatus, given: each(
			with(302, "Location", "https://elsewhere.example/?key=canary"), with(307, "Location", "/elsewhere?key=canary"),
			with(300, "Location", "https://canary b/%zz"), with(302, "Location", "https://"+testKey[4:]+".example/"),
			with(304, "Location", ""), with(399, "Location", "https://elsewhere.example/")),
		want: "not done"},
	{do: getStatus, given: each(with(400, "Location", "https://elsewhere.example/")), want: "not done: ErrBadRequest"},
	{rule: "Extra has the members that the interface does not list, and listed members of another type or that appear twice.",
		do: get, opts: options{once}, given: bodies(400,
			`{"error":"first","error":"second","reason":"r","quota":12345678901234567890}`,
			`{"error":"busy","Error":"other","TRACE_ID":"t","Limit_Key":"k","reason":null}`,
			"          null", `{"error":"a"}x`, "<html>busy"),
		want: "not done: ErrBadRequest"},
	{rule: "The documented error body fills the fields of the error.",
		do: get, opts: options{once}, given: each(answer{
			Status: 429, Header: http.Header{"Retry-After": {"34"}}, Body: string(must(os.ReadFile("testdata/wire/error.json"))),
		}), want: "not done: ErrRateLimited"},
	{rule: "A refused argument leaves no facts of an earlier call in the CallInfo.",
		do: sending(message{}), given: each(okAnswer), want: "no attempt: ErrInvalid"},
	{rule: "The CallInfo has the facts of the last answer. The body of a success is as it came, that of an error has no secrets.",
		do: get, given: bodies(200, `{"agent_id":"a","trace_id":"t","mood":"`+testKey+`"}`), want: "done"},
	{do: get, given: bodies(404, "no "+testKey+" here", `{"error":"not_found"}`), want: "not done: ErrNotFound"},
	{do: get, given: inOrder(answer{Status: 429, Body: "first"}, notDialed),
		want: "not done, not done, not done, not done, 2.5s"},
	{rule: "An error body keeps its members, though the message quotes some of them.",
		do:    sending(message{Text: `I got {"error":"bad_request","trace_id":"trace_2"}, why?`}),
		given: bodies(400, `{"error":"bad_request","trace_id":"trace_3"}`), want: "not done: ErrBadRequest"},
	{rule: "A proxy's words are shown if they cannot be words of the request.",
		do: post, given: bodies(413,
			"<html><head><title>400 No required SSL certificate was sent</title></head></html>",
			"<html><title>Blocked: message-canary\n</title></html>",
			"upstream connect error, reset reason: connection failure\n",
			`you sent {"text":"message-canary"}`, `{"message":"no healthy\nupstream","request_id":"r"}`,
			`{"error":{"code":"x","message":"too long"}}`, `{"message":"message-can"}`,
			"\ufeff"+`{"error":"busy","trace_id":17}`, `{"message":"unused","error":"busy"}`,
			`{"error":"busy","trace_id":["\u006dessage-canary"]}`),
		want: "not done"},
	{rule: "An error body may break off, or be larger than the client reads.",
		do: sending(message{Text: "A message-canary of many words"}), given: each(
			answer{Status: 413, Reader: breaksOff("{", fmt.Errorf("after message-canary of many words: %w", errors.New("cut after "+testKey)))},
			answer{Status: 413, Body: strings.Repeat("x", 100<<10)}),
		want: "not done"},
	{rule: "A limit does not say when it opens, and the call hardly waits.",
		do: get, opts: maxWait(1), given: each(tooMany("", "k")), want: "not done: ErrRateLimited"},
	{rule: "A limit refuses again after letting nobody through for the time of WithTimeout.",
		do: get, opts: timed(5 * time.Second), given: each(refused), want: "not done, not done: ErrRateLimited, 20s"},
	{rule: "Identifiers keep words of the message, because programs switch on them. Other texts do not.",
		do: sending(message{Text: "minute"}), opts: options{once}, given: bodies(429, `{"error":"not_this_minute",`+
			`"limit_key":"key_minute","trace_id":"minute_1","reason":"wait a minute","minute":"minute"}`),
		want: "not done: ErrRateLimited"},
	{rule: "A POST whose success cannot be read is in doubt.",
		do: post, given: bodies(200,
			`{"reply_text`, `{"reply":"misspelt","trace_id":"trace_7"}`, `{"reply_text":"a","reply_text":"b"}`,
			"\n<!DOCTYPE html><html><body>secret page</body></html>", strings.Repeat(" ", 1<<20+1)),
		want: inDoubt},
	{do: post, given: bodies(200, strings.Repeat(" ", 1<<20-len(anyReply))+anyReply), want: "done"},
	{rule: "A GET whose success cannot be read is unknown. Its trace_id counts, even after the wrong member.",
		do: getBYOK, opts: options{once}, want: "unknown",
		given: bodies(200, `{"ok":true,"byok":{"provider":5},"trace_id":"trace_9"}`, `{"ok":true,"byok":{"provider":""}}`, `{"ok":true}`)},
	{rule: "A JSON object that does not confirm a change ends the call: the answer is not lost.",
		do: sending(setBYOK{Provider: "openai", APIKey: "provider-canary"}), given: bodies(200,
			`{"ok":false,"byok":{"provider":"openai"}}`, `{"byok":{"provider":"openai"}}`,
			`{"ok":true}`, `{"ok":true,"byok":null}`, `{"ok":true,"byok":{}}`),
		want: "not done"},
	{do: clearBYOK, given: bodies(200, `{"ok":false}`, `{}`), want: "not done"},
	{do: sending(setBYOK{Provider: "openai", APIKey: "service-canary"}), given: bodies(200, `{}`), want: "not done"}, // a word of the error is hidden
	{rule: "A 503 that the interface lists, in the service's words, says that a POST was not carried out. Any other 503 does not.",
		do: warmUp, given: bodies(503, `{"error":"byok_unavailable"}`), want: "not done: ErrUnavailable"},
	{do: warmUp, given: each(bare(503)), want: inDoubt + " ErrUnavailable"},
	{do: post, given: bodies(503, `{"error":"byok_unavailable"}`), want: inDoubt + " ErrUnavailable"},
	{rule: "A POST whose stream was refused, or whose caller left, is in doubt.",
		do: warmUp, given: each(failing("stream error: stream ID 1; REFUSED_STREAM; received from peer")), want: inDoubt},
	{do: leaving(onlyByLeave, warmUp), given: each(leftDuring(answer{Err: errLeft})), want: inDoubt + " " + userLeft},
	{rule: "A transport without hooks may have sent the request, and dialed another address after that.",
		do: post, given: each(answer{Err: &net.OpError{Op: "dial", Err: errors.New("second site refused")}}), want: inDoubt},
	{rule: "The Timeout of the http.Client bounds an attempt.",
		do: get, opts: timed(time.Hour), timeout: 10 * time.Second,
		given: each(hang), want: "unknown, unknown, unknown: context.DeadlineExceeded, 31.5s"},
	{rule: "A transport may have a shorter timeout. Then the error names no timeout of the client.",
		do: post, given: each(answer{Err: context.DeadlineExceeded}), want: inDoubt + " context.DeadlineExceeded"},
	{rule: "WithTimeout bounds the call, if it is shorter than the Timeout of the http.Client.",
		do: get, opts: timed(7 * time.Second), timeout: 10 * time.Second,
		given: each(hang), want: "unknown: context.DeadlineExceeded, 7s"},
	{rule: "WithTimeout bounds attempts and pauses, by a clock that goes back too: after twice 3 s and 4 s, 1 s is left.",
		do: get, opts: append(timed(15*time.Second), retries(policy{MaxAttempts: 9})[0], backward),
		given: each(slow(3*time.Second, busy("4"))), want: "unknown, unknown, unknown: ErrUnavailable, 15s"},
	{rule: "An observer may end an attempt earlier. Then the error names neither timeout.",
		do: get, opts: options{once, at("AttemptStart", ending(time.Second))}, timeout: 10 * time.Second,
		given: each(hang), want: "unknown: context.DeadlineExceeded, 1s"},
	{rule: "In an outage, siblings share ten retries, and one for each five calls that succeeded (see TestRetryBudget).",
		do: inTurn(append(slices.Repeat([]doCall{get}, 6), by(hasty, get))...), opts: tireless,
		given: inOrder(append(slices.Repeat([]answer{okAnswer}, 5), bare(502))...),
		want:  strings.Repeat("done, ", 5) + strings.Repeat("unknown, ", 12) + "unknown: ErrServer, 2.047µs"},
	{rule: "A sibling with its own clock has its own retry budget.",
		do: inTurn(get, by(agentmessaging.WithClock(quota.RealClock{}), get)), opts: tireless,
		given: each(bare(502)), want: strings.Repeat("unknown, ", 21) + "unknown: ErrServer, 2.046µs"},
	{rule: "A caller who leaves when the call decides to wait for a limit gets no ErrRateLimited.",
		do: leaving(onlyByLeave, get), opts: options{at("Retry", leaveNow)},
		given: inOrder(tooMany("1", "k"), okAnswer), want: "not done: " + userLeft},
	{rule: "Long words are cut, each by its own bound, so that there is room for the others.",
		do: get, given: bodies(400, longWords(0), longWords(1)), want: "not done: ErrBadRequest"},
	{rule: "An error says that the client refused the attempt.", do: get, given: each(tooMany("", "")),
		opts: options{agentmessaging.WithoutCoolDown(), at("AttemptStart", ending(time.Second/2))}, want: "not done, not done: ErrRateLimited, requests: 1"},
	{rule: "The whole error is cut at 512 bytes.",
		do: get, given: each(answer{Status: 429, Header: http.Header{"Retry-After": {"3600"}}, Body: longWords(0)}), want: "not done: ErrRateLimited"},
	{do: get, opts: options{once}, want: "unknown",
		given: each(failing(strings.Repeat("Z", 200)), failing(strings.Repeat("Z", 201)), failing(strings.Repeat("é", 101)))},
}

// longWords is an error body with members that are longer than an error shows.
func longWords(longer int) string {
	word := func(length int) string { return strings.Repeat("Z", length+longer) }
	return fmt.Sprintf(`{"error":%q,"reason":%q,"limit_key":%q,"trace_id":%q}`, word(64), word(160), word(40), word(128))
}

// reported are calls for which callsFile shows the events and the log records.
var reported = []callCase{
	{rule: "The events of a message.", do: post, given: each(okAnswer), want: "done"},
	{rule: "A 4xx is the application's affair. Other failures are warnings.",
		do: post, given: each(bare(399), bare(499)), want: "not done"},
	{do: post, given: each(bare(400)), want: "not done: ErrBadRequest"},
	{rule: "A limiter's wait is no part of the time that WithTimeout and the http.Client allow.",
		do: post, opts: slices.Concat(timed(10*time.Second), limiterWaits(time.Minute), options{agentmessaging.WithoutCoolDown()}), timeout: time.Second,
		given: inOrder(notDialed, okAnswer), want: "not done, done, 2m0.5s"},
	{rule: "A limiter that takes less than a millisecond decides, and does not wait.",
		do: post, opts: limiterWaits(time.Millisecond - 1), given: each(okAnswer), want: "done, 999.999µs"},
	{rule: "The deadline holds whatever an observer does.",
		do: within(10*time.Second, post), opts: options{at("CallStart", context.WithoutCancel)},
		given: each(hang), want: inDoubt + " context.DeadlineExceeded, 10s"},
	{do: within(10*time.Second, post), opts: append(limiterWaits(time.Minute), at("AttemptStart", context.WithoutCancel)),
		given: each(okAnswer), want: "not done: ErrRateLimited context.DeadlineExceeded, 10s, requests: 0"},
	{do: within(10*time.Second, post), opts: options{at("RequestStart", ending(time.Hour))},
		given: each(hang), want: inDoubt + " context.DeadlineExceeded, 10s"},
	{rule: "The cool-down refuses a call that cannot wait for the limit, at once.",
		do: inTurn(impatient, within(299*time.Second, get)), opts: maxWait(time.Hour),
		given: inOrder(tooMany("420", "key_day"), okAnswer), want: "not done, not done: ErrRateLimited, requests: 1"},
	{rule: "A cool-down is reported once. Its limit_key is foreign text: one line of 64 bytes, without the key.",
		do: inTurn(impatient, within(time.Second, post), get), given: inOrder(foreignLimit, foreignLimit, okAnswer),
		want: "not done, not done, done, 20s"},
	{rule: "Siblings share the cool-down, but not with one that has none or another clock.",
		do:    inTurn(impatient, by(agentmessaging.WithoutCoolDown(), impatient), by(backward, impatient), by(hasty, get), get),
		opts:  options{agentmessaging.WithClock(quota.RealClock{})},
		given: inOrder(refused, refused, refused, okAnswer),
		want:  "not done, not done, not done, not done, done, 20s, requests: 4"},
	{rule: "Events show no secret that the service or the transport echoes. The result keeps the service's words.",
		do: prompting, given: each(failing("transport says " + testKey + " and prompt-canary")), want: inDoubt},
	{do: prompting, given: bodies(599, `{"error":"broken","reason":"prompt-canary of `+testKey+`"}`), want: inDoubt + " ErrServer"},
	{do: sending(create{}), want: "done",
		given: bodies(200, `{"agent_id":"agent-`+testKey+`","status":"active","trace_id":"\n`+testKey+strings.Repeat("Z", 128)+`"}`)},
	{rule: "A limiter refuses the call: nothing is sent.",
		do: post, opts: limiterRefuses(&agentmessaging.Error{
			StatusCode: 429, Code: "rate_limited", LimitKey: "key_day", RetryAfter: time.Hour,
		}), given: each(okAnswer), want: "not done: ErrRateLimited, requests: 0"},
	{do: post, opts: limiterRefuses(&agentmessaging.Error{StatusCode: 429, Code: "rate_limited", RetryAfter: 90 * time.Second}),
		given: each(okAnswer), want: "not done: ErrRateLimited, requests: 0"},
	{do: post, opts: limiterRefuses(errLeft), given: each(okAnswer), want: "not done: io.ErrUnexpectedEOF, requests: 0"},
	{rule: "The words of a limiter are shown as the words of an answer are.",
		do: post, opts: limiterRefuses(&agentmessaging.Error{
			StatusCode: 429, Code: testKey, TraceID: testKey, LimitKey: "per-key:" + testKey, Reason: "message-canary", RetryAfter: -1,
		}), given: each(okAnswer), want: "not done: ErrRateLimited, requests: 0"},
	{rule: "A limiter whose error is a nil *Error has not refused, but gave no permit.",
		do: post, opts: limiterRefuses((*agentmessaging.Error)(nil)), given: each(okAnswer), want: "not done, requests: 0"},
	{rule: "A wait for a limiter of the user's names no limit.",
		do: post, opts: limiterWaits(time.Second), given: inOrder(refused, okAnswer), want: "not done, done, 22s"},
	{rule: "A cool-down without Retry-After lasts a second.",
		do: get, given: inOrder(bare(429), okAnswer), want: "not done, done, 1s"},
	{rule: "A limiter of the user's that decides at once does not hide the limit that the call waited for.",
		do: post, opts: limiterWaits(0), given: inOrder(refused, okAnswer), want: "not done, done, 20s"},
	{rule: "A refused argument causes no event.", do: sending(message{}), given: each(okAnswer), want: "no attempt: ErrInvalid"},
	{rule: "An error of the transport is one line.", do: post, given: each(failing("line\nbroken")), want: inDoubt},
	{rule: "A caller who leaves inside the answer's body, or during the dial, gets no retry, whatever an observer does.",
		do: leaving(onlyByLeave, get), given: each(leftDuring(answer{Status: 200, Reader: breaksOff("", context.Canceled)})),
		want: "unknown: " + userLeft},
	{do: leaving(onlyByLeave, post), opts: options{at("RequestStart", context.WithoutCancel)}, given: each(leftDuring(notDialed)), want: "not done: " + userLeft},
	{do: leaving(onlyByLeave, post), given: each(leftDuring(answer{Err: errLeft})), want: inDoubt + " " + userLeft},
	{rule: "A 5xx to a GET is a warning, though nothing is in doubt.",
		do: get, opts: options{once}, given: each(bare(500)), want: "unknown: ErrServer"},
}

// foreignLimit is a 429 whose limit_key is long, of two lines, and echoes the key.
var foreignLimit = tooMany("20", testKey+`\n`+strings.Repeat("k", 100))

var updateCalls = flag.Bool("update-calls", false, "write what is seen of the calls into "+callsFile)

const callsFile = "testdata/calls.txt"

// TestCalls compares the end of each call with its case, and the texts, events and log
// records of worded and reported with callsFile.
func TestCalls(t *testing.T) {
	var all strings.Builder
	for i, r := range slices.Concat(verdicts, worded, reported) {
		isWorded, isReported := i >= len(verdicts), i >= len(verdicts)+len(worded)
		if isWorded && r.rule != "" {
			fmt.Fprintf(&all, "## %s\n\n", r.rule)
		}
		for _, given := range r.given {
			causes, reports := causesOf(given), new(strings.Builder)
			made, attempts := r.make(t, given, reports, isReported)
			assert.Equal(t, r.want, made.end(attempts), "%s\n%s", r.rule, causes)
			switch {
			case isReported:
				assert.NotContains(t, reports.String(), "canary", r.rule)
				fmt.Fprintf(&all, "%s%s\n", causes, reports)
			case isWorded:
				fmt.Fprintf(&all, "%s%s\n", causes, made.words())
			}
		}
	}
	if *updateCalls && !t.Failed() {
		require.NoError(t, os.WriteFile(callsFile, []byte(all.String()), 0o644))
	}
	recorded := strings.Split(string(must(os.ReadFile(callsFile))), "\n")
	for i, line := range strings.Split(all.String(), "\n") {
		require.Equal(t, recorded[min(i, len(recorded)-1)], line, "%s:%d; to accept this: go test -run TestCalls . -update-calls", callsFile, i+1)
	}
}

// causesOf describes the answers.
func causesOf(answers []answer) string {
	var b strings.Builder
	for _, a := range answers {
		if a.Err != nil {
			fmt.Fprintf(&b, "given    %#.60q\n", a.Err)
			continue
		}
		fmt.Fprintf(&b, "given    %03d %#.60q", a.Status, a.Body)
		for name, values := range a.Header {
			fmt.Fprintf(&b, " %s: %s", name, values[0])
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// make makes a call, and returns the verdicts of its attempts. It writes the events to
// reports, and with logged the log records too.
func (r callCase) make(t *testing.T, answers []answer, reports *strings.Builder, logged bool) (madeCall, []string) {
	observer := &reporter{t: t, reports: reports}
	opts := append(slices.Clone(r.opts), agentmessaging.WithObserver(observer))
	if logged {
		opts = append(opts, agentmessaging.WithLogger(slog.New(contextHandler{slog.DiscardHandler, func(ctx context.Context, record slog.Record) {
			assert.Equal(t, reports, ctx.Value(reportKey{}), "the caller's context")
			fmt.Fprintf(reports, "log      %s %s", record.Level, record.Message)
			record.Attrs(func(a slog.Attr) bool { fmt.Fprintf(reports, " %s", a); return true })
			fmt.Fprintln(reports)
		}})))
	}
	made := makeCall(t, r.timeout, func(ctx context.Context, client *agentmessaging.Client) error {
		return r.do(context.WithValue(ctx, reportKey{}, reports), client)
	}, answers, opts...)
	for _, sent := range made.Sent {
		assert.True(t, sent.Text == made.Sent[0].Text || sent.URL.Path != made.Sent[0].URL.Path, "each attempt sends the whole body")
		assert.Equal(t, "service.example", sent.URL.Host, sent.URL.Path)
		assert.Equal(t, "call, attempt, request: ", sent.Context().Value(stageKey{}), "the transport sees the request's context")
	}
	holdsLaws(t, made.Err, testKey)
	return made, observer.verdicts
}

// words describes what the caller sees: CallInfo and the error.
func (m madeCall) words() string {
	var b strings.Builder
	if len(m.Info.Body) > 60 {
		m.Info.Body = fmt.Appendf(nil, "%d bytes", len(m.Info.Body))
	}
	fmt.Fprintf(&b, "info    %s\n", fieldsOf(m.Info))
	if m.Err != nil {
		fmt.Fprintf(&b, "error    %v\n", m.Err)
	}
	if lost := (*agentmessaging.OutcomeUnknownError)(nil); errors.As(m.Err, &lost) {
		fmt.Fprintln(&b, strings.TrimSpace(fmt.Sprintf("missed   %s %s", lost.Missed, lost.TraceID)))
	}
	if failure := (*agentmessaging.Error)(nil); errors.As(m.Err, &failure) {
		fmt.Fprintf(&b, "fields  %s\n", fieldsOf(*failure))
	}
	return b.String()
}

// reportKey is the context key of the caller's reports. stageKey is that of the events to
// which a context belongs.
type reportKey struct{}
type stageKey struct{}

// reporter is an observer that writes each event, after the events whose contexts are
// around it: an attempt's context is inside its call's.
type reporter struct {
	t        *testing.T
	mu       sync.Mutex // guards what follows, if a client has several callers
	reports  *strings.Builder
	verdicts []string // of the attempts
}

func (r *reporter) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	stage, _ := ctx.Value(stageKey{}).(string)
	name := strings.TrimPrefix(fmt.Sprintf("%T", event), "agentmessaging.")
	fmt.Fprintf(r.reports, "event    %s%s%s\n", stage, name, strings.ReplaceAll(fieldsOf(event), "\n", `\n`))
	assert.NotContains(r.t, fmt.Sprintf("%v %+v %#v", event, event, event), "canary")
	switch e := event.(type) {
	case agentmessaging.CallStart:
		e.URL.Host = "elsewhere.example" // a copy: the request must not go there
		return context.WithValue(ctx, stageKey{}, "call: ")
	case agentmessaging.AttemptStart:
		return context.WithValue(ctx, stageKey{}, strings.Replace(stage, ":", ", attempt:", 1))
	case agentmessaging.RequestStart:
		return context.WithValue(ctx, stageKey{}, strings.Replace(stage, ":", ", request:", 1))
	case agentmessaging.AttemptEnd:
		r.verdicts = append(r.verdicts, string(e.Verdict))
	case agentmessaging.CallEnd:
		assert.True(r.t, e.Err != nil || e.StatusCode/100 == 2, "a call that panics has not succeeded")
	}
	return nil
}

// kindsOf names the kinds that errors.Is finds in an error.
func kindsOf(err error) (names []string) {
	kinds := map[string]error{
		"ErrBadRequest": agentmessaging.ErrBadRequest, "ErrUnauthorized": agentmessaging.ErrUnauthorized,
		"ErrPaymentRequired": agentmessaging.ErrPaymentRequired, "ErrForbidden": agentmessaging.ErrForbidden,
		"ErrNotFound": agentmessaging.ErrNotFound, "ErrConflict": agentmessaging.ErrConflict,
		"ErrRateLimited": agentmessaging.ErrRateLimited, "ErrUnavailable": agentmessaging.ErrUnavailable,
		"ErrServer": agentmessaging.ErrServer, "ErrInvalid": agentmessaging.ErrInvalid,
		"ErrOutcomeUnknown": agentmessaging.ErrOutcomeUnknown, "context.Canceled": context.Canceled,
		"context.DeadlineExceeded": context.DeadlineExceeded, "io.ErrUnexpectedEOF": io.ErrUnexpectedEOF,
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if errors.Is(err, kinds[name]) {
			names = append(names, name)
		}
	}
	return names
}

// fieldsOf describes the exported fields that are not zero.
func fieldsOf(v any) (line string) {
	fields := reflect.ValueOf(v)
	for i := range fields.NumField() {
		field, value := fields.Type().Field(i), fields.Field(i)
		if !field.IsExported() || value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 {
			continue
		}
		switch v := value.Interface().(type) {
		case agentmessaging.Subject:
			line += fieldsOf(v)
		case agentmessaging.Endpoint:
			line += " " + v.Name
		case []byte:
			line += fmt.Sprintf(" %s=%#q", field.Name, v)
		case error:
			line += fmt.Sprintf(" %s=%v %v", field.Name, v, kindsOf(v))
		case map[string]json.RawMessage:
			line += fmt.Sprintf(" %s=%s", field.Name, v)
		default:
			line += fmt.Sprintf(" %s=%v", field.Name, v)
		}
	}
	return line
}

// The error is a 429, because the call has met a limit, and the deadline too. It quotes the
// service's 429, if that was about this call, but says that the client gave up. Its trace_id
// is that of the answer that closed the limit.
func TestDeadlineThatPassesInLineIsA429(t *testing.T) {
	busy := tooMany("20", "k")
	busy.Body = `{"error":"rate_limited","reason":"busy","limit_key":"k","trace_id":"trace_2"}`
	synctest.Test(t, func(t *testing.T) {
		service := answering(slow(time.Second, refused), slow(2*time.Second, busy), slow(time.Minute, okAnswer))
		client := newClient(t, service, jitter(0), agentmessaging.WithLimiter(&limiterStub{}))
		var batch sync.WaitGroup
		defer batch.Wait()
		begin := func(deadline time.Duration, reason string) {
			batch.Go(func() {
				err := within(deadline, get)(t.Context(), client)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.EqualError(t, err, "agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: "+reason+
					"in line for a limit: context deadline exceeded (refused here by the cool-down, limit k, trace trace_2)")
			})
			synctest.Wait()
		}
		batch.Go(func() { assert.NoError(t, get(t.Context(), client)) }) // goes first; then one each second
		synctest.Wait()
		begin(22500*time.Millisecond, "busy: ")
		time.Sleep(3 * time.Second)
		begin(19500*time.Millisecond, "")
	})
}

// No state of an engine, such as a timer, may belong to the bubble that made it.
func TestBubblesShareAClient(t *testing.T) {
	client := newClient(t, answering(tooMany("20", ""), okAnswer, tooMany("20", ""), okAnswer))
	for range 2 {
		synctest.Test(t, func(t *testing.T) { assert.NoError(t, get(t.Context(), client)) })
	}
}

// The rest of this file has the functions that the tables use.

// The calls of a case, by the answers that they get.

// inOrder makes one call, with an answer for each attempt.
func inOrder(answers ...answer) [][]answer { return [][]answer{answers} }

// each makes one call for each answer.
func each(answers ...answer) (calls [][]answer) {
	for _, a := range answers {
		calls = append(calls, []answer{a})
	}
	return calls
}

// bodies makes one call for each body, in an answer with the status.
func bodies(status int, bodies ...string) (calls [][]answer) {
	for _, body := range bodies {
		calls = append(calls, []answer{{Status: status, Body: body}})
	}
	return calls
}

// The answers.

// refused is a 429 that asks to wait for 20 s, again for one.
var refused, again, broken = tooMany("20", "k"), tooMany("1", "k"), failing("broken")

// busy is a failure of a proxy, which asks to wait.
func busy(retryAfter string) answer { return with(503, "Retry-After", retryAfter) }

// bare returns an answer without a body. with returns one that has a header.
func bare(status int) answer { return answer{Status: status} }

func with(status int, header, value string) answer {
	return answer{Status: status, Header: http.Header{header: {value}}}
}

// failing is an error of the transport.
func failing(words string) answer { return answer{Err: errors.New(words)} }

// slow delays an answer, but not beyond the end of the attempt.
func slow(d time.Duration, a answer) answer {
	a.Before = func(req *http.Request) {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		}
	}
	return a
}

// hang is never answered.
var hang = slow(math.MaxInt64, answer{Err: context.DeadlineExceeded})

// The calls of a case.

var (
	impatient = within(5*time.Second, get) // does not wait for a limit
	warmUp    = sending(agentmessaging.LLMMode(""))
	warmUpOwn = sending(agentmessaging.LLMModeBYOK)
	prompting = sending(create{SystemPrompt: "prompt-canary"})
)

// within makes a call with a deadline.
func within(d time.Duration, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return do(ctx, client)
	}
}

// inTurn makes one call after the other, and returns the error of the last.
func inTurn(calls ...doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) (err error) {
		for _, do := range calls {
			err = do(ctx, client)
		}
		return err
	}
}

// by has a sibling of the client make the call.
func by(opt agentmessaging.Option, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		sibling, err := client.With(opt)
		if err != nil {
			return err
		}
		return do(ctx, sibling)
	}
}

// paced has a sibling with a new Pacer make the call.
func paced(limits []pacer.Limit, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		return by(agentmessaging.WithLimiter(must(pacer.New(limits))), do)(ctx, client)
	}
}

// leaving makes a call whose context is canceled after a time, or by
// leaveNow.
func leaving(after time.Duration, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		ctx, cancel := context.WithCancelCause(ctx)
		if after == beforeTheCall {
			cancel(errLeft)
		}
		time.AfterFunc(after, func() { cancel(errLeft) })
		return do(context.WithValue(ctx, leaveKey{}, cancel), client)
	}
}

// When leaving cancels the context.
const (
	beforeTheCall time.Duration = 0
	onlyByLeave                 = time.Hour // later than any call ends
)

type leaveKey struct{}

// leftDuring has the caller leave just before the answer comes.
func leftDuring(a answer) answer {
	a.Before = func(req *http.Request) { leaveNow(req.Context()) }
	return a
}

func leaveNow(ctx context.Context) context.Context {
	ctx.Value(leaveKey{}).(context.CancelCauseFunc)(errLeft)
	return ctx
}

// errLeft is the cause with which leaving cancels a call's context: another call failed.
// The call's error must not have the kinds of the errors of this package that are in it, but
// errors.Is must find the other errors. net/http returns the cause in place of the context's
// error.
var errLeft = fmt.Errorf("the user has left: %w", list{
	open{hidden{io.ErrUnexpectedEOF}}, agentmessaging.ErrNotFound, &agentmessaging.ValidationError{Field: "f", Reason: "r"},
	hidden{agentmessaging.ErrConflict}, hidden{&agentmessaging.Error{Method: "GET", Path: "/other"}},
})

// list is an error that cannot be compared.
type list []error

func (l list) Error() string   { return fmt.Sprint([]error(l)) }
func (l list) Unwrap() []error { return l }

// hidden holds an error that only its methods Is and As find, as some lists of errors do;
// open holds one that Unwrap finds too.
type hidden struct{ error }
type open struct{ hidden }

func (h hidden) Is(target error) bool { return errors.Is(h.error, target) }
func (h hidden) As(target any) bool   { return errors.As(h.error, target) }
func (o open) Unwrap() error          { return o.error }

// The options of a client.

func retries(p policy) options             { return options{agentmessaging.WithRetry(p)} }
func timed(d time.Duration) options        { return options{agentmessaging.WithTimeout(d)} }
func maxWait(d time.Duration) options      { return retries(policy{MaxWait: d}) }
func limitedBy(l *limiterStub) options     { return options{agentmessaging.WithLimiter(l)} }
func limiterWaits(d time.Duration) options { return limitedBy(&limiterStub{wait: d}) }
func limiterRefuses(err error) options     { return limitedBy(&limiterStub{refusal: err}) }

var (
	hasty    = maxWait(time.Second)[0]
	tireless = retries(policy{MaxAttempts: math.MaxInt, MinWait: 1}) // tries often, with short waits
)

// at returns an option whose observer changes the context at an event.
func at(event string, change func(context.Context) context.Context) agentmessaging.Option {
	return agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(ctx context.Context, e agentmessaging.Event) context.Context {
		if reflect.TypeOf(e).Name() != event {
			return nil
		}
		return change(ctx)
	}))
}

// ending returns a context that ends after d, whatever the end of ctx was.
func ending(d time.Duration) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
		context.AfterFunc(ctx, cancel)
		return ctx
	}
}

// slowly has an observer take its time.
func slowly(d time.Duration) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		time.Sleep(d)
		return ctx
	}
}
