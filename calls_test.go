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
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
)

var updateCalls = flag.Bool("update-calls", false, "write what comes of the calls into "+callsFile)

// callsFile shows what comes of each scene: what a program, an observer and a log see.
const callsFile = "testdata/calls.txt"

// scene is one call, made anew for each list of answers.
type scene struct {
	rule    string
	do      doCall
	opts    options
	attempt time.Duration // the Timeout of the http.Client
	cases   [][]answer
	want    ends // one for each case, or one for all
}

// ends are the verdicts of the attempts, and the kinds of the error. They are the policy
// of the client, which no flag accepts.
type ends []string

const inDoubt = "unknown: ErrOutcomeUnknown"

// inOrder is one case, of an answer for each attempt.
func inOrder(answers ...answer) [][]answer { return [][]answer{answers} }

// each is one case for each answer.
func each(answers ...answer) (cases [][]answer) {
	for _, a := range answers {
		cases = append(cases, []answer{a})
	}
	return cases
}

// bodies is an answer of a status for each body.
func bodies(status int, bodies ...string) (cases [][]answer) {
	for _, body := range bodies {
		cases = append(cases, []answer{{Status: status, Body: body}})
	}
	return cases
}

func statuses(body string, statuses ...int) (cases [][]answer) {
	for _, status := range statuses {
		cases = append(cases, []answer{{Status: status, Body: body}})
	}
	return cases
}

func redirect(status int, to string) answer {
	return answer{Status: status, Header: http.Header{"Location": {to}}}
}

func busy(retryAfter string) answer {
	return answer{Status: 503, Header: http.Header{"Retry-After": {retryAfter}}}
}

// slow answers after a time, or when the attempt ends.
func slow(d time.Duration, a answer) answer {
	a.Before = func(req *http.Request) {
		select {
		case <-time.After(d):
		case <-req.Context().Done():
		}
	}
	return a
}

// hang is never answered; left is cancelled while it is.
var (
	hang = slow(math.MaxInt64, answer{Err: context.DeadlineExceeded})
	left = answer{Err: errors.New("the user has left"), Before: func(req *http.Request) {
		req.Context().Value(spanKey{}).(context.CancelCauseFunc)(errors.New("the user has left"))
	}}
)

// within makes a call that has so much time, and that left can cancel.
func within(d time.Duration, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx, leave := context.WithCancelCause(ctx)
		return do(context.WithValue(ctx, spanKey{}, leave), client)
	}
}

// leaving gives up a call after a time.
func leaving(after time.Duration, do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		ctx, leave := context.WithCancelCause(ctx)
		time.AfterFunc(after, func() { leave(errors.New("the user has left")) })
		return do(ctx, client)
	}
}

// inTurn makes one call after the other and returns the last one's error.
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

func retries(p agentmessaging.RetryPolicy) options { return options{agentmessaging.WithRetry(p)} }

func timed(d time.Duration) options { return options{agentmessaging.WithTimeout(d)} }

var (
	impatient = within(5*time.Second, get)
	hasty     = agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxWait: time.Second})
	warmUp    = sending(agentmessaging.LLMMode(""))
	warmUpOwn = sending(agentmessaging.LLMModeBYOK)
	scenes    = []scene{
		{rule: "A refusal says what to do, where neither a wait nor the cause tells.", do: get,
			cases: statuses("", 401, 402, 404), want: ends{"not done: ErrUnauthorized", "not done: ErrPaymentRequired", "not done: ErrNotFound"}},
		{rule: "That of a 400 is about the call only in the service's words.", do: get,
			cases: bodies(400, "", `{"error":"bad_request"}`), want: ends{"not done: ErrBadRequest"}},
		{rule: "A 403 or 409 of a proxy is about something else than that of an endpoint that lists it.", do: get,
			cases: statuses("", 403, 409), want: ends{"not done: ErrForbidden", "not done: ErrConflict"}},
		{rule: "A 403 or 409 that the endpoint lists.", do: warmUpOwn, cases: statuses("", 403, 409), want: ends{"not done: ErrForbidden", "not done: ErrConflict"}},
		{rule: "Nothing to clear.", do: endpoints[4].call, cases: statuses("", 404), want: ends{"not done: ErrNotFound"}},
		{rule: "The base address is wrong.", do: endpoints[0].call, cases: statuses("", 404), want: ends{"not done: ErrNotFound"}},
		{rule: "Both ends of each range of statuses. After a protocol switch no body is read.", do: post,
			cases: statuses(anyReply, 0, 99, 100, 199, 200, 299, 300, 418, 499, 500, 501, 502, 504, 505, 599, 600),
			want: ends{
				inDoubt, inDoubt, "not done", "not done", "done", "done", "not done", "not done", "not done", inDoubt + " ErrServer",
				inDoubt + " ErrServer", inDoubt + " ErrServer", inDoubt + " ErrServer", inDoubt + " ErrServer", inDoubt + " ErrServer", inDoubt}},
		{rule: "A redirect is not followed. Only its host is named: the rest may hold a credential.", do: endpoints[0].call,
			cases: each(
				redirect(302, "https://elsewhere.example/?key=canary"), redirect(307, "/elsewhere?key=canary"), redirect(300, "https://canary b/%zz"),
				redirect(304, ""), redirect(399, "https://elsewhere.example/"), redirect(400, "https://elsewhere.example/")),
			want: ends{"not done", "not done", "not done", "not done", "not done", "not done: ErrBadRequest"}},
		{rule: "An error body: names are exact, each is there once, and what has another type or name is kept as it came.", do: get, opts: options{once},
			cases: bodies(400,
				`{"error":"first","error":5,"reason":"r","quota":12345678901234567890}`,
				`{"error":"busy","Error":"other","TRACE_ID":"t","Limit_Key":"k","reason":null}`,
				"          null", `{"error":"a"}x`, "<html>busy", strings.Repeat("x", 100<<10)),
			want: ends{"not done: ErrBadRequest"}},
		{rule: "The documented error body.", do: get, opts: options{once},
			cases: each(answer{Status: 429, Header: http.Header{"Retry-After": {"34"}}, Body: string(must(os.ReadFile("testdata/wire/error.json")))}),
			want:  ends{"not done: ErrRateLimited"}},
		{rule: "A CallInfo has the facts of the last answer, as it came. Secrets that an error echoes are taken out.", do: get,
			cases: [][]answer{
				{{Status: 200, Body: `{"agent_id":"a","trace_id":"t","mood":"good"}`}}, {{Status: 404, Body: "no " + testKey + " here"}},
				{{Status: 503, Body: `{"trace_id":"trace_3"}`, Header: http.Header{"Retry-After": {"2"}}}}, {{Status: 429, Body: "first"}, notDialed}},
			want: ends{"done", "not done: ErrNotFound", "unknown, unknown, unknown: ErrUnavailable", "not done, not done, not done, not done"}},
		{rule: "The words of a proxy are kept where they cannot be those of a request.", do: post,
			cases: bodies(413,
				"<html><head><title>400 No required SSL certificate was sent</title></head></html>",
				"<html><title>Blocked: message-canary\n</title></html>",
				"upstream connect error, reset reason: connection failure\n",
				`you sent {"text":"message-canary"}`, `{"message":"no healthy\nupstream","request_id":"r"}`, `{"message":"message-can"}`,
				"\ufeff"+`{"error":"busy","trace_id":17}`, `{"message":"unused","error":"busy"}`, `{"error":"busy","trace_id":["\u006dessage-canary"]}`),
			want: ends{"not done"}},
		{rule: "A success that cannot be read is unknown to a POST.", do: post,
			cases: bodies(200, `{"reply_text`, `{"reply":"misspelt","trace_id":"trace_7"}`,
				"\n<!DOCTYPE html><html><body>secret page</body></html>", strings.Repeat(" ", 1<<20-len(anyReply))+anyReply, strings.Repeat(" ", 1<<20+1)),
			want: ends{inDoubt, inDoubt, inDoubt, "done", inDoubt}},
		{rule: "It is read again by a GET. Members behind the wrong one count.", do: endpoints[2].call, opts: options{once},
			cases: bodies(200, `{"ok":true,"byok":{"provider":5},"trace_id":"trace_9"}`), want: ends{"unknown"}},
		{rule: "What an attempt at a POST did, and how its answer was missed.", do: within(time.Minute, warmUp),
			cases: append(each(
				okAnswer, notDialed, tooMany("7200", "k"), answer{Status: 404}, answer{Status: 503}, answer{Status: 500},
				answer{Status: 200, Reader: func() io.Reader { return iotest.ErrReader(io.ErrUnexpectedEOF) }},
				answer{Err: io.ErrUnexpectedEOF}, answer{Err: errors.New("stream error: stream ID 1; REFUSED_STREAM; received from peer")}, hang, left),
				bodies(503, `{"error":"byok_unavailable"}`)...),
			want: ends{
				"done", "not done, not done, not done", "not done: ErrRateLimited", "not done: ErrNotFound", inDoubt + " ErrUnavailable",
				inDoubt + " ErrServer", inDoubt + " io.ErrUnexpectedEOF", inDoubt + " io.ErrUnexpectedEOF", inDoubt,
				inDoubt + " context.DeadlineExceeded", inDoubt + " context.Canceled", "not done: ErrUnavailable"}},
		{rule: "Only the 503 that the interface lists for the endpoint, in the service's words, says that nothing was done: here it is none.", do: post,
			cases: bodies(503, `{"error":"byok_unavailable"}`), want: ends{inDoubt + " ErrUnavailable"}},
		{rule: "A certificate that the service demands: the request was on its way, but not looked at. Other alerts may come later.", do: post,
			cases: each(
				answer{Err: &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}},
				answer{Err: &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}}),
			want: ends{"not done", inDoubt}},
		{rule: "Each attempt sends the whole body, after a wait that grows.", do: post,
			cases: [][]answer{{notDialed, tooMany("7", ""), okAnswer}, {notDialed}}, want: ends{"not done, not done, done", "not done, not done, not done"}},
		{rule: "Half of the longest jitter is added.", do: post, opts: options{jitter(0.5)},
			cases: inOrder(notDialed, tooMany("7", ""), okAnswer), want: ends{"not done, not done, done"}},
		{rule: "A refusal without Retry-After is waited out for a second.", do: get, opts: options{agentmessaging.WithoutCoolDown()},
			cases: inOrder(tooMany("", ""), okAnswer), want: ends{"not done, done"}},
		{rule: "A policy of extremes is meant as it says: many attempts.", do: get, opts: retries(agentmessaging.RetryPolicy{MaxAttempts: math.MaxInt, MinWait: 1}),
			cases: inOrder(notDialed, notDialed, notDialed, notDialed, okAnswer), want: ends{"not done, not done, not done, not done, done"}},
		{rule: "Long waits.", do: get, opts: retries(agentmessaging.RetryPolicy{MinWait: 90 * time.Second}),
			cases: inOrder(notDialed, notDialed, okAnswer), want: ends{"not done, not done, done"}},
		{rule: "Waits without bound.", do: get, opts: retries(agentmessaging.RetryPolicy{MaxWait: math.MaxInt64}),
			cases: inOrder(busy("7200"), okAnswer), want: ends{"unknown: ErrUnavailable"}},
		{rule: "Short waits.", do: get, opts: retries(agentmessaging.RetryPolicy{MaxWait: time.Millisecond}),
			cases: inOrder(notDialed, notDialed, okAnswer), want: ends{"not done, not done, done"}},
		{rule: "No retries.", do: get, opts: retries(agentmessaging.RetryPolicy{MaxAttempts: 1, MinWait: time.Hour}),
			cases: each(notDialed, tooMany("3", "k")), want: ends{"not done", "not done: ErrRateLimited"}},
		{rule: "A wait up to the deadline is not begun.", do: within(30*time.Second, get), cases: inOrder(busy("30"), okAnswer), want: ends{"unknown: ErrUnavailable"}},
		{rule: "A shorter one is.", do: within(31*time.Second, get), cases: inOrder(busy("30"), okAnswer), want: ends{"unknown, done"}},
		{rule: "Nor is one that the policy does not allow.", do: get, opts: retries(agentmessaging.RetryPolicy{MaxWait: 29 * time.Second}),
			cases: inOrder(busy("30"), okAnswer), want: ends{"unknown: ErrUnavailable"}},
		{rule: "One that it just allows is, and jitter does not lengthen it.", do: get,
			opts:  append(retries(agentmessaging.RetryPolicy{MaxWait: 30 * time.Second}), jitter(0.999)),
			cases: inOrder(busy("30"), okAnswer), want: ends{"unknown, done"}},
		{rule: "Nor one that would use up WithTimeout.", do: get, opts: timed(30 * time.Second),
			cases: inOrder(busy("30"), okAnswer), want: ends{"unknown: ErrUnavailable"}},
		{rule: "The default timeout is five minutes.", do: get, cases: each(hang), want: ends{"unknown: context.DeadlineExceeded"}},
		{rule: "WithTimeout bounds a call, where the context has no deadline.", do: get, opts: timed(7 * time.Second),
			cases: each(hang), want: ends{"unknown: context.DeadlineExceeded"}},
		{rule: "A deadline of the context bounds it alone.", do: within(time.Hour, get), opts: timed(7 * time.Second),
			cases: each(hang), want: ends{"unknown: context.DeadlineExceeded"}},
		{rule: "The Timeout of the http.Client bounds an attempt.", do: get, opts: timed(time.Hour), attempt: 10 * time.Second,
			cases: each(hang), want: ends{"unknown, unknown, unknown: context.DeadlineExceeded"}},
		{rule: "The shorter one counts.", do: get, opts: timed(7 * time.Second), attempt: 10 * time.Second,
			cases: each(hang), want: ends{"unknown: context.DeadlineExceeded"}},
		{rule: "WithTimeout counts attempts and pauses: twice 3 and 4 s leave 1 s, which an attempt may use up.", do: get,
			opts:  append(timed(15*time.Second), retries(agentmessaging.RetryPolicy{MaxAttempts: 9})...),
			cases: each(slow(3*time.Second, busy("4"))), want: ends{"unknown, unknown, unknown: ErrUnavailable"}},
		{rule: "The same with a clock on which nobody waits.", do: get,
			opts:  append(timed(15*time.Second), append(retries(agentmessaging.RetryPolicy{MaxAttempts: 9}), agentmessaging.WithClock(stopped{}))...),
			cases: each(slow(3*time.Second, busy("4"))), want: ends{"unknown, unknown, unknown: ErrUnavailable"}},
	}
	// seen are scenes whose events and log are shown too.
	seen = []scene{
		{rule: "A message.", do: post, cases: each(okAnswer), want: ends{"done"}},
		{rule: "An agent that is made: its id is known at the end.", do: sending(create{}), cases: each(okAnswer), want: ends{"done"}},
		{rule: "What is refused is the caller's affair, other failures are warnings.", do: post,
			cases: each(answer{Status: 399}, answer{Status: 400}, answer{Status: 499}), want: ends{"not done", "not done: ErrBadRequest", "not done"}},
		{rule: "A 429 is waited for, here by the cool-down.", do: post,
			cases: [][]answer{{tooMany("3", "key_minute"), {Status: 500}}, {tooMany("3", "key_minute"), okAnswer}},
			want:  ends{"not done, " + inDoubt + " ErrServer", "not done, done"}},
		{rule: "A call that never reached the service is repeated.", do: post, cases: each(notDialed), want: ends{"not done, not done, not done"}},
		{rule: "A limiter makes the call wait, which is no part of the time of the call.", do: post,
			opts: append(timed(10*time.Second), agentmessaging.WithLimiter(&limiterStub{wait: time.Minute})), attempt: time.Second,
			cases: inOrder(notDialed, okAnswer), want: ends{"not done, done"}},
		{rule: "What a limiter takes below a millisecond is a decision and no wait.", do: post,
			opts:  options{agentmessaging.WithLimiter(&limiterStub{wait: time.Millisecond - 1})},
			cases: each(okAnswer), want: ends{"done"}},
		{rule: "A journal is asked after every wait, directly before each request. Its error sends nothing.", do: journaled(post),
			opts:  options{agentmessaging.WithLimiter(&limiterStub{wait: time.Minute})},
			cases: inOrder(tooMany("3", "k"), notDialed), want: ends{"not done, not done, not done"}},
		{rule: "A call that cannot wait for a limit is refused here, at once.", do: inTurn(impatient, within(299*time.Second, get)),
			opts:  retries(agentmessaging.RetryPolicy{MaxWait: time.Hour}),
			cases: inOrder(tooMany("420", "key_day"), okAnswer), want: ends{"not done, not done: ErrRateLimited"}},
		{rule: "So is one whose policy does not.", do: inTurn(impatient, get), opts: retries(agentmessaging.RetryPolicy{MaxWait: time.Minute}),
			cases: inOrder(tooMany("420", "key_day"), okAnswer), want: ends{"not done, not done: ErrRateLimited"}},
		{rule: "A caller that leaves is not kept.", do: inTurn(impatient, leaving(3*time.Second, get)),
			cases: inOrder(tooMany("60", ""), okAnswer), want: ends{"not done, not done: context.Canceled"}},
		{rule: "A cool-down is told once. Its limit_key is foreign text: one line of 64 bytes, without the key.", do: inTurn(impatient, within(time.Second, post), get),
			cases: inOrder(tooMany("20", testKey+`\n`+strings.Repeat("k", 100)), tooMany("20", testKey+`\n`+strings.Repeat("k", 100)), okAnswer),
			want:  ends{"not done, not done, done"}},
		{rule: "Siblings share the cool-down, but for one that has none.", do: inTurn(impatient, by(agentmessaging.WithoutCoolDown(), impatient), by(hasty, get), get),
			cases: inOrder(tooMany("20", "k"), tooMany("20", "k"), okAnswer), want: ends{"not done, not done, not done, done"}},
		{rule: "What the service and the transport echo is taken out. The result is the service's word.", do: sending(create{SystemPrompt: "prompt-canary"}),
			cases: each(
				answer{Err: errors.New("transport says " + testKey + " and prompt-canary")},
				answer{Status: 500, Body: `{"error":"broken","reason":"prompt-canary of ` + testKey + `"}`},
				answer{Status: 200, Body: `{"agent_id":"agent-` + testKey + `","status":"active","trace_id":"` + testKey + `"}`}),
			want: ends{inDoubt, inDoubt + " ErrServer", "done"}},
		{rule: "A limiter refuses: nothing is sent.", do: post, opts: options{agentmessaging.WithLimiter(&limiterStub{
			refusal: &agentmessaging.Error{StatusCode: 429, Code: "rate_limited", LimitKey: "key_day", RetryAfter: time.Hour},
		})},
			cases: each(okAnswer), want: ends{"not done: ErrRateLimited"}},
		{rule: "An argument is refused: nobody hears of it.", do: sending(message{}), cases: each(okAnswer), want: ends{"no attempt: ErrInvalid"}},
		{rule: "An error of the transport is one line without the key.", do: post,
			cases: each(answer{Err: errors.New("line\nbroken with " + testKey)}), want: ends{inDoubt}},
		{rule: "A context has ended before the call.", do: within(0, post), cases: each(okAnswer), want: ends{"no attempt: context.DeadlineExceeded"}},
		{rule: "A call is cancelled: net/http returns the cause in place of the error.", do: within(time.Minute, post),
			cases: each(left), want: ends{inDoubt + " context.Canceled"}},
	}
)

// TestCalls holds the scenes to callsFile.
func TestCalls(t *testing.T) {
	var all strings.Builder
	for i, s := range slices.Concat(scenes, []scene{cutWords()}, seen) {
		fmt.Fprintf(&all, "## %s\n\n", s.rule)
		require.Contains(t, []int{1, len(s.cases)}, len(s.want), s.rule)
		for n, answers := range s.cases {
			var told strings.Builder
			to := &told
			if i <= len(scenes) {
				to = nil
			}
			made, end := s.made(t, answers, to)
			assert.Equal(t, s.want[n%len(s.want)], end, "%s\n%s", s.rule, given(answers))
			assert.NotContains(t, told.String(), "canary", s.rule)
			fmt.Fprintf(&all, "%s%s%s\n", given(answers), told.String(), made)
		}
	}
	if *updateCalls && !t.Failed() {
		require.NoError(t, os.WriteFile(callsFile, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(callsFile)
	require.NoError(t, err)
	assert.Equal(t, strings.Split(string(want), "\n"), strings.Split(all.String(), "\n"), "read the difference; to accept it: go test -run TestCalls . -update-calls")
}

func cutWords() scene {
	s := scene{rule: "Long words are cut, each by its own bound, so that there is room for the others.", do: get, opts: options{once}}
	for _, word := range []struct {
		member string // of the body
		bound  int
	}{{"error", 64}, {"reason", 160}, {"limit_key", 40}, {"trace_id", 64}} {
		for _, length := range []int{word.bound, word.bound + 1} {
			s.cases = append(s.cases, bodies(400, fmt.Sprintf(`{%q:%q}`, word.member, strings.Repeat("Z", length)))...)
		}
	}
	for _, length := range []int{200, 201} {
		s.cases = append(s.cases, each(answer{Err: errors.New(strings.Repeat("Z", length))})...)
	}
	s.want = append(slices.Repeat(ends{"not done: ErrBadRequest"}, 8), "unknown", "unknown")
	return s
}

// given are the answers in words.
func given(answers []answer) string {
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

// made is what a program sees of the call, and how it ended. What observers and the log
// are told is written to told, unless that is nil.
func (s scene) made(t *testing.T, answers []answer, told *strings.Builder) (text, end string) {
	observer := &stages{t: t, told: told}
	opts := append(slices.Clone(s.opts), agentmessaging.WithObserver(observer))
	if told != nil {
		opts = append(opts, agentmessaging.WithLogger(slog.New(contextHandler{slog.DiscardHandler, func(ctx context.Context, r slog.Record) {
			assert.Equal(t, told, ctx.Value(toldKey{}), "the caller's context")
			fmt.Fprintf(told, "log      %s %s", r.Level, r.Message)
			r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(told, " %s", a); return true })
			fmt.Fprintln(told)
		}})))
	}
	made := makeTimed(t, s.attempt, func(ctx context.Context, client *agentmessaging.Client) error {
		return s.do(context.WithValue(ctx, toldKey{}, told), client)
	}, answers, opts...)
	for _, sent := range made.Sent {
		assert.True(t, sent.Text == made.Sent[0].Text || sent.URL.Path != made.Sent[0].URL.Path, "each attempt sends the whole body")
		assert.Equal(t, "service.example", sent.URL.Host)
		assert.Equal(t, "call, attempt, request: ", sent.Context().Value(stageKey{}), "the transport sees the request's context")
	}
	holdsLaws(t, made.Err, testKey)
	var b strings.Builder
	verdicts := strings.Join(observer.verdicts, ", ")
	end = cmp.Or(verdicts, "no attempt")
	fmt.Fprintf(&b, "made     %s: %s\n", cell{len(made.Sent), outcome(made.Err), made.Elapsed}, verdicts)
	info := made.Info
	if len(info.Body) > 60 {
		info.Body = fmt.Appendf(nil, "%d bytes", len(info.Body))
	}
	fmt.Fprintf(&b, "info    %s\n", fieldsOf(info))
	if made.Err != nil {
		fmt.Fprintf(&b, "error    %v\n", made.Err)
		if lost := (*agentmessaging.OutcomeUnknownError)(nil); errors.As(made.Err, &lost) {
			fmt.Fprintf(&b, "missed  %s\n", fieldsOf(agentmessaging.OutcomeUnknownError{Missed: lost.Missed, TraceID: lost.TraceID}))
		}
		if failure := (*agentmessaging.Error)(nil); errors.As(made.Err, &failure) {
			fmt.Fprintf(&b, "fields  %s\n", fieldsOf(*failure))
		}
		kinds := kindsOf(made.Err)
		fmt.Fprintf(&b, "kinds    %v\n", kinds)
		if kinds != nil {
			end += ": " + strings.Join(kinds, " ")
		}
	}
	return b.String(), end
}

// toldKey finds in the caller's context where a scene is written.
type toldKey struct{}

// journaled asks a journal before each request, which is full at the third.
func journaled(do doCall) doCall {
	return func(ctx context.Context, client *agentmessaging.Client) error {
		return do(agentmessaging.WithBeforeSend(ctx, func(ctx context.Context, attempt int) error {
			fmt.Fprintf(ctx.Value(toldKey{}).(*strings.Builder), "journal  attempt %d\n", attempt)
			if attempt == 3 {
				return errors.New("the journal is full of " + testKey)
			}
			return nil
		}), client)
	}
}

// stages is an observer that writes what it hears, and under which context: an
// attempt's is inside its call's.
type stages struct {
	t        *testing.T
	told     *strings.Builder // nil: nowhere
	verdicts []string
}

type stageKey struct{}

func (s *stages) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	stage, _ := ctx.Value(stageKey{}).(string)
	if s.told != nil {
		fmt.Fprintf(s.told, "event    %s%s\n", stage, strings.ReplaceAll(lineOf(event), "\n", `\n`))
		assert.NotContains(s.t, fmt.Sprintf("%v %+v %#v", event, event, event), "canary")
	}
	switch e := event.(type) {
	case agentmessaging.CallStart:
		e.URL.Host = "elsewhere.example" // a copy, which leads no request astray
		return context.WithValue(ctx, stageKey{}, "call: ")
	case agentmessaging.AttemptStart:
		return context.WithValue(ctx, stageKey{}, strings.Replace(stage, ":", ", attempt:", 1))
	case agentmessaging.RequestStart:
		return context.WithValue(ctx, stageKey{}, strings.Replace(stage, ":", ", request:", 1))
	case agentmessaging.AttemptEnd:
		s.verdicts = append(s.verdicts, string(e.Verdict))
	}
	return nil
}

// kinds are what errors.Is may find in an error of a call.
var kinds = map[string]error{
	"ErrBadRequest": agentmessaging.ErrBadRequest, "ErrUnauthorized": agentmessaging.ErrUnauthorized, "ErrPaymentRequired": agentmessaging.ErrPaymentRequired,
	"ErrForbidden": agentmessaging.ErrForbidden, "ErrNotFound": agentmessaging.ErrNotFound, "ErrConflict": agentmessaging.ErrConflict,
	"ErrRateLimited": agentmessaging.ErrRateLimited, "ErrUnavailable": agentmessaging.ErrUnavailable, "ErrServer": agentmessaging.ErrServer,
	"ErrInvalid": agentmessaging.ErrInvalid, "ErrOutcomeUnknown": agentmessaging.ErrOutcomeUnknown,
	"context.Canceled": context.Canceled, "context.DeadlineExceeded": context.DeadlineExceeded, "io.ErrUnexpectedEOF": io.ErrUnexpectedEOF,
}

// lineOf is an event with those of its fields that are set.
func lineOf(event agentmessaging.Event) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", event), "agentmessaging.") + fieldsOf(event)
}

func kindsOf(err error) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if errors.Is(err, kinds[name]) {
			names = append(names, name)
		}
	}
	return names
}

// fieldsOf are the exported fields that are set.
func fieldsOf(v any) (line string) {
	fields := reflect.ValueOf(v)
	for i := range fields.NumField() {
		field, value := fields.Type().Field(i), fields.Field(i)
		if !field.IsExported() || value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0 {
			continue
		}
		switch v := value.Interface().(type) {
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
