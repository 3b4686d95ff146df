package control_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

func written(t testing.TB, s *control.Server) string {
	var out bytes.Buffer
	require.NoError(t, s.WriteState(&out))
	return out.String()
}

func TestStateOfWorlds(t *testing.T) {
	a := newAPI(t, control.Options{Key: "cnry-service-key"})
	one := a.must(201, "POST", "/worlds", `{"name":"one","limits":"byok","windows":"sliding"}`).text("key")
	a.service(one, "PUT", "/v1/byok", `{"provider":"openai","api_key":"cnry-provider-key","label":"<l>"}`)
	agent := a.service(one, "POST", "/v1/agents", "{}").text("agent_id")
	a.service(one, "POST", "/v1/agents/"+agent+"/messages", `{"text":"<hello>"}`)
	a.must(200, "POST", w+"/clock/advance", `{"duration":"1m"}`)
	file := written(t, a.server)
	assert.Contains(t, file, `"text":"<hello>"`)
	for _, secret := range []string{"cnry", "amk_"} {
		assert.NotContains(t, file, secret)
	}

	b := newAPI(t, control.Options{Settings: control.Settings{Limits: "off"}})
	b.must(201, "POST", "/worlds", `{"name":"gone"}`)
	require.NoError(t, b.server.ReadState([]byte(file)))
	assert.JSONEq(t, `{"worlds":[
		{"name":"default","plan":"preview","limits":"off","windows":"fixed","keys":1,"agents":0,"calls":0},
		{"name":"one","plan":"preview","limits":"byok","windows":"sliding","keys":1,"agents":1,"calls":0}]}`, b.must(200, "GET", "/worlds", "").raw)
	assert.Equal(t, 200, b.service(one, "GET", "/v1/agents/"+agent, "").status)
	assert.Equal(t, a.must(200, "GET", "/worlds/one/agents/"+agent+"/conversation", "").raw, b.must(200, "GET", "/worlds/one/agents/"+agent+"/conversation", "").raw)
	assert.Equal(t, "1m0s", b.must(200, "GET", w+"/clock", "").body["advanced"])
	assert.Contains(t, b.must(200, "GET", "/worlds/one/keys/key_000001/byok", "").raw, `"label":"\u003cl\u003e"`)
}

func TestReadStateRefuses(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/worlds", `{"name":"one"}`)
	file := written(t, a.server)
	for _, tt := range []struct{ old, now, want string }{
		{file, "", "body: is required"},
		{file, file[:len(file)-9], "body: must be one JSON document"},
		{file, `{"format":"agentmessaging-fake-state","version":1}`, "format: must be one of agentmessaging-fake-worlds"},
		{file, `[]`, "body: must be an object"},
		{`"version":1,"worlds"`, `"version":2,"worlds"`, "version: must be one of 1"},
		{`"name":"one"`, `"name":"one","odd":1`, `worlds[1]: member "odd" is not allowed`},
		{`"name":"one"`, `"name":"default"`, "worlds[1]: the name is there twice"},
		{`"name":"one"`, `"name":"a_b"`, "worlds[1].name: must be 1 to 63"},
		{`"state":{`, `"stat":{`, `worlds[0]: member "stat" is not allowed`},
		{`"name":"default"`, `"name":"other"`, "there is no world named default in it"},
		{`"label":"key_000001"`, `"label":"key_1"`, "worlds[0]: fakeserver: ReadState: the state is damaged: keys[0].label"},
	} {
		require.Contains(t, file, tt.old)
		assert.ErrorContains(t, a.server.ReadState([]byte(strings.Replace(file, tt.old, tt.now, 1))), tt.want)
	}
	badLimits := strings.Replace(file, `"name":"one","plan":"preview","limits":"plan"`, `"name":"one","plan":"preview","limits":"x"`, 1)
	assert.ErrorContains(t, a.server.ReadState([]byte(badLimits)), "worlds[1].limits: must be one of")
	assert.Equal(t, file, written(t, a.server), "nothing has changed")
}

func TestStateOfOneWorld(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", w+"/agents", `{"key":"key_000001","agent_id":"kept"}`)
	state := a.must(200, "GET", w+"/state", "").raw
	a.must(204, "POST", w+"/reset", "")
	a.must(204, "PUT", w+"/state", state)
	assert.Equal(t, "kept", a.must(200, "GET", w+"/agents/kept", "").text("agent_id"))
	a.do("PUT", w+"/state", `{"format":"another"}`).wantRefused(t, 400, "body: ")
}

// What only the program can do it is asked for.
func TestWhatTheProgramDoes(t *testing.T) {
	var problem error
	a := newAPI(t, control.Options{
		Save:   func() error { return problem },
		Refuse: func(d time.Duration) error { assert.Equal(t, time.Minute, d); return problem },
	})
	a.must(204, "POST", "/save", "")
	a.must(204, "POST", "/refuse", `{"duration":"1m"}`)
	a.do("POST", "/refuse", `{"duration":"2h"}`).wantRefused(t, 400, "duration: must be a duration such as")
	problem = errors.New("not now")
	a.do("POST", "/save", "").wantRefused(t, 500, "not now")
	a.do("POST", "/refuse", `{"duration":"1m"}`).wantRefused(t, 409, "not now")
	a = newAPI(t, control.Options{})
	a.do("POST", "/save", "").wantRefused(t, 409, "the program was started without --state")
	a.do("POST", "/refuse", `{"duration":"1m"}`).wantRefused(t, 409, "this program cannot refuse connections")
}
