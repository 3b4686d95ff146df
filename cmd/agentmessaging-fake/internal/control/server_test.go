package control_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

func TestReset(t *testing.T) {
	a := newAPI(t, control.Options{
		Plan: "pro", Latency: 1e6,
		Replies: []byte(`[{"replies":[{"text":"from the file"}]}]`),
	})
	key := a.server.Key()
	second := a.must(201, "POST", "/keys", `{}`).text("key")
	agent := a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	a.must(201, "POST", "/faults", `{"fault":{"kind":"hang"}}`)
	a.must(201, "POST", "/replies", `{"replies":[{"text":"mine"}]}`)
	a.must(200, "PATCH", "/keys/key_000001", `{"plan":"free"}`)
	a.must(200, "POST", "/clock", `{"duration":"1m"}`)
	a.must(204, "POST", "/reset", "")
	assert.Equal(t, 401, a.service(second, "GET", "/v1/status", "").status)
	assert.Equal(t, 404, a.service(key, "GET", "/v1/agents/"+agent, "").status)
	assert.Contains(t, a.must(200, "GET", "/keys", "").raw, `"plan":"pro"`)
	assert.Contains(t, a.must(200, "GET", "/faults", "").raw, `[{"id":"fault_000001","name":"Latency(1ms)"`)
	assert.Len(t, a.must(200, "GET", "/faults", "").list("faults"), 1)
	assert.Contains(t, a.must(200, "GET", "/replies", "").raw, `"id":"reply_000001","match":{},"replies":[{"text":"from the file"}]`)
	assert.Equal(t, "0s", a.must(200, "GET", "/clock", "").body["advanced"])
	agent = a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	assert.Equal(t, "from the file", a.service(key, "POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).text("reply_text"))
}

// A reset ends the calls that hang, and the state is a new one when they have gone.
func TestResetLetsCallsGo(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/faults", `{"fault":{"kind":"latency","duration":"1h"}}`)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() { a.service(a.server.Key(), "POST", "/v1/agents", "{}") })
	})
	for len(a.must(200, "GET", "/calls", "").list("under_way")) == 0 {
		continue
	}
	a.must(204, "POST", "/reset", "")
	waiting.Wait()
	assert.Empty(t, a.must(200, "GET", "/agents", "").list("agents"))
	assert.Empty(t, a.must(200, "GET", "/calls", "").list("calls"))
	assert.Equal(t, 200, a.service(a.server.Key(), "GET", "/v1/status", "").status)
}

func TestLimitsOfTheOptions(t *testing.T) {
	for limits, want := range map[string]string{
		"plan": `"max":300`, "preview": `"max":60`, "byok": `"max":600`, "off": `"max":null,"used":0,"left":null`,
	} {
		a := newAPI(t, control.Options{Plan: "pro", Limits: limits})
		r := a.must(200, "GET", "/keys/key_000001/limits", "")
		assert.Contains(t, r.raw, `{"limit_key":"key_minute",`+want, limits)
		require.Len(t, r.list("limits"), 7)
	}
}

func TestOptionsRefused(t *testing.T) {
	for want, o := range map[string]control.Options{
		"replies: body: must be one":    {Replies: []byte("{")},
		"replies[1].match.key: no key":  {Replies: []byte(`[{"replies":[{"text":"a"}]},{"replies":[{"text":"a"}],"match":{"key":"key_000002"}}]`)},
		"replies: replies: is required": {Replies: []byte(`{}`)},
		"replies: [0].replies: is":      {Replies: []byte(`[{}]`)},
		"WithKey":                       {Key: "a b"},
	} {
		_, err := control.New(o)
		assert.ErrorContains(t, err, want)
	}
}

// Many acts at once, among them resets: no panic.
func TestActsAtOnce(t *testing.T) {
	a := newAPI(t, control.Options{Limits: "off"})
	acts := []func(){
		func() { a.service(a.server.Key(), "POST", "/v1/agents", "{}") },
	}
	for _, act := range [][3]string{
		{"POST", "/reset", ""},
		{"POST", "/keys", `{}`},
		{"PATCH", "/keys/key_000002", `{"plan":"pro"}`},
		{"POST", "/agents", `{"key":"key_000001","agent_id":"agent_000001"}`},
		{"POST", "/calls", `{"key":"key_000001","method":"POST","path":"/v1/agents/agent_000001/messages","body":"{\"text\":\"x\"}"}`},
		{"POST", "/agents/agent_000001/conversation", `{"exchanges":[{"text":"a","reply_text":"b"}]}`},
		{"POST", "/faults", `{"fault":{"kind":"answer","status":503},"chance":0.5}`},
		{"GET", "/keys/key_000002/limits", ""},
		{"GET", "/calls?timeout=1ms", ""},
	} {
		acts = append(acts, func() { a.do(act[0], act[1], act[2]) })
	}
	var all sync.WaitGroup
	for _, act := range acts {
		all.Go(func() {
			for range 30 {
				act()
			}
		})
	}
	all.Wait()
}
