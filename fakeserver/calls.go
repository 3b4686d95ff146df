package fakeserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// Call is one call and its answer. It is safe to print: it holds no key, and
// the texts of messages, replies and system prompts only with WithMessageTexts.
// "" means that a field does not apply, unless its comment says otherwise.
type Call struct {
	Seq      int       `json:"seq"`                // 1 for the call that was answered first; Reset does not start again at 1
	Time     time.Time `json:"time"`               // of arrival, by the fake's clock
	Endpoint Endpoint  `json:"endpoint,omitempty"` // "" when no endpoint has the method and path
	Method   string    `json:"method"`
	URL      string    `json:"url"`                // scheme, host and path, each at most 256 bytes; a query is redacted
	Path     string    `json:"path"`               // as it was sent, still escaped, without a query; at most 256 bytes
	AgentID  string    `json:"agent_id,omitempty"` // the path's {agent_id}, at most 256 bytes; "" when it has none
	Created  string    `json:"created,omitempty"`  // the agent that the call created
	// Key is the label of the API key, such as "key_000001". It is "missing" if the
	// call had no bearer token, and "unknown" if this fake did not issue the token.
	Key     string      `json:"key"`
	Address string      `json:"address"` // the client's IP address
	Header  http.Header `json:"header"`  // at most 100 names, and 4 KiB of each value
	// Body is the request body, at most 64 KiB of it; "" if the endpoint takes none.
	// A body that was malformed, or sent to a path that no endpoint has, is redacted
	// whole; WithMessageTexts shows it, without what looks like a key.
	Body      string `json:"body,omitempty"`
	BodyBytes int    `json:"body_bytes"` // size of the body as it was sent; a body over 1 MiB counts as 1,048,577

	// Took is the time from arrival until the answer was made, by the fake's clock.
	// It includes latency and callbacks. It does not include the time that the
	// answer took to reach the client.
	Took time.Duration `json:"took_ns"`

	// Sent is the answer that the client got.
	Sent Sent `json:"sent"`

	// Status, Code, Reason, Member, LimitKey and ReplyBody are the answer that the
	// service decided. The client got it, unless a fault replaced or lost it. Status
	// is 0 if the service did not decide: a fault acted instead, or a callback
	// panicked.
	Status    int    `json:"status"`
	Code      string `json:"code,omitempty"`       // the error of an error's body
	Reason    string `json:"reason,omitempty"`     // the reason of an error's body
	Member    string `json:"member,omitempty"`     // the member of the body that a 400 is about, such as llm.mode
	LimitKey  string `json:"limit_key,omitempty"`  // the limit_key of a 429: the limit that refused the call
	ReplyBody string `json:"reply_body,omitempty"` // at most 64 KiB

	Fault string `json:"fault,omitempty"` // the faults that acted, such as LoseReply(Hang())
	// Why says in one or two sentences, with numbers, why the call was refused and
	// what a fault did to it, such as "429: key_000002 has spent 60 of 60 in this
	// minute; it opens in 41s." It is "" for a call that succeeded without a fault,
	// unless the client left before it had the answer.
	Why     string `json:"why,omitempty"`
	TraceID string `json:"trace_id"` // as in the answer; counts the calls in the order of arrival
}

// Sent is the answer that a client was sent: the one that the service decided, or
// what a fault made of it. While an answer is being sent, as with DripReply and
// Hang, it is the part that was sent so far.
type Sent struct {
	Status int         `json:"status"`           // 0: no header was sent
	Header http.Header `json:"header,omitempty"` // without the headers that net/http adds, such as Connection
	Body   string      `json:"body,omitempty"`   // at most 64 KiB
	Bytes  int         `json:"bytes"`            // bytes of the body that were sent; Header's Content-Length says how many were announced
	// Ended is when sending ended, by the fake's clock: after the last byte, or
	// when the connection broke. It is the zero time while the answer is being sent.
	Ended time.Time `json:"ended,omitzero"`
	// Broke says how the answer broke off; "" if it was sent whole:
	//
	//   - "refused": the connection was refused, so nothing was sent either way
	//   - "closed": the fake closed the connection
	//   - "reset": the fake aborted the connection
	//   - "hung": nothing more came, and the connection stayed open until the client left
	//   - "left": the client left before it had the whole answer
	Broke string `json:"broke,omitempty"`
}

// The values of Sent.Broke that no ending of a delivery has.
const (
	brokeRefused = "refused"
	brokeLeft    = "left"
)

var broke = map[memnet.Ending]string{memnet.Closes: "closed", memnet.Resets: "reset", memnet.Hangs: "hung"}

func (s Sent) outcome() string {
	switch {
	case s.Broke == "":
		return strconv.Itoa(s.Status)
	case s.Status == 0:
		return "no answer, " + s.Broke
	}
	return fmt.Sprintf("%d, %s after %d bytes", s.Status, s.Broke, s.Bytes)
}

// maxLine bounds a call in one line, in bytes: path, code and reason may be foreign.
const maxLine = 512

// String returns the call in one line with its Why: at most 512 bytes, without
// control characters.
func (c Call) String() string {
	line := fmt.Sprintf("%s %s %s %s: %s", c.TraceID, c.Method, c.Path, c.Key, c.Sent.outcome())
	if c.Status != c.Sent.Status && c.Status != 0 {
		line += fmt.Sprintf(", decided %d", c.Status)
	}
	if c.Code != "" {
		line += " " + c.Code
	}
	if c.LimitKey != "" {
		line += " (" + c.LimitKey + ")"
	}
	if why := cmp.Or(strings.Trim(strings.TrimPrefix(c.Why, strconv.Itoa(c.Status)+":"), " ."), c.Reason); why != "" {
		line += ": " + why
	}
	if c.Fault != "" && !strings.Contains(c.Why, c.Fault) {
		line += " [" + c.Fault + "]"
	}
	return printable.Line(line, maxLine)
}

// entry is a call with the parts that only matchers see.
type entry struct {
	call    Call // as it arrived, then as it was answered; only its goroutine changes it, under the server's lock
	hasKey  bool
	token   service.Digest
	hasText bool
	text    string
	sent    atomic.Pointer[Sent] // replaces call.Sent while the answer is being sent
}

func (e *entry) copied() Call {
	c := e.call
	if sent := e.sent.Load(); sent != nil {
		c.Sent = *sent
	}
	c.Header, c.Sent.Header = c.Header.Clone(), c.Sent.Header.Clone()
	return c
}

// Endpoint is a method and a path template of interface section 4, such as
// "GET /v1/agents/{agent_id}", for ByEndpoint and Call.Endpoint.
type Endpoint string

// The nine endpoints, in the order of interface section 4.
const (
	EndpointStatus      Endpoint = "GET /v1/status"                          // interface 4.1
	EndpointWarmUp      Endpoint = "POST /v1/warmup"                         // interface 4.2
	EndpointGetBYOK     Endpoint = "GET /v1/byok"                            // interface 4.3
	EndpointSetBYOK     Endpoint = "PUT /v1/byok"                            // interface 4.4
	EndpointClearBYOK   Endpoint = "DELETE /v1/byok"                         // interface 4.5
	EndpointCreateAgent Endpoint = "POST /v1/agents"                         // interface 4.6
	EndpointGetAgent    Endpoint = "GET /v1/agents/{agent_id}"               // interface 4.7
	EndpointSendMessage Endpoint = "POST /v1/agents/{agent_id}/messages"     // interface 4.8
	EndpointEnableSMS   Endpoint = "POST /v1/agents/{agent_id}/channels/sms" // interface 4.9
)

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered; without matchers, all calls. The fake keeps the newest
// 1,000 calls (WithCallLimit keeps more or fewer).
//
// A call is in Calls before its client has the answer. While an answer is being
// sent, as with DripReply and Hang, each copy shows in Sent how far it got.
// UnderWay has the calls that are not answered yet. A zero Matcher panics.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount returns the number of calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// UnderWay returns copies of the calls that have arrived and whose answer has not
// been sent to its end, in the order of arrival: calls that wait for a Latency or
// a ReplyFunc, and calls whose answer drips or hangs. A call that is not answered
// yet has no Seq, Status and Sent.
func (s *Server) UnderWay() []Call {
	defer s.lock().Unlock()
	return copiedCalls(s.gen.log.UnderWay())
}

// waiting names the calls under way.
func (s *Server) waiting() string {
	var names []string
	for _, c := range s.UnderWay() {
		names = append(names, c.Method+" "+c.Path)
	}
	return strings.Join(names, ", ")
}

func (s *Server) entries() []*entry {
	defer s.lock().Unlock()
	return s.gen.log.All()
}

// matching returns the kept calls that all matchers match. Matchers run on a
// snapshot without the lock.
func (s *Server) matching(method string, matchers []Matcher) []*entry {
	checkMatchers(method, matchers)
	return slices.DeleteFunc(s.entries(), func(e *entry) bool { return !matchesAll(matchers, e) })
}

func copiedCalls(entries []*entry) []Call {
	calls := make([]Call, len(entries))
	for i, e := range entries {
		calls[i] = e.copied()
	}
	return calls
}

// WriteCalls writes the calls that Calls returns to w as JSON Lines: one JSON
// object and a line feed for each call, redacted as in Calls. The members keep
// their names and this order in every version:
//
//	seq time endpoint? method url path agent_id? created? key address header body?
//	body_bytes took_ns sent status code? reason? member? limit_key? reply_body?
//	fault? why? trace_id
//
// Members with a question mark are left out when empty. The fields of Call say
// what each holds. time is RFC 3339, header an object of lists of strings. An
// error of w is wrapped and returned. A zero Matcher panics.
func (s *Server) WriteCalls(w io.Writer, matchers ...Matcher) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, e := range s.matching("WriteCalls", matchers) {
		if err := encoder.Encode(e.copied()); err != nil {
			return fmt.Errorf("fakeserver: WriteCalls: %w", err)
		}
	}
	return nil
}

const maxTranscript = 50

// logCalls logs the newest calls of a test that failed.
func (s *Server) logCalls() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls := s.Calls()
	if shown := calls[max(0, len(calls)-maxTranscript):]; len(shown) > 0 {
		s.tb.Logf("fakeserver: %s", transcript(shown, s.totalCalls()))
	}
}

func (s *Server) totalCalls() int {
	defer s.lock().Unlock()
	return s.gen.log.Total()
}

// transcript prints a line for each call, with the time since the first: a gap
// of more than a second often shows where a test went wrong.
func transcript(shown []Call, total int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the last %d of %d calls:", len(shown), total)
	for _, c := range shown {
		since := c.Time.Sub(shown[0].Time).Round(time.Millisecond)
		fmt.Fprintf(&b, "\n%+10.3fs  %s", since.Seconds(), c)
	}
	return b.String()
}

// watcher is shown each call that is recorded: one OnCall, or one AwaitCalls
// under way.
type watcher struct {
	name     string // for messages
	matchers []Matcher
	see      func(*entry)
}

// AwaitCalls waits until n calls that all matchers match have been answered,
// and returns the first n of them. Earlier calls count if Calls still has them.
// Later calls count even if Calls drops them again. AwaitCalls does not poll: each
// call that is answered is matched once, on the goroutine of the call.
//
// A call counts before its client has the answer, so a client may still be busy
// when AwaitCalls returns.
//
// When ctx ends first, AwaitCalls returns the calls that came, and an error
// that says how many came and wraps ctx.Err(). Calls that were counted before a
// Reset still count. An n below 1 and a zero Matcher panic.
//
// In a synctest bubble, call AwaitCalls in the bubble that makes the calls: the Go
// runtime ends a program in which one bubble wakes another, or code outside wakes
// a bubble. If bubbles share a fake, pass ByKey to wait for the calls of one.
func (s *Server) AwaitCalls(ctx context.Context, n int, matchers ...Matcher) ([]Call, error) {
	if n < 1 {
		misuse("AwaitCalls", "%d calls cannot be waited for; at least 1", n)
	}
	checkMatchers("AwaitCalls", matchers)
	var mu sync.Mutex // guards found
	var found []*entry
	enough := make(chan struct{}) // of the caller's bubble, where all that add a call are too
	add := func(e *entry) {
		mu.Lock()
		defer mu.Unlock()
		if found = append(found, e); len(found) == n {
			close(enough)
		}
	}
	w := &watcher{name: "a matcher of AwaitCalls", matchers: slices.Clone(matchers), see: add}
	earlier := s.enroll(w)
	defer s.dismiss(w)
	for _, e := range earlier {
		if matchesAll(matchers, e) {
			add(e)
		}
	}
	select {
	case <-enough:
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	// Calls that are answered at the same time may have been found in another order.
	slices.SortFunc(found, func(a, b *entry) int { return a.call.Seq - b.call.Seq })
	calls := copiedCalls(found[:min(n, len(found))])
	if len(calls) == n { // even if the last came as ctx ended
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w", len(calls), n, listed(matchers), ctx.Err())
}

// enroll shows w every later call, and returns the earlier ones. A call that is
// answered meanwhile is either among them or shown, and never both: keep adds a
// call and reads the watchers under one lock.
func (s *Server) enroll(w *watcher) []*entry {
	defer s.lock().Unlock()
	s.watchers = append(slices.Clip(s.watchers), w)
	return s.gen.log.All()
}

func (s *Server) dismiss(w *watcher) {
	defer s.lock().Unlock()
	s.watchers = without(s.watchers, w)
}

// OnCall calls watch with each call that all matchers match, as Calls would
// return it, until stop is called. watch runs on the goroutine of the call,
// after Calls has the call and before its client has the answer. It may call the
// fake, and should return soon. Concurrent calls run it concurrently, and
// perhaps in another order than their Seq. A call that was under way during a
// Reset is shown too. A panic in watch fails the test, and the call goes on.
//
// A nil watch and a zero Matcher panic. Calling stop again does nothing.
func (s *Server) OnCall(watch func(Call), matchers ...Matcher) (stop func()) {
	if watch == nil {
		misuse("OnCall", "the function is nil")
	}
	checkMatchers("OnCall", matchers)
	w := &watcher{name: "the function of OnCall", matchers: slices.Clone(matchers), see: func(e *entry) { watch(e.copied()) }}
	s.enroll(w)
	return func() { s.dismiss(w) }
}

// show shows a call to a watcher. A panic fails the test, and the call goes on.
func (s *Server) show(w *watcher, e *entry) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("%s (%s) panicked: %v", w.name, listed(w.matchers), p)
		}
	}()
	if matchesAll(w.matchers, e) {
		w.see(e)
	}
}
