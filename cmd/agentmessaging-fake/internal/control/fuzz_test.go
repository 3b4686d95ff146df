package control_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
)

// Whatever is sent is answered as documented: a panic of the fake would end
// the test.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"plan":"pro","dashboard":false}`, wholeAgent, `{"plan":"free"}`, `{"available":false}`,
		`{"provider":"openai","api_key":"k"}`, `{"exchanges":[{"text":"a","reply_text":"b","time":"0000-01-01T00:00:00Z"}]}`,
		`{"text":"\ud83d\ude00"}`, `{"status":"active","phone_number":"+1"}`, `{"duration":"1h"}`,
		`{"replies":[{"text":"a"},{"status":429}],"match":{"text":""},"times":1,"chance":0.5,"seed":1}`,
		`{"fault":{"kind":"lose_reply","how":{"kind":"rate_limited","retry_after":"\t"}},"match":{"endpoint":"GET /v1/status"}}`,
		`{"fault":{"kind":"drip_reply","bytes":1,"every":"1ms"}}`, `{"fault":{"kind":"raw_answer","status":599,"content_type":"\u00ff"}}`,
	} {
		f.Add(body)
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
