package fakeserver

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// Call is one call and its answer. It is safe to print: it holds no key and no password of a
// base_url. It holds the texts of messages, replies and system prompts only with
// WithMessageTexts. A text in another place, such as a header or the Reason of a scripted
// Reply, is not recognized and shows. "" means that a field does not apply, unless its comment
// says otherwise.
type Call struct {
	Seq      int       `json:"seq"`                // the order of answering, from 1; Reset does not set it back
	Time     time.Time `json:"time"`               // of arrival, by the fake's clock
	Endpoint Endpoint  `json:"endpoint,omitempty"` // "" when no endpoint has the method and path
	Method   string    `json:"method"`
	URL      string    `json:"url"`                // scheme, host and path, each at most 256 bytes; a query is redacted
	Path     string    `json:"path"`               // as it was sent, escaped, without a query; at most 256 bytes
	AgentID  string    `json:"agent_id,omitempty"` // the path's {agent_id}, at most 256 bytes; "" when the path has none
	Created  string    `json:"created,omitempty"`  // the agent that the call created
	// Key is the label of the API key, such as "key_000001". It is "missing" if the
	// call had no bearer token, and "unknown" if this fake did not issue the token.
	Key     string      `json:"key"`
	Address string      `json:"address"` // the client's IP address; "" for a call without one, such as over a Unix socket
	Header  http.Header `json:"header"`  // at most 100 names, and 4 KiB of each value
	// Body is the request body, at most 64 KiB of it; "" if the endpoint takes none.
	// A body that was malformed, or sent to a path that no endpoint has, is redacted
	// whole; WithMessageTexts shows it, unless it may hold a key. A body with more than
	// 100 keys is always redacted whole.
	Body      string `json:"body,omitempty"`
	BodyBytes int    `json:"body_bytes"` // size of the body as it was sent; a body over 1 MiB counts as 1,048,577

	// Took is the time from arrival until the answer was made, by the fake's clock.
	// It includes latency and callbacks. It does not include the time that the
	// answer took to reach the client.
	Took time.Duration `json:"took_ns"`

	// Sent is the answer that the client got.
	Sent Sent `json:"sent"`

	// Status, Code, Reason, Member, LimitKey and ReplyBody are the answer that the service
	// decided. The client got it, unless a fault replaced or lost it. Status is 0 if the
	// service did not decide: a fault acted instead, a callback failed, or the client left
	// before the call arrived.
	Status    int    `json:"status"`
	Code      string `json:"code,omitempty"`       // the error of an error's body
	Reason    string `json:"reason,omitempty"`     // the reason of an error's body
	Member    string `json:"member,omitempty"`     // the member of the body that a 400 is about, such as llm.mode
	LimitKey  string `json:"limit_key,omitempty"`  // the limit_key of a 429: the limit that refused the call
	ReplyBody string `json:"reply_body,omitempty"` // at most 64 KiB

	Fault string `json:"fault,omitempty"` // the faults that acted, such as LoseReply(Hang())
	// Why says in up to three sentences, with numbers, why the call was refused, what a fault
	// did to it, which callback of the test failed, and that the client left, such as "429:
	// key_000002 has spent 60 of 60 in this minute; it opens in 41s." It is "" for a call that
	// succeeded without a fault and whose client waited for the answer. Times are in whole
	// seconds, so that a golden file may hold them.
	Why     string `json:"why,omitempty"`
	TraceID string `json:"trace_id"` // as in the answer; counts the calls in the order of arrival
}

// Sent is the answer that the fake sent to a client: the answer of the service, or the
// answer that a fault made instead. While an answer is being sent, as with DripReply and
// Hang, Sent is the part that was sent so far.
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

// The values of Sent.Broke that do not come from memnet.Ending.
const (
	brokeRefused = "refused"
	brokeLeft    = "left"
)

// broke names the endings that cut an answer.
var broke = map[memnet.Ending]string{memnet.Closes: "closed", memnet.Resets: "reset", memnet.Hangs: "hung"}

// outcome describes the client's answer in a few words: the status, and where the answer
// broke off.
func (s Sent) outcome() string {
	switch {
	case s.Broke == "":
		return strconv.Itoa(s.Status)
	case s.Status == 0:
		return "no answer, " + s.Broke
	}
	return fmt.Sprintf("%d, %s after %d bytes", s.Status, s.Broke, s.Bytes)
}

// maxLine bounds the line of a call, in bytes, because clients and tests choose path,
// code and reason.
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

// entry is a call with the parts that only matchers see. The log, watchers and the call
// itself share one entry.
type entry struct {
	record  Call           // the call as it arrived, later as it was answered; only the call's goroutine changes it, under the server's lock
	token   service.Digest // the zero Digest without a token
	hasText bool
	text    string
	sent    atomic.Pointer[Sent] // replaces record.Sent while the answer is being sent
}

// callLog keeps the calls that are under way, and the newest answered calls. The zero
// value keeps no answered calls. The server's lock guards it.
type callLog struct {
	limit    int      // how many answered calls are kept
	kept     []*entry // oldest first
	total    int      // answered calls, including dropped ones
	underWay []*entry // in the order of arrival
}

// endLocked removes a call from the calls that are under way.
func (l *callLog) endLocked(e *entry) {
	l.underWay = slices.DeleteFunc(l.underWay, func(other *entry) bool { return other == e })
}

// snapshot returns the record of the call for a user, with the part of the answer that was
// sent so far. The copy shares texts, which never change, and has its own headers.
func (e *entry) snapshot() Call {
	c := e.record
	if sent := e.sent.Load(); sent != nil {
		c.Sent = *sent
	}
	c.Header, c.Sent.Header = c.Header.Clone(), c.Sent.Header.Clone()
	return c
}

// Endpoint is a method and a path template of interface section 4, such as
// "GET /v1/agents/{agent_id}", for ByEndpoint and Call.Endpoint.
type Endpoint string

// The endpoints, in the order of interface section 4.
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
