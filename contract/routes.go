package contract

import (
	"slices"
	"strings"
)

const routing = "order of checks: route 404, method 405 -> 401"

func noRoute(method, path string) step {
	return repeat(1, at(method, path).is(404), at(method, path).is(404).keyless())
}

// routes: a path that is none of interface 4 is answered with 404, and with
// the error body that every error has.
func (s *suite) routes() {
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/status", "/status", "/v1/Status", "/V1/status", "/v1/status/", "/v1//status",
		"/v1/agents/", "/v1/agents/a/", "/v1/agents//messages", "/v1/agents/a/messages/", "/v1/agents/a/messages/b",
		"/v1/agents/a/channels", "/v1/agents/a/channels/email", "/v1/agents/a/channels/sms/", "/v1/byok/x", "/v1/warmup/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			s.rule("fake/path-unknown/"+method+path, routing, noRoute(method, path))
		}
	}
	read := func(id string) step { return at("GET", "/v1/agents/"+id).is(404) }
	// A path is taken as it is sent. A service that cleans it first answers
	// another call than the one that was made.
	s.rule("fake/path-with-dots", routing,
		noRoute("GET", "/v1/agents/.."), noRoute("GET", "/v1/agents/."), read("%2e%2e"), noRoute("GET", "/v1/byok/../status"))
	s.rule("7/agent-id-is-one-segment", "404 | Not found", read("a%2Fmessages"), read("%2e%2e%2fstatus"), read("%20"))
}

// methods: a path has no other methods than those of interface 4. HEAD is left
// out: its answer has no body to look at.
func (s *suite) methods() {
	has := map[string][]string{}
	for _, e := range endpoints {
		has[e.path] = append(has[e.path], e.method)
	}
	for _, e := range endpoints {
		methods := has[e.path]
		delete(has, e.path) // a path's cases are made once, for its first endpoint
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			if methods == nil || slices.Contains(methods, method) {
				continue
			}
			unknown := at(method, e.of(noAgent).path).is(405)
			s.rule("fake/method/"+e.name+"/"+method, routing+"; an answer 405 names the methods in Allow (RFC 9110, 15.5.6)",
				unknown.check(allows(methods)), unknown.keyless())
		}
	}
}

func allows(methods []string) func(answer) string {
	return func(a answer) string {
		named := strings.Split(strings.ReplaceAll(a.header.Get("Allow"), " ", ""), ",")
		return unless(slices.Equal(slices.Sorted(slices.Values(named)), slices.Sorted(slices.Values(methods))), "Allow names %v, not %v", named, methods)
	}
}
