package fakeserver

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Matcher picks calls, for OnMessage, Inject, Calls and others. The By
// functions and Where make matchers. Where several matchers are given, all must
// match. The zero Matcher panics where it is used.
type Matcher struct {
	matches func(*entry) bool
	name    string // the Go call that made it, without texts and keys
	// nameWithText returns the name with the text of ByText or ByTextContaining; nil for the
	// other matchers. It is a function, so that a Matcher that is printed with %#v does not
	// show the text.
	nameWithText func() string
}

// String returns the Go call that made the matcher, without texts and keys.
func (m Matcher) String() string { return m.name }

// ByEndpoint matches calls to an endpoint. Anything but one of the Endpoint
// constants panics.
func ByEndpoint(endpoint Endpoint) Matcher {
	method, path, _ := strings.Cut(string(endpoint), " ")
	if spec.Find(method, path) == nil {
		misuse("ByEndpoint", "unknown endpoint %s; the endpoints are %s", quoteName(string(endpoint)), spec.EndpointNames())
	}
	return Matcher{
		matches: func(e *entry) bool { return e.record.Endpoint == endpoint },
		name:    "ByEndpoint(" + string(endpoint) + ")",
	}
}

// ByKey matches calls with this API key. A key that no fake issued matches too,
// if a call has it. The matcher keeps a hash of the key and not its text.
func ByKey(key string) Matcher {
	want := service.DigestOf(key)
	return Matcher{
		matches: func(e *entry) bool { return e.token == want },
		name:    "ByKey(" + labelFromText(key) + ")",
	}
}

// labelFromText computes the label of a key from its text, for fakes without WithKey. Any
// other text may be a real key, so it is not shown. If a test gives WithKey a text of
// this form, messages show a wrong label for the key.
func labelFromText(key string) string {
	if ours := keyPattern.FindStringSubmatch(key); ours != nil {
		return "key" + ours[1]
	}
	return mask.Withheld
}

// keyPattern matches the text of a key, and its number.
var keyPattern = regexp.MustCompile(`^` + fakenames.KeyPrefix + `(_\d{6,9})$`)

// ByAgent matches calls whose path names this agent. An empty identifier, which no path
// can name, panics.
func ByAgent(agentID string) Matcher {
	if agentID == "" {
		misuse("ByAgent", "the identifier is empty")
	}
	recorded := printable.Clip(agentID, wire.MaxRecorded)
	return Matcher{
		matches: func(e *entry) bool { return e.record.AgentID == recorded },
		name:    "ByAgent(" + describeID(agentID) + ")",
	}
}

// describeID quotes the identifier of an agent. Anything that does not look
// like one may be a key, and is not shown.
func describeID(id string) string {
	if !strings.HasPrefix(id, "agent_") {
		return mask.Withheld
	}
	return strings.Trim(quoteName(id), `"`)
}

// ByText matches messages with exactly this text. It works on the real text,
// even if Calls shows it redacted.
func ByText(text string) Matcher {
	return textMatcher("ByText", text, func(sent string) bool { return sent == text })
}

// ByTextContaining matches messages whose text contains part. It works on the
// real text, even if Calls shows it redacted.
func ByTextContaining(part string) Matcher {
	return textMatcher("ByTextContaining", part, func(sent string) bool { return strings.Contains(sent, part) })
}

// textMatcher makes a matcher of the texts of messages. With WithMessageTexts, the fake's
// own messages show the matcher's text, unless it looks like a key.
func textMatcher(method, text string, matches func(string) bool) Matcher {
	m := Matcher{
		matches: func(e *entry) bool { return e.hasText && matches(e.text) },
		name:    method + "(" + characters(text) + ")",
	}
	if !mask.LooksSecret(text) {
		m.nameWithText = func() string { return method + "(" + strconv.Quote(printable.Line(text, maxShown)) + ")" }
	}
	return m
}

// Where matches the calls for which f returns true. f sees a call as Calls
// returns it: redacted, unless WithMessageTexts. Before the call is answered it
// has no Status and no ReplyBody. Each f gets a copy that it may keep and change.
// f may call the fake, and may run concurrently. A nil f panics.
func Where(f func(Call) bool) Matcher {
	if f == nil {
		misuse("Where", "the function is nil")
	}
	return Matcher{
		matches: func(e *entry) bool { return f(e.snapshot()) },
		name:    "Where(" + callerLine(2) + ")",
	}
}

// callerLine returns the file and line of a call in the test, by which messages name a
// function or a rule. calls counts the frames: 1 is the call of callerLine, 2 the call of
// the function that calls callerLine, and so on.
func callerLine(calls int) string {
	_, file, line, _ := runtime.Caller(calls)
	return fmt.Sprintf("%s:%d", filepath.Base(file), line)
}

// namesOf names matchers for a message; "" for none. WithMessageTexts shows their texts.
func (c *config) namesOf(matchers []Matcher) string {
	names := make([]string, len(matchers))
	for i, m := range matchers {
		names[i] = m.name
		if c.messageTexts && m.nameWithText != nil {
			names[i] = m.nameWithText()
		}
	}
	return strings.Join(names, ", ")
}

// matchesAll reports whether all matchers match a call. It runs callbacks of the test, so the
// lock must not be held.
func matchesAll(matchers []Matcher, e *entry) bool {
	for _, m := range matchers {
		if !m.matches(e) {
			return false
		}
	}
	return true
}

// checkMatchers panics for a zero Matcher, which has no function to call.
func checkMatchers(method string, matchers []Matcher) {
	for i, m := range matchers {
		if m.matches == nil {
			misuse(method, "matcher %d is the zero Matcher; ByEndpoint, ByKey, ByAgent, ByText, ByTextContaining and Where make matchers", i+1)
		}
	}
}

// rule is the common part of a Script and an Injection: which calls match, on which of these it
// acts, and what it does. The fields before serverLock never change.
type rule struct {
	name        string // the Go call that made it, without keys, and with texts only by WithMessageTexts
	at          string // the line of the test that made it
	matchers    []Matcher
	fault       *fault      // of an Injection; nil for a Script
	*serverLock             // the fake's lock; guards the fields below
	list        *[]*rule    // the list of the generation that holds the rule
	steps       []step      // of a Script
	matched     int         // the calls that matched, even if another rule acted on them
	hits        int         // the calls that the rule acted on
	nth         int         // acts only on this match; 0 means any match
	from        int         // acts only from this match on; 0 means the first
	times       int         // the largest number of calls to act on; 0 means no limit
	chance      func() bool // decides each match, by its seed alone; nil means always
	odds        string      // the call of Chance in messages; "" means none
	required    bool
	removed     bool
}

// step is one reply of a script: a text, or f if it is set. The zero step is
// the default reply.
type step struct {
	text    *string
	f       func(Message) Reply
	rule    *rule    // the script, for messages
	message *Message // for f
}

// Format prints the Go call that made the rule, with Nth, From, Times and Chance, for
// every verb. It shows no keys, and texts only if the fake has WithMessageTexts.
func (r *rule) Format(f fmt.State, _ rune) {
	unlocked := r.snapshot()
	_, _ = io.WriteString(f, unlocked.description())
}

// snapshot returns a copy of the rule, since other calls may match the rule meanwhile.
func (r *rule) snapshot() rule {
	defer r.lock().Unlock()
	return *r
}

// description returns the text that Format prints. It takes no lock, so r must be a
// snapshot.
func (r *rule) description() string {
	text := r.name
	for _, bound := range []struct {
		method string
		n      int
	}{{"Nth", r.nth}, {"From", r.from}, {"Times", r.times}} {
		if bound.n > 0 {
			text += fmt.Sprintf(".%s(%d)", bound.method, bound.n)
		}
	}
	return text + r.odds
}

// callbackName names a callback of the rule for a message, such as "the ReplyFunc of
// OnMessage() at bot_test.go:12".
func (r *rule) callbackName(callback string) string {
	return fmt.Sprintf("%s of %v at %s", callback, r, r.at)
}

// addToLocked puts the rule into a list of a generation, and remembers the list for
// Remove.
func (r *rule) addToLocked(list *[]*rule) {
	r.list = list
	*list = append(*list, r)
}

// countMatchLocked counts a call that matched, and reports whether the rule acts on the
// call. It calls chance for every match, even if nth, from or times exclude the call, so
// that the n-th decision of a seed always belongs to the n-th match.
func (r *rule) countMatchLocked() bool {
	if r.removed {
		return false
	}
	r.matched++
	drawn := r.chance == nil || r.chance()
	return drawn && (r.nth == 0 || r.matched == r.nth) && r.matched >= r.from && (r.times == 0 || r.hits < r.times)
}

// countHitLocked counts a call that the rule acts on. After the last call that Times
// allows, it takes the rule from the list, so that no later call runs its matchers.
func (r *rule) countHitLocked() {
	if r.hits++; r.hits == r.times {
		*r.list = without(*r.list, r)
	}
}

// setNumber sets Times, Nth or From, for both kinds of rule. number is the field of the
// rule. An Nth below From panics, since the rule would never act.
func (r *rule) setNumber(method string, n int, number *int) {
	if n < 1 {
		misuse(method, "%d is less than 1", n)
	}
	defer r.lock().Unlock()
	before := *number
	*number = n
	if r.nth > 0 && r.from > r.nth {
		nth, from := r.nth, r.from
		*number = before // a test may recover and go on with the rule
		misuse(method, "Nth(%d) and From(%d) never act together", nth, from)
	}
	if r.times > 0 && r.hits >= r.times { // it has ended, and a later Times does not start it again
		*r.list = without(*r.list, r)
	}
}

// setChance makes the rule act with probability p. Its random numbers depend on the
// seed alone, so a test that fails can be repeated.
func (r *rule) setChance(p float64, seed uint64) {
	if !(p >= 0 && p <= 1) { // written this way, the condition refuses NaN too
		misuse("Chance", "%v is not between 0 and 1", p)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	defer r.lock().Unlock()
	r.chance, r.odds = func() bool { return random.Float64() < p }, fmt.Sprintf(".Chance(%v, %d)", p, seed)
}

// require makes the rule fail the test if it is never used.
func (r *rule) require() {
	defer r.lock().Unlock()
	r.required = true
}

// Hits returns how many calls the rule has acted on.
func (r *rule) Hits() int {
	defer r.lock().Unlock()
	return r.hits
}

// Remove ends the rule, which is then no longer Required. A call that the rule already
// acts on goes on unchanged. A second Remove does nothing.
func (r *rule) Remove() {
	defer r.lock().Unlock()
	r.removed = true
	*r.list = without(*r.list, r)
}

// without returns a copy of a list without one of its items.
func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == item })
}

// nearMiss names the call that the most matchers of a rule matched, and the matchers that
// refused it. If several calls are equally near, it takes the last.
func (r *rule) nearMiss(c *config, entries []*entry) string {
	var nearest *entry
	var refused []Matcher
	for _, e := range slices.Backward(entries) {
		if r.fault == nil && e.record.Endpoint != EndpointSendMessage {
			continue
		}
		refusing := slices.DeleteFunc(slices.Clone(r.matchers), func(m Matcher) bool { return m.matchesSafely(e) })
		if nearest == nil || len(refusing) < len(refused) {
			nearest, refused = e, refusing
		}
	}
	switch {
	case nearest == nil:
		return "no call came near"
	case len(refused) > 0:
		return fmt.Sprintf("nearest: %s, not matched by %s", nearest.snapshot(), c.namesOf(refused))
	}
	return fmt.Sprintf("nearest: %s, which matches: %s", nearest.snapshot(), r.whyUnused(nearest.snapshot()))
}

// matchesSafely reports false if the matcher itself fails, for use after the test has
// failed. A matcher with require ends its goroutine, so it must not run on the caller's.
func (m Matcher) matchesSafely(e *entry) (matched bool) {
	runOnGoroutine(func() { matched = m.matches(e) }, func(any) {})
	return matched
}

// runOnGoroutine runs f on a separate goroutine. If f does not return, the goroutine calls
// failed before it ends; panicked is nil if f ended its goroutine.
func runOnGoroutine(f func(), failed func(panicked any)) {
	ended, returned := make(chan struct{}), false
	go func() {
		defer close(ended)
		defer func() {
			if panicked := recover(); !returned {
				failed(panicked)
			}
		}()
		f()
		returned = true
	}()
	<-ended
}

// whyUnused says why a rule has not acted, although its matchers match call c. A script
// counts only messages that the service has accepted. No rule counts a call that came
// before the rule was made, or whose connection another rule refused.
func (r *rule) whyUnused(c Call) string {
	isScript := r.fault == nil
	switch {
	case r.matched == 0 && c.Fault != "" && (c.Sent.Broke == brokeRefused || isScript && c.Status == 0):
		return c.Fault + " took the call before it reached the service"
	case r.matched == 0 && isScript && c.Status != http.StatusOK:
		return "the service refused it, or it came before the rule was made"
	case r.matched == 0 && !isScript && r.fault.phase == beforeConnecting:
		return "it came over a socket or before the rule was made, or its body cannot be seen yet"
	case r.matched == 0:
		return "it came before the rule was made"
	case r.matched < max(r.nth, r.from):
		return fmt.Sprintf("the rule waits for match %d", max(r.nth, r.from))
	case r.nth > 0:
		return fmt.Sprintf("another rule acted on match %d", r.nth)
	case r.chance != nil:
		return "Chance ruled out the calls that it matched, or another rule acted on them"
	}
	return "another rule acted on the calls that it matched"
}
