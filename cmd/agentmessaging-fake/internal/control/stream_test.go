package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

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

func newStreams(t *testing.T, o control.Options) (a api, base string) {
	a = newAPI(t, o)
	server := httptest.NewServer(a.all)
	t.Cleanup(server.Close)
	t.Cleanup(a.server.End) // before Close, which waits for streams
	return a, server.URL
}

func TestStream(t *testing.T) {
	a, base := newStreams(t, control.Options{})
	key := a.server.Key()
	a.service(key, "GET", "/v1/status", "")
	s := a.open(base, w+"/calls/stream")
	a.service(key, "GET", "/v1/byok", "")
	e := s.next()
	assert.Equal(t, []string{"2", "call"}, []string{e.id, e.name}, "from now on")
	var call map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.data), &call))
	assert.Equal(t, a.must(200, "GET", w+"/calls?after=1", "").list("calls")[0], any(call), "as in the list")
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", w + "/keys", `{}`, "keys"},
		{"PATCH", w + "/keys/key_000002", `{"plan":"pro"}`, "keys"},
		{"DELETE", w + "/keys/key_000002", ``, "keys"},
		{"POST", w + "/agents", `{"key":"key_000001","agent_id":"a"}`, "agents"},
		{"POST", w + "/agents/a/conversation", `{"exchanges":[{"text":"a","reply_text":"b"}]}`, "agents"},
		{"PUT", w + "/agents/a/sms", `{"status":"pending"}`, "agents"},
		{"POST", w + "/faults", `{"fault":{"kind":"hang"},"match":{"key":"key_000002"}}`, "faults"},
		{"DELETE", w + "/faults/fault_000001", ``, "faults"},
		{"POST", w + "/replies", `{"replies":[{"text":"a"}]}`, "replies"},
		{"DELETE", w + "/replies/reply_000001", ``, "replies"},
		{"POST", w + "/clock/advance", `{"duration":"1s"}`, "clock"},
		{"PUT", w + "/byok", `{"available":true}`, "byok"},
		{"PUT", w + "/keys/key_000001/byok", `{"provider":"openai","api_key":"k"}`, "byok"},
		{"POST", w + "/keys/key_000001/limits/key_day/exhaust", ``, "limits"},
		{"POST", w + "/snapshots", ``, "snapshots"},
		{"DELETE", w + "/snapshots/snapshot_000001", ``, "snapshots"},
		{"POST", w + "/reset", ``, "reset"},
	} {
		a.do(tt.method, tt.path, tt.body)
		assert.Equal(t, []string{tt.want}, s.kinds(1), "%s %s", tt.method, tt.path)
	}
	state := a.must(200, "GET", w+"/state", "").raw
	a.must(204, "PUT", w+"/state", state)
	assert.Equal(t, []string{"agents", "byok", "clock", "keys", "limits"}, s.kinds(5))
	a.must(201, "POST", w+"/snapshots", "")
	assert.Equal(t, []string{"snapshots"}, s.kinds(1))
	a.must(204, "POST", w+"/snapshots/snapshot_000001/restore", "")
	assert.Equal(t, []string{"agents", "byok", "keys", "limits"}, s.kinds(4))
	a.service(key, "POST", "/v1/agents", `{}`)
	assert.Equal(t, []string{"agents"}, s.kinds(1), "what the service changes, shows too")
	assert.Equal(t, "3", s.next().id, "the reset has not been missed calls")
	a.service(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"k"}`)
	assert.Equal(t, []string{"byok"}, s.kinds(1))
}

func TestStreamResumes(t *testing.T) {
	a, base := newStreams(t, control.Options{Calls: 3})
	status := func(n int) {
		for range n {
			a.service(a.server.Key(), "GET", "/v1/status", "")
		}
	}
	status(3)
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, w+"/calls/stream?after=0").calls(3))
	s := a.open(base, w+"/calls/stream", "Last-Event-ID: 2")
	assert.Equal(t, []string{"agents", "byok", "clock", "faults", "keys", "limits", "replies", "snapshots"}, s.kinds(8))
	assert.Equal(t, []string{"3"}, s.calls(1))
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, w+"/calls/stream", "Last-Event-ID: 400").calls(3), "an id of an earlier run")
	status(3)
	s = a.open(base, w+"/calls/stream?after=2")
	assert.Equal(t, event{"", "gap", `{"missed":1}`}, s.next())
	assert.Equal(t, []string{"4", "5", "6"}, s.calls(3))
}

// Who comes late gets all calls in order, without waiting for a further one.
func TestStreamCatchesUp(t *testing.T) {
	a, base := newStreams(t, control.Options{})
	for range 250 {
		a.service(a.server.Key(), "GET", "/v1/status", "")
	}
	s := a.open(base, w+"/calls/stream?after=0")
	for i := range 250 {
		require.Equal(t, fmt.Sprint(i+1), s.next().id)
	}
}

// A reader that takes nothing keeps nobody waiting, and learns how many calls it missed.
func TestSlowReader(t *testing.T) {
	a, base := newStreams(t, control.Options{Calls: 10, Settings: control.Settings{Limits: "off"}})
	a.must(201, "POST", w+"/agents", `{"key":"key_000001","agent_id":"a"}`)
	s := a.open(base, w+"/calls/stream")
	text := strings.Repeat("x", 4000)
	for range 2000 { // 16 MB, more than any socket holds
		a.service(a.server.Key(), "POST", "/v1/agents/a/messages", `{"text":"`+text+`"}`)
	}
	last, missed := "", 0
	for received := 0; last != "2000"; {
		switch e := s.next(); e.name {
		case "call":
			last = e.id
			received++
		case "gap":
			var gap struct{ Missed int }
			require.NoError(t, json.Unmarshal([]byte(e.data), &gap))
			missed += gap.Missed
		case "":
			require.Fail(t, "the stream has ended")
		}
		if last == "2000" {
			assert.Equal(t, 2000, received+missed)
		}
	}
	assert.Positive(t, missed)
}

func TestStreamEnds(t *testing.T) {
	a, base := newStreams(t, control.Options{})
	a.must(201, "POST", "/worlds", `{"name":"one"}`)
	one, other := a.open(base, "/worlds/one/calls/stream"), a.open(base, w+"/calls/stream")
	a.must(204, "DELETE", "/worlds/one", "")
	assert.Zero(t, one.next(), "with its world")
	a.server.End()
	assert.Zero(t, other.next(), "with the program")
}
