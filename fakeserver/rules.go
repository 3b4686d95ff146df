package fakeserver

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Matcher picks calls, for OnMessage, Inject, Calls and others. The By
// functions and Where make matchers. Where several matchers are given, all must
// match. The zero Matcher panics where it is used.
type Matcher struct {
	matches func(*entry) bool
	name    string // the Go call that made it, without texts and keys
	// nameWithText returns the name with the text of ByText or ByTextContaining; nil for
	// the other matchers. It is a function, since a Matcher may be printed with %#v.
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
		matches: func(e *entry) bool { return e.call.Endpoint == endpoint },
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

// ByAgent matches calls whose path names this agent. An empty identifier, which no path
// can name, panics.
func ByAgent(agentID string) Matcher {
	if agentID == "" {
		misuse("ByAgent", "the identifier is empty")
	}
	recorded := mask.Clip(agentID, wire.MaxRecorded)
	return Matcher{
		matches: func(e *entry) bool { return e.call.AgentID == recorded },
		name:    "ByAgent(" + describeID(agentID) + ")",
	}
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

// textMatcher makes a matcher of the texts of messages. A message of the fake names it
// with its own text if WithMessageTexts is set, unless the text looks like a key.
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
		matches: func(e *entry) bool { return f(e.copied()) },
		name:    "Where(" + callerLine(2) + ")",
	}
}

// callerLine returns the file and line of a call in the test, by which messages name a
// function or a rule. With calls 1 that is the call of callerLine, with 2 the call of the
// function around it, and so on.
func callerLine(calls int) string {
	_, file, line, _ := runtime.Caller(calls)
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

// describe names matchers for a message; "" for none. WithMessageTexts shows their texts.
func (s *Server) describe(matchers []Matcher) string {
	names := make([]string, len(matchers))
	for i, m := range matchers {
		if names[i] = m.name; s.config.messageTexts && m.nameWithText != nil {
			names[i] = m.nameWithText()
		}
	}
	return strings.Join(names, ", ")
}

// matchesAll reports whether all matchers match a call. It runs functions of the test,
// so the lock must not be held.
func matchesAll(matchers []Matcher, e *entry) bool {
	for _, m := range matchers {
		if !m.matches(e) {
			return false
		}
	}
	return true
}

// checkMatchers panics for a zero Matcher, which has no function to ask.
func checkMatchers(method string, matchers []Matcher) {
	for i, m := range matchers {
		if m.matches == nil {
			misuse(method, "matcher %d is the zero Matcher; ByEndpoint, ByKey, ByAgent, ByText, ByTextContaining and Where make matchers", i+1)
		}
	}
}

// rule is a Script or an Injection: which calls it is for, at which of them it acts,
// and what it does. The fields up to server never change; the server's lock guards the
// others.
type rule struct {
	method   string // OnMessage or Inject
	name     string // the Go call that made it, without keys, and with texts only by WithMessageTexts
	at       string // the line of the test that made it
	matchers []Matcher
	fault    *wire.Fault // of an Injection
	server   *Server     // whose lock guards what follows
	list     *[]*rule    // the list of the generation that holds the rule
	steps    []step      // of a Script
	matched  int         // the calls that matched, even if another rule acted on them
	hits     int         // the calls that the rule acted on
	nth      int         // acts only at this match; 0 means at any
	from     int         // acts only from this match on; 0 means from the first
	times    int         // acts at most so often; 0 means without end
	chance   func() bool // depends only on its seed; nil means always
	odds     string      // the call of Chance in messages; "" means none
	required bool
	removed  bool
}

// Format prints the Go call that made it, with Nth, From, Times and Chance, for every
// verb, without keys, and with texts only if the fake has WithMessageTexts.
func (r *rule) Format(f fmt.State, _ rune) {
	unlocked := r.snapshot()
	_, _ = io.WriteString(f, unlocked.description())
}

// snapshot returns a copy, since other calls may match the rule meanwhile.
func (r *rule) snapshot() rule {
	defer r.server.lock().Unlock()
	return *r
}

// description returns what Format prints. It takes no lock, so r must be a snapshot.
func (r *rule) description() string {
	said := r.name
	for _, bound := range []struct {
		method string
		n      int
	}{{"Nth", r.nth}, {"From", r.from}, {"Times", r.times}} {
		if bound.n > 0 {
			said += fmt.Sprintf(".%s(%d)", bound.method, bound.n)
		}
	}
	return said + r.odds
}

// newRule makes a rule. fault is the name of the fault of an Injection, "" for a Script.
// It must be called by the method that the test has called, whose caller callerLine names.
func newRule(s *Server, method, fault string, matchers []Matcher) *rule {
	checkMatchers(method, matchers)
	args := []string{fault, s.describe(matchers)}
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "" })
	return &rule{
		server: s, method: method, name: method + "(" + strings.Join(args, ", ") + ")", at: callerLine(3),
		matchers: slices.Clone(matchers),
	}
}

// addToLocked puts the rule into a list of a generation, and remembers the list for
// Remove.
func (r *rule) addToLocked(list *[]*rule) {
	r.list = list
	*list = append(*list, r)
}

// countMatchLocked counts a call that matched, and reports whether the rule acts on it.
// It calls chance for every match, even where nth, from or times rule the call out. So
// the n-th decision of a seed always belongs to the n-th match.
func (r *rule) countMatchLocked() bool {
	if r.removed {
		return false
	}
	r.matched++
	drawn := r.chance == nil || r.chance()
	return drawn && (r.nth == 0 || r.matched == r.nth) && r.matched >= r.from && (r.times == 0 || r.hits < r.times)
}

// countHitLocked counts a call that the rule acts on. A rule that has acted as often as it
// may is taken from the list, so that no later call asks its matchers.
func (r *rule) countHitLocked() {
	if r.hits++; r.hits == r.times {
		*r.list = without(*r.list, r)
	}
}

// setNumber sets Times, Nth or From, for both kinds of rule. number is the field of the
// rule. An Nth below From panics, since the rule would never act.
func (r *rule) setNumber(method string, n int, number *int) {
	if n < 1 {
		misuse(method, "%d is less than 1; the first call is 1", n)
	}
	defer r.server.lock().Unlock()
	*number = n
	if r.nth > 0 && r.from > r.nth {
		misuse(method, "Nth(%d) and From(%d) never act together", r.nth, r.from)
	}
}

// setChance makes the rule act with probability p. Its random numbers depend on the
// seed alone, so a test that fails can be repeated.
func (r *rule) setChance(p float64, seed uint64) {
	if !(p >= 0 && p <= 1) { // in this form it refuses NaN too
		misuse("Chance", "%v is not between 0 and 1", p)
	}
	random := rand.New(rand.NewPCG(seed, 0))
	defer r.server.lock().Unlock()
	r.chance, r.odds = func() bool { return random.Float64() < p }, fmt.Sprintf(".Chance(%v, %d)", p, seed)
}

// require makes the rule fail the test if it is never used.
func (r *rule) require() {
	defer r.server.lock().Unlock()
	r.required = true
}

// Hits returns how many calls the rule has acted on.
func (r *rule) Hits() int {
	defer r.server.lock().Unlock()
	return r.hits
}

// Remove ends the rule; if it was Required, it no longer is. A call that it acts on
// already goes on unchanged. Removing it again does nothing.
func (r *rule) Remove() {
	defer r.server.lock().Unlock()
	r.removed = true
	*r.list = without(*r.list, r)
}

// without returns a copy of a list without one of its items.
func without[T comparable](list []T, item T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(other T) bool { return other == item })
}

// reportUnused reports the required rules that were never used, scripts first, each in
// its own sentence with the call that came nearest.
func (s *Server) reportUnused(reportf func(format string, args ...any)) {
	for _, r := range s.unusedRules() {
		reportf("%s at %s is required and was never used; calls that it matched: %d; %s", r.description(), r.at, r.matched, r.nearMiss(s.kept()))
	}
}

// unusedRules returns copies, since other calls may match the rules meanwhile.
func (s *Server) unusedRules() (unused []rule) {
	defer s.lock().Unlock()
	for _, r := range slices.Concat(s.gen.scripts, s.gen.injections, s.gen.refusals) {
		if r.required && r.hits == 0 {
			unused = append(unused, *r)
		}
	}
	return unused
}

// nearMiss names the call that the most matchers of a rule matched, and the
// matchers that refused it. Of equally near calls it takes the last.
func (r *rule) nearMiss(entries []*entry) string {
	var nearest *entry
	var refused []Matcher
	for _, e := range slices.Backward(entries) {
		if r.method == "OnMessage" && e.call.Endpoint != EndpointSendMessage {
			continue
		}
		refusing := slices.DeleteFunc(slices.Clone(r.matchers), func(m Matcher) (matched bool) {
			defer func() { _ = recover() }() // the test has failed already: a panic only counts as a refusal
			return m.matches(e)
		})
		if nearest == nil || len(refusing) < len(refused) {
			nearest, refused = e, refusing
		}
	}
	switch {
	case nearest == nil:
		return "no call came near"
	case len(refused) > 0:
		return fmt.Sprintf("nearest: %s, not matched by %s", nearest.copied(), r.server.describe(refused))
	}
	return fmt.Sprintf("nearest: %s, which matches: %s", nearest.copied(), r.whyUnused(nearest.copied()))
}

// whyUnused says why a rule has not acted, although its matchers match call c. A script
// counts only messages that the service has accepted. No rule counts a call that came
// before it was made, or whose connection another rule refused.
func (r *rule) whyUnused(c Call) string {
	isScript := r.method == "OnMessage"
	switch {
	case r.matched == 0 && c.Fault != "" && (c.Sent.Broke == brokeRefused || isScript && c.Status == 0):
		return c.Fault + " took the call before it reached the service"
	case r.matched == 0 && isScript && c.Status != http.StatusOK:
		return "the service refused it, or it came before the rule was made"
	case r.matched == 0 && !isScript && r.fault.Phase == wire.BeforeConnecting:
		return "it came over a socket, or before the rule was made"
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

// Message is the argument of a ReplyFunc: a copy that the function may keep and
// change.
type Message struct {
	Agent   Agent      // the agent that the message was sent to
	Text    string     // the text of the message, not redacted
	UserRef string     // "" when not given
	History []Exchange // earlier exchanges with the agent, as Conversation returns them
}

// Reply is the result of a ReplyFunc.
type Reply struct {
	Text     string   `json:"text,omitempty"`     // the reply_text; used with Status 0 and 200 only
	Warnings []string `json:"warnings,omitempty"` // the warnings; an empty list is left out of the answer
	// Status is 0 or 200 for a reply, or an error status that interface 4.8 lists:
	// 400, 401, 402, 404, 429. A 429 carries Retry-After: 1. Any other status fails
	// the test, and the message is answered 500. The message has spent its limits
	// before the function runs; for a 429 that spends nothing, Inject RateLimited.
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`   // the error of the error body; "" means the fake's own code for the status
	Reason string `json:"reason,omitempty"` // the reason of the error body
}

// Script answers messages instead of the default reply, which is "You wrote: "
// and the text. OnMessage makes a script; Reply and ReplyFunc add steps, one for
// each message that it answers. A script without steps counts its messages and
// leaves the default reply. The zero Script is of no use.
type Script struct{ *rule }

// step is one reply of a script: a text, or f if it is set. The zero step is
// the default reply.
type step struct {
	text    *string
	f       func(Message) Reply
	rule    *rule    // the script, for messages
	message *Message // for f
}

// OnMessage makes a script for the messages that all matchers match. Without
// matchers it is for all messages. If several scripts match, the newest answers
// whose Times, Nth and Chance allow it; if none does, the default reply is sent. A
// message that the service refuses, for example by a limit, uses up no step. A
// zero Matcher panics.
func (s *Server) OnMessage(matchers ...Matcher) *Script {
	sc := &Script{newRule(s, "OnMessage", "", matchers)}
	defer s.lock().Unlock()
	sc.addToLocked(&s.gen.scripts)
	return sc
}

// Reply adds a step for each text: the script answers one message with it. The
// last step of a script repeats. Without any text, Reply panics.
func (sc *Script) Reply(texts ...string) *Script {
	if len(texts) == 0 {
		misuse("Reply", "needs at least one text")
	}
	for _, text := range texts {
		sc.add(step{text: &text})
	}
	return sc
}

// ReplyFunc adds a step that calls f for the answer. f may call the fake and
// wait. Concurrent messages call it concurrently. A panic in f fails the test and
// aborts the connection, and so does require, which may end the goroutine of a test
// only: use assert. A nil f panics.
func (sc *Script) ReplyFunc(f func(Message) Reply) *Script {
	if f == nil {
		misuse("ReplyFunc", "the function is nil")
	}
	return sc.add(step{f: f})
}

// add appends a step. A Script may get more steps while it answers.
func (sc *Script) add(st step) *Script {
	st.rule = sc.rule
	defer sc.server.lock().Unlock()
	sc.steps = append(sc.steps, st)
	return sc
}

// Times ends the script once it has answered n messages; a later Times cannot begin it
// anew. On its own, it answers the first n messages that match. Times, Nth and Chance may
// be combined: the script answers where all of them allow it. An n below 1 panics.
func (sc *Script) Times(n int) *Script { sc.setNumber("Times", n, &sc.times); return sc }

// Nth makes the script answer only the n-th message that matches, counted from
// 1. A message that another script answers counts too. An n below 1 panics.
func (sc *Script) Nth(n int) *Script { sc.setNumber("Nth", n, &sc.nth); return sc }

// Chance makes the script answer with probability p. The seed fixes the
// decisions: the n-th message that matches gets the same decision in every run.
// A p outside 0 to 1 panics.
func (sc *Script) Chance(p float64, seed uint64) *Script { sc.setChance(p, seed); return sc }

// Required fails the test if the script has answered no message when the fake is
// closed or reset.
func (sc *Script) Required() *Script { sc.require(); return sc }

// nextStepLocked counts a message for all scripts that match it, newest first,
// and returns the step of the first whose turn it is, or the zero step.
func nextStepLocked(scripts []*rule) (next step) {
	answering := false
	for _, r := range slices.Backward(scripts) {
		if !r.countMatchLocked() || answering {
			continue
		}
		answering = true
		r.countHitLocked()
		if len(r.steps) > 0 {
			next = r.steps[min(r.hits, len(r.steps))-1]
		}
	}
	return next
}

// scriptedRefusal returns the refusal that a ReplyFunc asks for, nil for a reply. A status
// that interface 4.8 does not list fails the test, and becomes a 500: a client must not
// learn to handle what the service never sends.
func (s *Server) scriptedRefusal(r Reply) *service.Refusal {
	if r.Status == 0 || r.Status == http.StatusOK {
		return nil
	}
	refusal := &service.Refusal{Kind: service.Scripted, Status: r.Status, Code: r.Code, Broken: r.Reason}
	if !spec.SendMessage.Lists(r.Status) {
		s.reportf("a ReplyFunc answered with status %d; a message is answered with 200 or one of %v", r.Status, spec.SendMessage.Errors)
		refusal.Status, refusal.Broken = http.StatusInternalServerError, fmt.Sprintf("a ReplyFunc asked for status %d", r.Status)
	}
	if refusal.Status == http.StatusTooManyRequests {
		refusal.Limit, refusal.Wait = spec.KeyMinute, 1
	}
	if refusal.Code == "" {
		refusal.Code = wire.Code(refusal.Status)
	}
	return refusal
}

// Injection is a fault and the calls that it acts on. Inject makes one; the zero Injection
// is of no use.
type Injection struct{ *rule }

// Inject makes a fault act on the calls that all matchers match, even on calls
// that the service would refuse. Without matchers it acts on all calls, from now
// until Remove or Reset. Times, Nth, From and Chance narrow that. It may come too
// late for calls that are already under way.
//
// If several injections match a call, every Change and every Latency acts, and the
// latencies add up. Of the other faults only one acts: the newest whose Times, Nth,
// From and Chance allow it. The zero Fault and a zero Matcher panic.
func (s *Server) Inject(fault Fault, matchers ...Matcher) *Injection {
	if fault.f == nil {
		misuse("Inject", "the fault is the zero Fault; %s make faults", faultMakers)
	}
	in := &Injection{newRule(s, "Inject", fault.String(), matchers)}
	in.fault = fault.f
	defer s.lock().Unlock()
	if in.fault.Phase == wire.BeforeConnecting {
		s.refusing.Store(true)
		in.addToLocked(&s.gen.refusals)
	} else {
		in.addToLocked(&s.gen.injections)
	}
	return in
}

// Times ends the injection once it has acted on n calls; a later Times cannot begin it
// anew. On its own, it acts on the first n calls that match. Times, Nth, From and Chance
// may be combined: the fault acts where all of them allow it. An n below 1 panics.
func (in *Injection) Times(n int) *Injection { in.setNumber("Times", n, &in.times); return in }

// Nth makes the fault act only on the n-th call that matches, counted from 1. A
// call that another fault acts on counts too. An n below 1 panics, and so does one
// below that of From, since no call would be both.
func (in *Injection) Nth(n int) *Injection { in.setNumber("Nth", n, &in.nth); return in }

// From makes the fault act on the n-th call that matches and on later ones,
// counted from 1. An n below 1 panics, and so does one above that of Nth.
func (in *Injection) From(n int) *Injection { in.setNumber("From", n, &in.from); return in }

// Chance makes the fault act with probability p. The seed fixes the decisions:
// the n-th call that matches gets the same decision in every run. Which of
// several concurrent calls is the n-th is not fixed. A p outside 0 to 1 panics.
func (in *Injection) Chance(p float64, seed uint64) *Injection { in.setChance(p, seed); return in }

// Required fails the test if the fault has acted on no call when the fake is
// closed or reset.
func (in *Injection) Required() *Injection { in.require(); return in }
