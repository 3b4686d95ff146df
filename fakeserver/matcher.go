package fakeserver

import (
	"fmt"
	"hash/maphash"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Matcher picks calls, for OnMessage, Inject, Calls and others. The By
// functions and Where make matchers. Of several matchers all must match.
type Matcher struct {
	matches func(*record) bool
	says    string // the matcher in messages, without texts and keys
	hook    hook   // the one thing that the matcher names; zero if it names none
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
		matches: func(r *record) bool { return r.call.Endpoint == endpoint },
		says:    "ByEndpoint(" + string(endpoint) + ")",
		hook:    hookOf(byEndpoint, string(endpoint)),
	}
}

// ByKey matches calls with this API key. The matcher keeps a hash of the key
// and not its text.
func ByKey(key string) Matcher {
	want := digestOf(key)
	return Matcher{
		matches: func(r *record) bool { return r.hasKey && r.token == want },
		says:    "ByKey(" + labelOf(key) + ")",
		hook:    keyHook(want),
	}
}

// ByAgent matches calls whose path names this agent.
func ByAgent(agentID string) Matcher {
	recorded := mask.Clip(agentID, maxRecorded)
	return Matcher{
		matches: func(r *record) bool { return r.call.AgentID == recorded },
		says:    "ByAgent(" + describeID(agentID) + ")",
		hook:    hookOf(byAgent, recorded),
	}
}

// ByText matches messages with exactly this text. It works on the real text,
// even if Calls shows it redacted.
func ByText(text string) Matcher {
	return Matcher{
		matches: func(r *record) bool { return r.hasText && r.text == text },
		says:    fmt.Sprintf("ByText(%d characters)", utf8.RuneCountInString(text)),
		hook:    hookOf(byText, text),
	}
}

// ByTextContaining matches messages whose text contains part. It works on the
// real text, even if Calls shows it redacted.
func ByTextContaining(part string) Matcher {
	return Matcher{
		matches: func(r *record) bool { return r.hasText && strings.Contains(r.text, part) },
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
		matches: func(r *record) bool { return f(r.copied()) },
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

// hook is one thing that a rule names, such as an agent. A call has five hooks,
// and only the rules under those hooks are asked. Rules that name nothing have
// the zero hook.
type hook struct {
	kind hookKind
	sum  uint64 // a hash, since the name may be a key or a message; the matcher compares the name itself
}

var hookSeed = maphash.MakeSeed()

func hookOf(kind hookKind, name string) hook { return hook{kind, maphash.String(hookSeed, name)} }

func keyHook(d digest) hook { return hook{byKey, maphash.Bytes(hookSeed, d[:])} }

type hookKind byte

// The kinds of hooks. Behind a later kind there are usually fewer calls.
const (
	byEndpoint hookKind = iota + 1
	byKey
	byAgent
	byText
)

func refusing(matchers []Matcher, rec *record) []Matcher {
	return slices.DeleteFunc(slices.Clone(matchers), func(m Matcher) bool { return passes(m, rec) })
}

// passes asks a matcher. The test has failed already, so a matcher that panics
// only counts as a refusal.
func passes(m Matcher, rec *record) (matched bool) {
	defer func() { _ = recover() }()
	return m.matches(rec)
}
