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
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// The values of Call.Key for calls without a key that this fake issued.
const (
	labelMissing = "missing" // no Authorization header, or not one bearer token
	labelUnknown = "unknown" // a bearer token that is no key of this fake
)

// Call is one call and its answer. It is safe to print: it holds no key, and
// the texts of messages, replies and system prompts only with WithMessageTexts.
type Call struct {
	Seq      int       `json:"seq"`                // counts the answers, from 1; Reset does not set it back
	Time     time.Time `json:"time"`               // of arrival, by the fake's clock
	Endpoint Endpoint  `json:"endpoint,omitempty"` // "" when no endpoint has the method and path
	Method   string    `json:"method"`
	URL      string    `json:"url"`                // the whole address: scheme, host, path and query, each at most 256 bytes
	Path     string    `json:"path"`               // as it was sent, still escaped, without a query; at most 256 bytes
	AgentID  string    `json:"agent_id,omitempty"` // the path's {agent_id}, at most 256 bytes; "" when it has none
	Created  string    `json:"created,omitempty"`  // the agent that the call created
	// Key is the label of the API key, such as key_000001. It is missing where the
	// call had no bearer token, and unknown where the token is no key of this fake.
	Key     string      `json:"key"`
	Address string      `json:"address"` // the client's IP address
	Header  http.Header `json:"header"`  // at most 100 names, and 4 KiB of each value
	// Body is the request body, at most 64 KiB of it: empty when the endpoint takes
	// none. Of one that was refused as malformed, and of one to no endpoint, all
	// strings are redacted that may be words or keys.
	Body      string `json:"body,omitempty"`
	BodyBytes int    `json:"body_bytes"` // size of the body as it was sent; 1 MiB and a byte where it was longer

	// Took is the time from arrival until the answer was made, by the fake's clock.
	// It includes latency and callbacks, and not the way of the answer to the
	// client.
	Took time.Duration `json:"took_ns"`

	// Sent is what the client got. What follows is what the service decided, which
	// a fault may have replaced or lost.
	Sent Sent `json:"sent"`

	Status    int    `json:"status"`               // 0 when it decided nothing: a fault acted instead, or a callback panicked
	Code      string `json:"code,omitempty"`       // the error of an error's body
	Reason    string `json:"reason,omitempty"`     // the reason of an error's body
	Member    string `json:"member,omitempty"`     // the member of the body that a 400 is about, such as llm.mode
	LimitKey  string `json:"limit_key,omitempty"`  // which limiter refused the call
	ReplyBody string `json:"reply_body,omitempty"` // at most 64 KiB
	Fault     string `json:"fault,omitempty"`      // the faults that acted, such as LoseReply(Hang()); the other fields ignore them
	// Why says in one or two sentences, with numbers, why the call was refused and
	// what a fault did to it, such as "429: key_000002 has spent 60 of 60 in this
	// minute; it opens in 41s." It is "" for a call that nothing befell.
	Why     string `json:"why,omitempty"`
	TraceID string `json:"trace_id"` // as in the answer; in the order of arrival
}

// Sent is the answer that a client was sent: the one that the service decided, or
// what a fault made of it. While an answer drips or hangs, it is what was sent
// so far.
type Sent struct {
	Status int         `json:"status"`           // 0: not even a header was sent
	Header http.Header `json:"header,omitempty"` // without what net/http adds, such as Connection
	Body   string      `json:"body,omitempty"`   // at most 64 KiB
	Bytes  int         `json:"bytes"`            // of the body; Content-Length says how many were announced
	// Ended is when the last byte left, or nothing more could, by the fake's clock.
	// It is zero while the answer is being sent.
	Ended time.Time `json:"ended,omitzero"`
	// Broke is how it broke off: refused (there was no connection, and nothing was
	// sent either way), closed, reset, hung (nothing more came, and the connection
	// stayed open until the client left), or left (the client left before it had
	// all). "" where it was sent whole.
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

// String is the call in one line, with its Why, bounded and without control
// characters.
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

// entry is a call with the parts that only matchers see. Only the goroutine of the
// call changes it, until it is in the log; then only sent changes.
type entry struct {
	call    Call
	hasKey  bool
	token   service.Digest
	hasText bool
	text    string
	sent    atomic.Pointer[Sent] // replaces call.Sent while the answer is being sent
	seen    func() Call          // the copy for all matchers that are asked about an arrival; nil: each has its own
}

// arrived is the call as it arrived. What is not in it may still change.
func (e *entry) arrived() Call {
	c := &e.call
	return Call{
		Time: c.Time, Endpoint: c.Endpoint, Method: c.Method, URL: c.URL, Path: c.Path, AgentID: c.AgentID, Key: c.Key,
		Address: c.Address, Header: c.Header.Clone(), Body: c.Body, BodyBytes: c.BodyBytes, TraceID: c.TraceID,
	}
}

func (e *entry) copied() Call {
	if e.seen != nil {
		return e.seen()
	}
	c := e.call
	if sent := e.sent.Load(); sent != nil {
		c.Sent = *sent
	}
	c.Header, c.Sent.Header = c.Header.Clone(), c.Sent.Header.Clone()
	return c
}

// Endpoint is a method and a path template of interface section 4, such as
// "GET /v1/agents/{agent_id}".
type Endpoint string

// The nine endpoints, in the order of interface section 4.
const (
	EndpointStatus      Endpoint = spec.StatusCall      // GET /v1/status, interface 4.1
	EndpointWarmUp      Endpoint = spec.WarmUpCall      // POST /v1/warmup, interface 4.2
	EndpointGetBYOK     Endpoint = spec.GetBYOKCall     // GET /v1/byok, interface 4.3
	EndpointSetBYOK     Endpoint = spec.SetBYOKCall     // PUT /v1/byok, interface 4.4
	EndpointClearBYOK   Endpoint = spec.ClearBYOKCall   // DELETE /v1/byok, interface 4.5
	EndpointCreateAgent Endpoint = spec.CreateAgentCall // POST /v1/agents, interface 4.6
	EndpointGetAgent    Endpoint = spec.GetAgentCall    // GET /v1/agents/{agent_id}, interface 4.7
	EndpointSendMessage Endpoint = spec.SendMessageCall // POST /v1/agents/{agent_id}/messages, interface 4.8
	EndpointEnableSMS   Endpoint = spec.EnableSMSCall   // POST /v1/agents/{agent_id}/channels/sms, interface 4.9
)

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered: the newest 1,000, or WithCallLimit. A call is
// complete here before its client has the answer. Of an answer that drips or
// hangs, Sent goes on to grow. UnderWay has the calls that are not answered yet.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount counts the calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// UnderWay returns copies of the calls that have arrived and that nobody has had
// the whole answer of, in the order of arrival: those that wait for a Latency or a
// ReplyFunc, whose answer drips or hangs. A call that is not answered yet has no
// Seq, Status and Sent.
func (s *Server) UnderWay() []Call {
	var calls []Call
	defer s.lock().Unlock()
	for _, e := range s.gen.log.UnderWay() {
		if e.sent.Load() != nil { // it is in the log, and changes no more
			calls = append(calls, e.copied())
			continue
		}
		calls = append(calls, e.arrived())
	}
	return calls
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
// what each holds. time is RFC 3339, header an object of lists of strings.
// WriteCalls returns the error of w.
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
// Later calls count even if Calls drops them again. It looks at each call once,
// when it is answered, and does not poll.
//
// A call counts before its client has the answer, so a client may still be busy
// when AwaitCalls returns.
//
// When ctx ends first, AwaitCalls returns the calls that came, and an error
// that counts them and wraps ctx.Err(). Matchers run on the goroutines of the
// calls. Reset does not take back what has been counted. An n below 1 and a
// zero Matcher panic.
//
// In a synctest bubble, wait in the bubble that makes the calls: the Go runtime
// ends a program in which one bubble wakes another, or the outside does. Where
// bubbles share a fake, ByKey keeps their calls apart.
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
		if len(found) == n {
			return
		}
		found = append(found, e)
		if len(found) == n {
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
	calls := copiedCalls(found)
	if len(calls) == n { // even if the last came as ctx ended
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w", len(calls), n, listed(matchers), ctx.Err())
}

// enroll shows w every later call, and returns
// the earlier ones. A call that is answered meanwhile is either among them or
// shown, and never both: keep adds a call and reads the watchers under one lock.
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
// after Calls has the call and before its client has the answer. It runs
// without any lock: it may call the fake, concurrent calls call it
// concurrently, and it should return soon. Calls that a Reset has forgotten
// meanwhile are shown too. A panic in watch fails the test, and the call goes
// on. Concurrent calls may be shown in another order than their Seq.
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
