package fakeserver

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Matcher picks calls, for OnMessage, Inject, Calls and others. The By
// functions and Where make matchers. Of several matchers all must match.
type Matcher struct {
	matches func(*entry) bool
	says    string // the matcher in messages, without texts and keys
}

// String describes the matcher without texts and keys.
func (m Matcher) String() string { return m.says }

// ByEndpoint matches calls to an endpoint. Anything but one of the Endpoint
// constants panics.
func ByEndpoint(endpoint Endpoint) Matcher {
	method, path, _ := strings.Cut(string(endpoint), " ")
	if spec.Find(method, path) == nil {
		misuse("ByEndpoint", "unknown endpoint %s; the Endpoint constants are all there are", quoteName(string(endpoint)))
	}
	return Matcher{
		matches: func(e *entry) bool { return e.call.Endpoint == endpoint },
		says:    "ByEndpoint(" + string(endpoint) + ")",
	}
}

// ByKey matches calls with this API key. The matcher keeps a hash of the key
// and not its text.
func ByKey(key string) Matcher {
	want := service.DigestOf(key)
	return Matcher{
		matches: func(e *entry) bool { return e.hasKey && e.token == want },
		says:    "ByKey(" + labelOf(key) + ")",
	}
}

// ByAgent matches calls whose path names this agent.
func ByAgent(agentID string) Matcher {
	recorded := mask.Clip(agentID, wire.MaxRecorded)
	return Matcher{
		matches: func(e *entry) bool { return e.call.AgentID == recorded },
		says:    "ByAgent(" + describeID(agentID) + ")",
	}
}

// ByText matches messages with exactly this text. It works on the real text,
// even if Calls shows it redacted.
func ByText(text string) Matcher {
	return Matcher{
		matches: func(e *entry) bool { return e.hasText && e.text == text },
		says:    fmt.Sprintf("ByText(%d characters)", utf8.RuneCountInString(text)),
	}
}

// ByTextContaining matches messages whose text contains part. It works on the
// real text, even if Calls shows it redacted.
func ByTextContaining(part string) Matcher {
	return Matcher{
		matches: func(e *entry) bool { return e.hasText && strings.Contains(e.text, part) },
		says:    fmt.Sprintf("ByTextContaining(%d characters)", utf8.RuneCountInString(part)),
	}
}

// Where matches the calls for which f returns true. f sees a call as Calls
// returns it: redacted, unless WithMessageTexts. Before the call is answered it
// has no Status and no ReplyBody. f runs without any lock, may call the fake,
// and may run concurrently. A nil f panics.
func Where(f func(Call) bool) Matcher {
	if f == nil {
		misuse("Where", "the function is nil")
	}
	return Matcher{
		matches: func(e *entry) bool { return f(e.copied()) },
		says:    "Where(" + caller() + ")",
	}
}

// caller is the line of the test that made a matcher, which names a function
// better than anything else.
func caller() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "a function"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// describeID quotes the identifier of an agent. Anything that does not look
// like one may be a key, and is not shown.
func describeID(id string) string {
	if !strings.HasPrefix(id, "agent_") {
		return mask.Withheld
	}
	return strings.Trim(quoteName(id), `"`)
}

func listed(matchers []Matcher) string {
	if len(matchers) == 0 {
		return "every call"
	}
	names := make([]string, len(matchers))
	for i, m := range matchers {
		names[i] = m.says
	}
	return strings.Join(names, ", ")
}

func matchesAll(matchers []Matcher, e *entry) bool {
	for _, m := range matchers {
		if !m.matches(e) {
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

func refusing(matchers []Matcher, e *entry) []Matcher {
	return slices.DeleteFunc(slices.Clone(matchers), func(m Matcher) bool { return passes(m, e) })
}

// passes asks a matcher. The test has failed already, so a matcher that panics
// only counts as a refusal.
func passes(m Matcher, e *entry) (matched bool) {
	defer func() { _ = recover() }()
	return m.matches(e)
}
