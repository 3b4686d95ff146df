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

func TestState(t *testing.T) {
	a := newAPI(t, control.Options{Key: "cnry-service-key"})
	a.service("cnry-service-key", "PUT", "/v1/byok", `{"provider":"openai","api_key":"cnry-provider-key","label":"<l>"}`)
	agent := a.service("cnry-service-key", "POST", "/v1/agents", "{}").text("agent_id")
	a.service("cnry-service-key", "POST", "/v1/agents/"+agent+"/messages", `{"text":"<hello>"}`)
	a.must(200, "POST", "/clock", `{"duration":"1m"}`)
	file := written(t, a.server)
	assert.Equal(t, file, a.must(200, "GET", "/state", "").raw)
	assert.Contains(t, file, `"text":"<hello>"`)
	for _, secret := range []string{"cnry", "amk_"} {
		assert.NotContains(t, file, secret)
	}

	b := newAPI(t, control.Options{Limits: "off"})
	for _, read := range []func(){
		func() { require.NoError(t, b.server.ReadState(strings.NewReader(file))) },
		func() { b.must(204, "POST", "/reset", ""); b.must(204, "PUT", "/state", file) },
	} {
		read()
		assert.Equal(t, 200, b.service(b.server.Key(), "GET", "/v1/agents/"+agent, "").status)
		assert.Equal(t, a.must(200, "GET", "/agents/"+agent+"/conversation", "").raw, b.must(200, "GET", "/agents/"+agent+"/conversation", "").raw)
		assert.Equal(t, "1m0s", b.must(200, "GET", "/clock", "").body["advanced"])
		assert.Contains(t, b.must(200, "GET", "/keys/key_000001/byok", "").raw, `"label":"\u003cl\u003e"`)
	}
}

func TestReadStateRefuses(t *testing.T) {
	a := newAPI(t, control.Options{})
	a.must(201, "POST", "/agents", `{"key":"key_000001","agent_id":"kept"}`)
	file := written(t, a.server)
	damaged := strings.Replace(file, `"label":"key_000001"`, `"label":"key_1"`, 1)
	require.NotEqual(t, file, damaged)
	assert.ErrorContains(t, a.server.ReadState(strings.NewReader(damaged)), "the state is damaged, or was edited")
	a.do("PUT", "/state", `{"format":"another"}`).wantRefused(t, 400, "body: ")
	assert.Equal(t, file, written(t, a.server), "nothing has changed")
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
