package fakeserver

import (
	"cmp"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
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

// sentHeader copies the header of an answer, without the names that were not sent.
// words says that the values are the test's own: then only those are shown that
// cannot be a person's words or a key.
func sentHeader(h http.Header, words bool) http.Header {
	sent, copies := make(http.Header, len(h)), make([]string, 0, len(h)) // of one value each, in one slice
	for name, values := range h {
		if len(values) == 0 {
			continue
		}
		copies = append(copies, values[0])
		if words && (name == "Retry-After" || name == "Content-Type") {
			copies[len(copies)-1] = tellingHeader(values[0])
		}
		sent[name] = copies[len(copies)-1 : len(copies) : len(copies)]
	}
	return sent
}

// tellingHeader returns a header's value if it is a number, a date or a media
// type, and its length otherwise.
func tellingHeader(value string) string {
	_, notNumber := strconv.ParseFloat(value, 64)
	_, notDate := http.ParseTime(value)
	kind, _, notMedia := mime.ParseMediaType(value)
	if notNumber == nil || notDate == nil || notMedia == nil && mediaTypes.MatchString(kind) {
		return value
	}
	return mask.Text(value)
}

var mediaTypes = regexp.MustCompile(`^(application|text|image)/[a-z+.-]+$`)

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
