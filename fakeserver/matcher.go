package fakeserver

import "strings"

// Matcher picks calls, for OnMessage and Calls. The By functions and Where
// make them; where several are given, all must match.
type Matcher struct {
	matches func(*record) bool
}

// ByEndpoint matches calls to an endpoint, one of the Endpoint constants. Any
// other panics.
func ByEndpoint(endpoint Endpoint) Matcher {
	for i := range routes {
		if routes[i].name == endpoint {
			return Matcher{func(r *record) bool { return r.call.Endpoint == endpoint }}
		}
	}
	misuse("ByEndpoint", "unknown endpoint %s; the Endpoint constants are those that exist", quoteName(string(endpoint)))
	return Matcher{}
}

// ByKey matches calls with this API key. The matcher keeps a digest of it.
func ByKey(key string) Matcher {
	want := digestOf(key)
	return Matcher{func(r *record) bool { return r.hasKey && r.token == want }}
}

// ByAgent matches calls whose path names this agent.
func ByAgent(agentID string) Matcher {
	return Matcher{func(r *record) bool { return r.call.AgentID == agentID }}
}

// ByText matches messages with exactly this text, also where Calls shows it
// redacted.
func ByText(text string) Matcher {
	return Matcher{func(r *record) bool { return r.hasText && r.text == text }}
}

// ByTextContaining matches messages with part in their text, also where Calls
// shows it redacted.
func ByTextContaining(part string) Matcher {
	return Matcher{func(r *record) bool { return r.hasText && strings.Contains(r.text, part) }}
}

// Where matches the calls for which f returns true. f sees a call as Calls
// returns it: redacted, unless WithMessageTexts. Before the call is answered
// it has no Status and no ReplyBody yet. f runs without any lock, may call the
// fake, and may be called concurrently. A nil f panics.
func Where(f func(Call) bool) Matcher {
	if f == nil {
		misuse("Where", "the function is nil")
	}
	return Matcher{func(r *record) bool { return f(r.copied()) }}
}

func matchesAll(matchers []Matcher, r *record) bool {
	for _, m := range matchers {
		if !m.matches(r) {
			return false
		}
	}
	return true
}

func checkMatchers(method string, matchers []Matcher) {
	for i, m := range matchers {
		if m.matches == nil {
			misuse(method, "matcher %d is the zero Matcher; ByEndpoint, ByKey, ByAgent, ByText, ByTextContaining and Where make matchers", i+1)
		}
	}
}
