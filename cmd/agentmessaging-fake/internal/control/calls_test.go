package control_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func (r reply) seqs() (all []float64) {
	for _, c := range r.list("calls") {
		all = append(all, c.(map[string]any)["seq"].(float64))
	}
	return all
}

func TestCalls(t *testing.T) {
	a := newAPI(t, control.Options{Fake: []fakeserver.Option{fakeserver.WithCallLimit(5)}})
	key := a.server.Key()
	a.service(key, "GET", "/v1/nothing", "")
	agent := a.service(key, "POST", "/v1/agents", `{"customer_ref":"<c>"}`).text("agent_id")
	a.service(key, "POST", "/v1/agents/"+agent+"/messages", `{"text":"hello \"you\""}`)
	a.service("other", "GET", "/v1/status", "")
	a.send("GET", "/v1/status", "")
	a.service(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	for query, want := range map[string][]float64{
		"": {2, 3, 4, 5, 6}, "?limit=2": {5, 6}, "?after=4": {5, 6}, "?key=missing": {5}, "?key=unknown": {4}, "?key=key_000001": {2, 3, 6},
		"?status=401": {4, 5}, "?status=4xx": {4, 5}, "?status=2xx": {2, 3, 6}, "?status=0": nil, "?decided=401": {4, 5}, "?endpoint=GET%20/v1/status": {4, 5},
		"?agent_id=" + agent: {3}, "?text=hell": nil, "?before=4&after=2": {3}, "?search=HELLO+%22you%22": {3}, "?search=post+%3Cc%3E": {2}, "?search=hello+put": nil, "?text_containing=hell": {3}, "?endpoint=GET%20/v1/status&key=missing": {5},
	} {
		r := a.must(200, "GET", "/calls"+query, "")
		assert.Equal(t, want, r.seqs(), query)
		assert.Equal(t, 1., r.body["dropped"])
		assert.NotContains(t, r.raw, "canary")
		assert.NotContains(t, r.raw, "amk_")
	}
	call := a.must(200, "GET", "/calls?text_containing=hello", "").list("calls")[0].(map[string]any)
	assert.Equal(t, `{"text":"hello \"you\""}`, call["body"], "texts are there to be seen")
	assert.Equal(t, 5, strings.Count(a.must(200, "GET", "/calls.har", "").raw, `"startedDateTime"`))
}

func TestForgetCalls(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.service(a.server.Key(), "POST", "/v1/agents", "{}")
	a.must(204, "DELETE", "/calls", "")
	assert.JSONEq(t, `{"calls":[],"under_way":[],"total":0,"dropped":0}`, a.must(200, "GET", "/calls", "").raw)
	assert.Len(t, a.must(200, "GET", "/agents", "").list("agents"), 1, "nothing else is forgotten")
	a.service(a.server.Key(), "GET", "/v1/status", "")
	assert.Equal(t, []float64{2}, a.must(200, "GET", "/calls", "").seqs())
}

func TestAwait(t *testing.T) {
	a := newAPI(t, control.Options{})
	key := a.server.Key()
	var waiting sync.WaitGroup
	waiting.Go(func() {
		r := a.must(200, "GET", "/calls?n=2&timeout=1m&endpoint=GET%20/v1/status", "")
		assert.Equal(t, []float64{1, 3}, r.seqs())
	})
	a.service(key, "GET", "/v1/status", "")
	a.service(key, "GET", "/v1/byok", "")
	a.service(key, "GET", "/v1/status", "")
	waiting.Wait()
	assert.Equal(t, []float64{1}, a.must(200, "GET", "/calls?timeout=5s", "").seqs()[:1], "one, and those that were made already count")
	late := a.do("GET", "/calls?after=2&n=2&timeout=0s&key=key_000001", "")
	assert.Equal(t, 504, late.status)
	assert.Equal(t, "timeout", late.text("error"))
	assert.Contains(t, late.reason(), "1 of 2 calls came")
	assert.Equal(t, []float64{3}, late.seqs())
}

func TestAwaitEndsWithTheProgram(t *testing.T) {
	a := newAPI(t, control.Options{})
	var waiting sync.WaitGroup
	waiting.Go(func() { assert.Equal(t, 504, a.do("GET", "/calls?n=1&timeout=10m", "").status) })
	a.server.End()
	waiting.Wait()
}

func TestSendAgain(t *testing.T) {
	a := newAPI(t, control.Options{})
	agent := a.service(a.server.Key(), "POST", "/v1/agents", `{}`).text("agent_id")
	a.service(a.server.Key(), "POST", "/v1/agents/"+agent+"/messages", `{"text":"one"}`)
	a.service(a.server.Key(), "PUT", "/v1/byok", `{"provider":"openai","api_key":"sk-canary-0123"}`)
	a.service("nobody", "GET", "/v1/status", "")
	sent := a.must(200, "POST", "/calls", `{"seq":2}`)
	assert.JSONEq(t, `{"status":200,"body":{"reply_text":"You wrote: one","trace_id":"trace_000005"}}`, sent.raw)
	edited := a.must(200, "POST", "/calls", `{"seq":2,"body":"{\"text\":5}"}`)
	assert.EqualValues(t, 400, edited.body["status"])
	a.do("POST", "/calls", `{"seq":3}`).wantRefused(t, 409, "was not kept whole")
	a.do("POST", "/calls", `{"seq":4}`).wantRefused(t, 409, "the key of this call is none of this fake")
	a.do("POST", "/calls", `{"seq":99}`).wantRefused(t, 404, "seq")
}

// event is one server-sent event; a comment has a name of ":".
type event struct{ id, name, data string }

// stream reads events as an EventSource does.
type stream struct {
	t     testing.TB
	lines *bufio.Scanner
	end   context.CancelFunc
}

// open begins a stream and reads its first comment.
func (a api) open(base, path string, header ...string) *stream {
	ctx, cancel := context.WithCancel(a.t.Context())
	a.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", base+"/_fake/v1"+path, nil)
	require.NoError(a.t, err)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(a.t, 200, resp.StatusCode)
	require.Equal(a.t, "text/event-stream", resp.Header.Get("Content-Type"))
	record(a.t, req, "", reply{status: resp.StatusCode, header: resp.Header})
	s := &stream{a.t, bufio.NewScanner(resp.Body), cancel}
	s.lines.Buffer(nil, 1<<20)
	require.Equal(a.t, ":", s.next().name)
	return s
}

// next is the next event; the zero event is the end.
func (s *stream) next() (e event) {
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch {
		case s.lines.Text() == "":
			return e
		case name == "id":
			e.id = value
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		default:
			e.name = ":"
		}
	}
	return event{}
}

// calls reads n calls and returns their numbers; other events are left out.
func (s *stream) calls(n int) (seqs []string) {
	s.t.Helper()
	for len(seqs) < n {
		e := s.next()
		require.NotZero(s.t, e, "the stream has ended")
		if e.name == "call" {
			seqs = append(seqs, e.id)
		}
	}
	return seqs
}

// kinds reads n "state" events, and returns what each says has changed.
func (s *stream) kinds(n int) (all []string) {
	for range n {
		e := s.next()
		assert.Equal(s.t, "state", e.name)
		all = append(all, strings.TrimSuffix(strings.TrimPrefix(e.data, `{"what":"`), `"}`))
	}
	return all
}
