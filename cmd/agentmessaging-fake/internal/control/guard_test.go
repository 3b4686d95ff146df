package control_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/control"
	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
)

// A name that an attacker's site resolves to 127.0.0.1 reaches nothing.
func TestHost(t *testing.T) {
	a := newAPI(t, control.Options{})
	for host, want := range map[string]int{
		"127.0.0.1:8460": 200, "127.0.0.1": 200, "127.9.9.9": 200, "localhost:1": 200, "LOCALHOST": 200, "localhost.:80": 200,
		"app.localhost": 200, "[::1]:8460": 200, "[::1]": 200, "[::ffff:127.0.0.1]:1": 200,
		"evil.example": 403, "evil.example:8460": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
		"notlocalhost": 403, "192.168.0.1:8460": 403, "0.0.0.0:8460": 403, "": 403, "[::2]:1": 403, "2130706433": 403,
	} {
		assert.Equal(t, want, a.do("GET", "/info", "", "Host: "+host).status, host)
		assert.Equal(t, want, a.send("GET", "/v1/status", "", "Host: "+host, "Authorization: Bearer "+a.server.Key()).status, "the service: %s", host)
	}
	a.do("GET", "/info", "", "Host: evil.example").wantRefused(t, 403, "Host: must be a loopback name or address; with --allow-remote, any")
	assert.Empty(t, a.must(200, "GET", "/calls?status=403", "").list("calls"), "a refused call does not reach the fake")
}

func TestOrigin(t *testing.T) {
	a := newAPI(t, control.Options{})
	for origin, want := range map[string]int{
		"http://127.0.0.1:8460": 204, "https://127.0.0.1:8460": 204, "HTTP://127.0.0.1:8460": 204,
		"http://127.0.0.1": 403, "http://127.0.0.1:3000": 403, "http://localhost:8460": 403, "http://evil.example": 403,
		"null": 403, "127.0.0.1:8460": 403, "": 403, "://": 403, "http://evil.example/127.0.0.1:8460": 403,
	} {
		assert.Equal(t, want, a.do("POST", "/reset", "", "Origin: "+origin).status, origin)
	}
	for site, want := range map[string]int{"same-origin": 204, "none": 204, "": 204, "same-site": 403, "cross-site": 403, "odd": 403} {
		assert.Equal(t, want, a.do("POST", "/reset", "", "Sec-Fetch-Site: "+site).status, site)
	}
	a.do("GET", "/info", "", "Origin: null").wantRefused(t, 403, "Origin: must be the program's own")
	assert.Empty(t, a.do("GET", "/info", "", "Origin: http://127.0.0.1:8460").header.Get("Access-Control-Allow-Origin"))
}

func TestToken(t *testing.T) {
	const token = "a-token-of-16-or-more"
	a := newAPI(t, control.Options{Guard: jsonapi.Guard{Token: token}})
	for header, want := range map[string]int{
		"Authorization: Bearer " + token: 200, "Authorization: bearer  " + token: 200,
		"Authorization: Bearer " + token + "x": 401, "Authorization: Bearer " + token[:20]: 401, "Authorization: Basic " + token: 401,
		"Authorization: " + token: 401, "Authorization: Bearer ": 401, "X-Token: " + token: 401, "Authorization: Bearer " + a.server.Key(): 401,
	} {
		assert.Equal(t, want, a.do("GET", "/info", "", header).status, header)
	}
	assert.Regexp(t, `^{"version":"","base_url":"","started_at":"20[^"]+","remote":false,"key":"amk_fake_000001"}\s$`, a.do("GET", "/info", "", "Authorization: Bearer "+token).raw)
	refused := a.do("GET", "/info", "")
	refused.wantRefused(t, 401, "Bearer, a space, and the token")
	assert.Equal(t, "Bearer", refused.header.Get("WWW-Authenticate"))
	assert.NotContains(t, refused.raw, token)
	a.do("GET", "/no/such", "").wantRefused(t, 401, "")
	assert.Equal(t, 200, a.service(a.server.Key(), "GET", "/v1/status", "").status, "the service needs its keys only")
}

// What a form of another site can send.
func TestContentType(t *testing.T) {
	a := newAPI(t, control.Options{})
	for kind, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON;charset=UTF-8": 201,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data": 415, "": 415, "application/json; charset=latin1": 415, `application/json; charset=""`: 415,
		"application/jsonp": 415, "application/json, text/plain": 415,
	} {
		assert.Equal(t, want, a.do("POST", "/keys", "{}", "Content-Type: "+kind).status, kind)
	}
	a.do("POST", "/keys", "{}", "Content-Type: text/plain").wantRefused(t, 415, "Content-Type: must be application/json")
}

func TestHeadersOfAnswers(t *testing.T) {
	for _, path := range []string{"/openapi.yaml", "/none"} {
		h := newAPI(t, control.Options{}).do("GET", path, "").header
		assert.Equal(t, []string{"no-store", "nosniff"}, []string{h.Get("Cache-Control"), h.Get("X-Content-Type-Options")})
	}
}

// What every route refuses, at each of them.
func TestEveryRouteRefuses(t *testing.T) {
	a := newAPI(t, control.Options{Guard: jsonapi.Guard{Token: "a-token-of-16-or-more"}})
	const known = "Authorization: Bearer a-token-of-16-or-more"
	fill := strings.NewReplacer("{key}", "k", "{limit_key}", "key_day", "{agent_id}", "a", "{id}", "i", "{seq}", "1")
	for _, r := range control.Routes() {
		method, path, _ := strings.Cut(fill.Replace(r), " ")
		for _, tt := range []struct {
			want        int
			query, body string
			header      []string
		}{
			{401, "", "", nil},
			{403, "", "", []string{"Origin: http://evil.example"}},
			{403, "", "", []string{"Host: evil.example"}},
			{400, "?odd=1", "", []string{known}},
			{413, "", strings.Repeat(" ", 1<<20+1), []string{known}},
			{415, "", "x", []string{known, "Content-Type: text/plain"}},
		} {
			assert.Equal(t, tt.want, a.send(method, "/_fake/v1"+path+tt.query, tt.body, tt.header...).status, r)
		}
	}
}

func TestNotFound(t *testing.T) {
	a := newAPI(t, control.Options{})
	for _, tt := range [][3]string{
		{"GET", "", "no route has this method and path"},
		{"GET", "/info/", "no route has this method and path"},
		{"GET", "//info", "no route has this method and path"},
		{"PUT", "/keys", "no route has this method and path"},
		{"GET", "/keys/key_000002", "no key has this label, such as key_000001; GET keys lists them"},
		{"PATCH", "/keys/amk_fake_000001", "no key"},
		{"GET", "/agents/x", "no agent"},
		{"PUT", "/agents/x/sms", "no agent"},
		{"DELETE", "/replies/reply_000001", "no reply has this id"},
		{"DELETE", "/faults/fault_000001", "no fault has this id"},
	} {
		body := ""
		if tt[0] == "PUT" || tt[0] == "PATCH" {
			body = "{}"
		}
		a.do(tt[0], tt[1], body).wantRefused(t, 404, tt[2])
	}
	a.do("POST", "/keys/key_000001/limits/key_hour/exhaust", "").wantRefused(t, 400, "Exhaust: unknown limit; the limits are key_minute, ip_minute")
}
