package control_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

func TestWorlds(t *testing.T) {
	a := newAPI(t, control.Options{Settings: control.Settings{Plan: "pro"}})
	first := a.must(201, "POST", "/worlds", `{"name":"suite-a","limits":"off","windows":"sliding"}`)
	assert.JSONEq(t, `{"name":"suite-a","plan":"pro","limits":"off","windows":"sliding",
		"key":"amk_world_suite-a"}`, first.raw)
	a.must(201, "POST", "/worlds", `{"name":"world-1","plan":"free"}`)
	assert.Equal(t, "world-2", a.must(201, "POST", "/worlds", `{}`).text("name"), "the first name that is free")
	a.do("POST", "/worlds", `{"name":"suite-a"}`).wantRefused(t, 409, "there is a world with this name already")
	a.do("POST", "/worlds", `{"name":"default"}`).wantRefused(t, 409, "there is a world with this name already")
	a.do("DELETE", "/worlds/default", "").wantRefused(t, 409, "the world named default is always there")
	a.service("amk_world_suite-a", "GET", "/v1/status", "")
	assert.JSONEq(t, `{"worlds":[
		{"name":"default","plan":"pro","limits":"plan","windows":"fixed","keys":1,"agents":0,"calls":0},
		{"name":"suite-a","plan":"pro","limits":"off","windows":"sliding","keys":1,"agents":0,"calls":1},
		{"name":"world-1","plan":"free","limits":"plan","windows":"fixed","keys":1,"agents":0,"calls":0},
		{"name":"world-2","plan":"pro","limits":"plan","windows":"fixed","keys":1,"agents":0,"calls":0}]}`, a.must(200, "GET", "/worlds", "").raw)
	assert.Equal(t, 402, a.service("amk_world_world-1", "GET", "/v1/status", "").status)
	a.must(204, "DELETE", "/worlds/suite-a", "")
	assert.Equal(t, 401, a.service("amk_world_suite-a", "GET", "/v1/status", "").status, "the key is unknown now")
	assert.Len(t, a.must(200, "GET", w+"/calls?key=unknown", "").list("calls"), 1, "and shows in the world named default")
	a.do("GET", "/worlds/suite-a/keys", "").wantRefused(t, 404, "no world has this name")
}

// Nothing that is done in one world shows in another.
func TestWorldsShareNothing(t *testing.T) {
	a := newAPI(t, control.Options{})
	one, other := a.must(201, "POST", "/worlds", `{"name":"one"}`).text("key"), a.must(201, "POST", "/worlds", `{"name":"other"}`).text("key")
	second := a.must(201, "POST", "/worlds/one/keys", `{}`).text("key")
	assert.Equal(t, "amk_world_one_000002", second)
	a.service(one, "POST", "/v1/agents", "{}")
	a.must(201, "POST", "/worlds/one/faults", `{"fault":{"kind":"answer","status":503},"match":{"endpoint":"GET /v1/status"}}`)
	a.must(201, "POST", "/worlds/one/replies", `{"replies":[{"text":"scripted"}]}`)
	a.must(200, "POST", "/worlds/one/clock/advance", `{"duration":"1h"}`)
	a.must(204, "POST", "/worlds/one/keys/key_000001/limits/key_day/exhaust", "")
	a.must(200, "PUT", "/worlds/one/byok", `{"available":false}`)
	a.must(201, "POST", "/worlds/one/snapshots", "")

	assert.Equal(t, 503, a.service(one, "GET", "/v1/status", "").status)
	assert.Equal(t, 200, a.service(other, "GET", "/v1/status", "").status)
	assert.Equal(t, 404, a.service(second, "GET", "/v1/agents/agent_000001", "").status)
	for _, world := range []string{"/worlds/other", w} {
		for path, member := range map[string]string{"/agents": "agents", "/faults": "faults", "/replies": "replies", "/snapshots": "snapshots"} {
			assert.Empty(t, a.must(200, "GET", world+path, "").list(member), path)
		}
		assert.Equal(t, "0s", a.must(200, "GET", world+"/clock", "").body["advanced"])
		assert.Equal(t, true, a.must(200, "GET", world+"/byok", "").body["available"])
	}
	assert.Equal(t, "agent_000001", a.service(other, "POST", "/v1/agents", "{}").text("agent_id"))
	a.must(204, "POST", "/worlds/other/reset", "")
	assert.Len(t, a.must(200, "GET", "/worlds/one/agents", "").list("agents"), 1, "the reset of another")
}

func TestReset(t *testing.T) {
	a := newAPI(t, control.Options{
		Settings: control.Settings{Plan: "pro"}, Latency: 1e6,
		Replies: []byte(`[{"replies":[{"text":"from the file"}]}]`),
	})
	key := a.server.Key()
	second := a.must(201, "POST", w+"/keys", `{}`).text("key")
	agent := a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	a.must(201, "POST", w+"/faults", `{"fault":{"kind":"hang"}}`)
	a.must(201, "POST", w+"/replies", `{"replies":[{"text":"mine"}]}`)
	a.must(201, "POST", w+"/snapshots", "")
	a.must(200, "PATCH", w+"/keys/key_000001", `{"plan":"free"}`)
	a.must(200, "POST", w+"/clock/advance", `{"duration":"1m"}`)
	a.must(204, "POST", w+"/reset", "")
	assert.Equal(t, 401, a.service(second, "GET", "/v1/status", "").status)
	assert.Equal(t, 404, a.service(key, "GET", "/v1/agents/"+agent, "").status)
	assert.Contains(t, a.must(200, "GET", w+"/keys", "").raw, `"plan":"pro"`)
	assert.Contains(t, a.must(200, "GET", w+"/faults", "").raw, `[{"id":"fault_000001","name":"Latency(1ms)"`)
	assert.Len(t, a.must(200, "GET", w+"/faults", "").list("faults"), 1)
	assert.Contains(t, a.must(200, "GET", w+"/replies", "").raw, `"id":"reply_000001","match":{},"replies":[{"text":"from the file"}]`)
	assert.Empty(t, a.must(200, "GET", w+"/snapshots", "").list("snapshots"))
	assert.Equal(t, "1m0s", a.must(200, "GET", w+"/clock", "").body["advanced"])
	agent = a.service(key, "POST", "/v1/agents", "{}").text("agent_id")
	assert.Equal(t, "from the file", a.service(key, "POST", "/v1/agents/"+agent+"/messages", `{"text":"x"}`).text("reply_text"))
}

func TestLimitsOfWorlds(t *testing.T) {
	a := newAPI(t, control.Options{})
	for limits, want := range map[string]string{
		"plan": `"max":300`, "preview": fmt.Sprintf(`"max":%d`, spec.Limits[0].Max), "pro": `"max":300`, "byok": `"max":600`, "off": `"max":null,"used":0,"left":null`,
	} {
		name := "l-" + limits
		a.must(201, "POST", "/worlds", fmt.Sprintf(`{"name":%q,"plan":"pro","limits":%q}`, name, limits))
		r := a.must(200, "GET", "/worlds/"+name+"/keys/key_000001/limits", "")
		assert.Contains(t, r.raw, `{"limit_key":"key_minute",`+want, limits)
		require.Len(t, r.list("limits"), 7)
	}
	a.must(204, "POST", "/worlds/l-off/keys/key_000001/limits/warmup_key_hour/exhaust", "")
	last := a.must(200, "GET", "/worlds/l-off/keys/key_000001/limits", "").list("limits")[6].(map[string]any)
	assert.Equal(t, 0., last["left"])
	assert.NotNil(t, last["opens_at"])
}

func TestTooManyWorlds(t *testing.T) {
	a := newAPI(t, control.Options{})
	for range 999 {
		a.must(201, "POST", "/worlds", `{}`)
	}
	a.do("POST", "/worlds", `{}`).wantRefused(t, 409, "there are 1000 worlds already")
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

// The same world from many sides, while others come and go: no panic.
func TestWorldsAtOnce(t *testing.T) {
	a := newAPI(t, control.Options{Settings: control.Settings{Limits: "off"}})
	acts := []func(){
		func() { a.service(a.server.Key(), "POST", "/v1/agents", "{}") },
		func() { a.service("amk_world_other", "GET", "/v1/status", "") },
	}
	for _, act := range [][3]string{
		{"POST", w + "/reset", ""},
		{"POST", w + "/keys", `{}`},
		{"PATCH", w + "/keys/key_000002", `{"plan":"pro"}`},
		{"DELETE", w + "/keys/key_000003", ""},
		{"POST", w + "/agents", `{"key":"key_000001","agent_id":"agent_000001"}`},
		{"POST", w + "/agents/agent_000001/messages", `{"text":"x"}`},
		{"PUT", w + "/agents/agent_000002/sms", `{"status":"pending"}`},
		{"POST", w + "/agents/agent_000001/conversation", `{"exchanges":[{"text":"a","reply_text":"b"}]}`},
		{"POST", w + "/snapshots", ""},
		{"POST", w + "/snapshots/snapshot_000001/restore", ""},
		{"POST", w + "/faults", `{"fault":{"kind":"answer","status":503},"chance":0.5}`},
		{"DELETE", w + "/faults/fault_000001", ""},
		{"GET", w + "/agents", ""},
		{"GET", w + "/keys/key_000002/limits", ""},
		{"GET", w + "/calls/await?timeout=1ms", ""},
		{"POST", "/worlds", `{"name":"other"}`},
		{"DELETE", "/worlds/other", ""},
		{"GET", "/worlds", ""},
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
