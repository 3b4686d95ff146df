package control_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func newStreams(t *testing.T, o control.Options) (a api, base string) {
	a = newAPI(t, o)
	server := httptest.NewServer(a.all)
	t.Cleanup(server.Close)
	t.Cleanup(a.server.End) // before Close, which waits for streams
	return a, server.URL
}

// changes are calls that change something, and what they change.
var changes = []struct{ method, path, body, want string }{
	{"POST", "/keys", `{}`, "keys"},
	{"PATCH", "/keys/key_000002", `{"plan":"pro"}`, "keys"},
	{"PATCH", "/keys/key_000002", `{"revoked":true}`, "keys"},
	{"POST", "/agents", `{"key":"key_000001","agent_id":"a"}`, "agents"},
	{"POST", "/agents/a/conversation", `{"exchanges":[{"text":"a","reply_text":"b"}]}`, "agents"},
	{"PUT", "/agents/a/sms", `{"status":"pending"}`, "agents"},
	{"POST", "/faults", `{"fault":{"kind":"hang"},"match":{"key":"key_000002"}}`, "faults"},
	{"DELETE", "/faults/fault_000001", ``, "faults"},
	{"POST", "/replies", `{"replies":[{"text":"a"}]}`, "replies"},
	{"DELETE", "/replies/reply_000001", ``, "replies"},
	{"POST", "/clock", `{"duration":"1s"}`, "clock"},
	{"PUT", "/byok", `{"available":true}`, "byok"},
	{"POST", "/keys/key_000001/limits/key_day/exhaust", ``, "limits"},
	{"DELETE", "/calls", ``, "calls"},
	{"POST", "/reset", ``, "reset"},
}

func TestStream(t *testing.T) {
	a, base := newStreams(t, control.Options{})
	key := a.server.Key()
	a.service(key, "GET", "/v1/status", "")
	s := a.open(base, "/calls/stream")
	a.service(key, "GET", "/v1/byok", "")
	e := s.next()
	assert.Equal(t, []string{"2", "call"}, []string{e.id, e.name}, "from now on")
	var call map[string]any
	require.NoError(t, json.Unmarshal([]byte(e.data), &call))
	assert.Equal(t, a.must(200, "GET", "/calls?after=1", "").list("calls")[0], any(call), "as in the list")
	for _, tt := range changes {
		a.do(tt.method, tt.path, tt.body)
		assert.Equal(t, []string{tt.want}, s.kinds(1), "%s %s", tt.method, tt.path)
	}
	state := a.must(200, "GET", "/state", "").raw
	a.must(204, "PUT", "/state", state)
	assert.Equal(t, []string{"agents", "byok", "clock", "keys", "limits"}, s.kinds(5))
	a.service(key, "POST", "/v1/agents", `{}`)
	assert.Equal(t, []string{"agents"}, s.kinds(1), "what the service changes, shows too")
	assert.Equal(t, "3", s.next().id, "the reset has not been missed calls")
	a.service(key, "PUT", "/v1/byok", `{"provider":"openai","api_key":"k"}`)
	assert.Equal(t, []string{"byok"}, s.kinds(1))
}

func TestStreamResumes(t *testing.T) {
	a, base := newStreams(t, control.Options{Fake: []fakeserver.Option{fakeserver.WithCallLimit(3)}})
	status := func(n int) {
		for range n {
			a.service(a.server.Key(), "GET", "/v1/status", "")
		}
	}
	status(3)
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, "/calls/stream?after=0").calls(3))
	s := a.open(base, "/calls/stream", "Last-Event-ID: 2")
	assert.Equal(t, []string{"agents", "byok", "clock", "faults", "keys", "limits", "replies"}, s.kinds(7))
	assert.Equal(t, []string{"3"}, s.calls(1))
	assert.Equal(t, []string{"1", "2", "3"}, a.open(base, "/calls/stream", "Last-Event-ID: 400").calls(3), "an id of an earlier run")
	status(3)
	s = a.open(base, "/calls/stream?after=2")
	assert.Equal(t, event{"", "gap", `{"missed":1}`}, s.next())
	assert.Equal(t, []string{"4", "5", "6"}, s.calls(3))
}

// A reader that takes nothing keeps nobody waiting, and learns how many calls it missed.
func TestSlowReader(t *testing.T) {
	opts := []fakeserver.Option{fakeserver.WithCallLimit(10)}
	for _, limit := range []fakeserver.Limit{fakeserver.LimitKeyMinute, fakeserver.LimitIPMinute, fakeserver.LimitKeyDay} {
		opts = append(opts, fakeserver.WithLimit(limit, control.NoLimit))
	}
	a, base := newStreams(t, control.Options{Fake: opts})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"a"}`)
	s := a.open(base, "/calls/stream")
	const made = 2000
	text := strings.Repeat("x", 4000)
	for range made { // 16 MB, more than any socket holds
		a.service(a.server.Key(), "POST", "/v1/agents/a/messages", `{"text":"`+text+`"}`)
	}
	missed, received := 0, 0
	for last := ""; last != fmt.Sprint(made); {
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
	}
	assert.Equal(t, made, received+missed)
	assert.Positive(t, missed)
}
