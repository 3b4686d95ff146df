package contract

import (
	"slices"
	"strings"
)

// routeCases: whatever is not one of the nine is 404 by its path or 405 by
// its method, with the error body that every error has.
func routeCases() []testCase { return slices.Concat(pathCases(), methodCases()) }

func pathCases() []testCase {
	var cases []testCase
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/status", "/status", "/v1/Status", "/V1/status", "/v1/status/", "/v1//status",
		"/v1/agents/", "/v1/agents/a/", "/v1/agents//messages", "/v1/agents/a/messages/", "/v1/agents/a/messages/b",
		"/v1/agents/a/channels", "/v1/agents/a/channels/email", "/v1/agents/a/channels/sms/", "/v1/byok/x", "/v1/warmup/x",
	} {
		for _, method := range []string{"GET", "POST"} {
			cases = append(cases, testCase{
				ID: "fake/path-unknown/" + method + path, Rule: "order of checks: route 404, method 405 -> 401", Spends: Spend{Requests: 2},
				run: func(s *session) {
					unknown := endpoint{name: "unknown", method: method, path: path}
					s.call(unknown, "").is(404)
					s.with("Authorization", "").call(unknown, "").is(404)
				},
			})
		}
	}
	return append(cases, dotsCase(), testCase{
		ID: "7/agent-id-is-one-segment", Rule: "404 | Not found", Spends: Spend{Requests: 3},
		run: func(s *session) {
			for _, id := range []string{"a%2Fmessages", "%2e%2e%2fstatus", "%20"} {
				s.call(endpoint{name: "read-agent", method: "GET", path: "/v1/agents/" + id}, "").is(404)
			}
		},
	})
}

// dotsCase: a path is taken as it is sent. A service that cleans it first
// answers another call than the one that was made.
func dotsCase() testCase {
	return testCase{
		ID: "fake/path-with-dots", Rule: "order of checks: route 404, method 405 -> 401", Spends: Spend{Requests: 4},
		run: func(s *session) {
			for _, path := range []string{"/v1/agents/..", "/v1/agents/.", "/v1/agents/%2e%2e", "/v1/byok/../status"} {
				s.call(endpoint{name: "unknown", method: "GET", path: path}, "").is(404)
			}
		},
	}
}

// methodCases give each path the methods that it does not have. HEAD is left
// out: its answer has no body to look at.
func methodCases() []testCase {
	const rule = "order of checks: route 404, method 405 -> 401; an answer 405 names the methods in Allow (RFC 9110, 15.5.6)"
	var cases []testCase
	for _, e := range endpoints {
		allowed := methodsOf(e.path)
		for _, method := range []string{"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			if e.method != allowed[0] || slices.Contains(allowed, method) {
				continue // a path's cases are made once, for its first endpoint
			}
			cases = append(cases, testCase{
				ID: "fake/method/" + e.name + "/" + method, Rule: rule, Spends: Spend{Requests: 2},
				run: func(s *session) {
					e := endpoint{name: "unknown", method: method, path: e.of("agent-of-nobody").path}
					refused := s.call(e, "").is(405)
					for _, m := range allowed {
						refused.want(strings.Contains(refused.header.Get("Allow"), m), "Allow does not name %s", m)
					}
					s.with("Authorization", "").call(e, "").is(405)
				},
			})
		}
	}
	return cases
}

func methodsOf(path string) []string {
	var methods []string
	for _, e := range endpoints {
		if e.path == path {
			methods = append(methods, e.method)
		}
	}
	return methods
}
