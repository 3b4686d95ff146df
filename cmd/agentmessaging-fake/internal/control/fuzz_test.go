package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// Whatever is sent is answered as documented: a panic of the fake would end
// the test.
func FuzzBodies(f *testing.F) {
	steps := slices.Clone(refusals)
	for _, dialogue := range dialogues {
		steps = append(steps, dialogue...)
	}
	for _, s := range steps {
		f.Add(s.body)
	}
	for _, fault := range faultObjects {
		f.Add(`{"fault":` + fault[0] + `}`)
	}
	fill := strings.NewReplacer("{key}", "key_000001", "{agent_id}", "a", "{id}", "i", "{limit_key}", "key_day")
	f.Fuzz(func(t *testing.T, body string) {
		a := newAPI(t, control.Options{})
		a.play(step{"POST /agents", `{"key":"key_000001","agent_id":"a"}`, 201, ""})
		for _, route := range control.Routes() {
			if strings.HasPrefix(route, "GET ") || route == "POST /calls" || route == "POST /reset" { // a fault may hang a call
				continue
			}
			method, path, _ := strings.Cut(fill.Replace(route), " ")
			answered := a.send(method, "/_fake/v1"+path, body)
			assert.Contains(t, []int{200, 201, 204, 400, 404, 409, 413}, answered.status, route)
		}
		for _, path := range []string{"/keys", "/agents", "/replies", "/faults", "/clock"} {
			a.play(step{"GET " + path, "", 200, ""})
		}
	})
}
