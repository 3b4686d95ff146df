package fakeserver

import (
	"fmt"
	"net/textproto"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Fault is something that goes wrong with a call, for Inject. The functions
// that return a Fault make them: a Fault is a value, may be used any number of
// times, and prints as its name.
//
// Answer, RawAnswer, RateLimited, Hang, CloseEarly and ResetConnection happen
// instead of the call, as in a proxy in front of the service: the service has
// done nothing, and no limit is spent. Latency comes before the call.
// LoseReply, TruncateReply, ResetReply, DripReply and GoAway come after it: the
// call has had its effect. A fault acts once the call was received whole.
//
// What a client sees is the same, as far as errors.Is tells, over HTTPClient,
// over Direct and over a socket. Over HTTP/2, as httptest serves the fake with
// EnableHTTP2 and StartTLS, only the stream of the call ends, since other calls
// share the connection: where it closes or is reset, the client sees a stream
// error with the code INTERNAL_ERROR in place of io.EOF and ECONNRESET. Nothing
// here refuses a stream: net/http lets no handler do it.
type Fault struct{ f *fault }

// faultMakers are named where something else was given.
const faultMakers = "Answer, RawAnswer, RateLimited, Hang, CloseEarly, ResetConnection, " +
	"Latency, LoseReply, TruncateReply, ResetReply, DripReply and GoAway"

// String is the fault as it was made, such as LoseReply(ResetConnection()),
// without the bodies that it answers.
func (f Fault) String() string {
	if f.f == nil {
		return "Fault{}"
	}
	return f.f.name
}

// phase is where on a call's way a fault acts.
type phase int

const (
	insteadOfCall phase = iota
	onTheWay
	onTheReply
)

// fault never changes.
type fault struct {
	name     string
	phase    phase
	delay    time.Duration   // on the way
	canned   *canned         // answered in place of the service's own answer; nil: that one
	delivery memnet.Delivery // what becomes of the answer
}

// clientGone is what becomes of a call whose client has left meanwhile.
var clientGone = &fault{delivery: memnet.Delivery{Ends: memnet.Closes, Sent: memnet.Nothing}}

// Answer answers with a status from 200 to 599 and a body, as application/json.
// Where body is "", it is the error body of interface 7, with the trace
// identifier of the call. A 429 carries Retry-After: 1; RateLimited makes
// others. Any other status panics.
func Answer(status int, body string) Fault {
	checkStatus("Answer", status)
	return Fault{&fault{name: fmt.Sprintf("Answer(%d%s)", status, sized(body)), canned: &canned{status: status, body: body}}}
}

// RawAnswer answers with a status from 200 to 599, a Content-Type and a body,
// all as they are: HTML, broken JSON, nothing at all. A contentType of "" sends
// none. Another status, and a contentType that no header can hold, panic.
func RawAnswer(status int, contentType, body string) Fault {
	checkStatus("RawAnswer", status)
	checkHeader("RawAnswer", contentType)
	return Fault{&fault{name: fmt.Sprintf("RawAnswer(%d%s)", status, sized(body)),
		canned: &canned{status: status, body: body, raw: true, contentType: contentType}}}
}

// RateLimited answers 429 rate_limited with this Retry-After, as it is: a
// number, a fraction, a date, nonsense; "" sends none. What no header can hold
// panics.
func RateLimited(retryAfter string) Fault {
	checkHeader("RateLimited", retryAfter)
	shown := characters(retryAfter)
	if _, err := strconv.ParseFloat(retryAfter, 64); err == nil || retryAfter == "" {
		shown = strconv.Quote(retryAfter)
	}
	// Surrounding space cannot be seen behind a header's colon.
	value := textproto.TrimString(retryAfter)
	return Fault{&fault{name: "RateLimited(" + shown + ")", canned: &canned{status: 429, retryAfter: &value}}}
}

// Hang never answers. It ends when the client goes: its context ends, or the
// cleanup of HTTPClient closes its connection. A client without a deadline
// waits for ever.
func Hang() Fault {
	return Fault{&fault{name: "Hang()", delivery: memnet.Delivery{Ends: memnet.Hangs, Sent: memnet.Nothing}}}
}

// CloseEarly closes the connection in place of an answer: the client sees
// io.EOF. Note that net/http by itself repeats a GET whose connection had been
// used before and ends without one byte of an answer; Direct has no
// connections, so there it does not.
func CloseEarly() Fault {
	return Fault{&fault{name: "CloseEarly()", delivery: memnet.Delivery{Ends: memnet.Closes, Sent: memnet.Nothing}}}
}

// ResetConnection aborts the connection in place of an answer: the client sees
// ECONNRESET in a *net.OpError. What CloseEarly says about repeating holds here
// too.
func ResetConnection() Fault {
	return Fault{&fault{name: "ResetConnection()", delivery: memnet.Delivery{Ends: memnet.Resets, Sent: memnet.Nothing}}}
}

// Latency makes a call take d to reach the service, in real time or that of
// the synctest bubble. Limits are judged when it arrives; a call whose client
// has left by then never happens. A negative d panics.
func Latency(d time.Duration) Fault {
	if d < 0 {
		misuse("Latency", "%v is negative", d)
	}
	return Fault{&fault{name: fmt.Sprintf("Latency(%v)", d), phase: onTheWay, delay: d}}
}

// LoseReply lets the call have its effect, and then loses the answer: how
// happens in its place. how is one of the faults that otherwise happen instead
// of a call: LoseReply(Answer(504, "")) is a gateway that has timed out. Any
// other panics.
func LoseReply(how Fault) Fault {
	if how.f == nil || how.f.phase != insteadOfCall {
		misuse("LoseReply", "%v is no way to lose a reply; "+
			"Answer, RawAnswer, RateLimited, Hang, CloseEarly and ResetConnection are", how)
	}
	lost := *how.f
	lost.name, lost.phase = "LoseReply("+how.f.name+")", onTheReply
	return Fault{&lost}
}

// TruncateReply lets the call have its effect, announces the full length of
// the answer, sends n bytes of its body and closes the connection: the client
// sees io.ErrUnexpectedEOF when it reads the body. An answer of at most n bytes
// arrives whole. A negative n panics.
func TruncateReply(n int) Fault { return cutReply("TruncateReply", n, memnet.Closes) }

// ResetReply is TruncateReply with an abort at the end: the client sees
// ECONNRESET when it reads the body. On a socket it is up to the system whether
// what was sent before still arrives; on Linux it does.
func ResetReply(n int) Fault { return cutReply("ResetReply", n, memnet.Resets) }

func cutReply(method string, n int, how memnet.Ending) Fault {
	if n < 0 {
		misuse(method, "%d is negative", n)
	}
	return Fault{&fault{name: fmt.Sprintf("%s(%d)", method, n), phase: onTheReply, delivery: memnet.Delivery{Ends: how, Sent: n}}}
}

// DripReply lets the call have its effect, and sends the body of the answer n
// bytes at a time, the first with the header, the others each after another
// wait of every. An n of less than 1 and a negative every panic.
func DripReply(n int, every time.Duration) Fault {
	if n < 1 || every < 0 {
		misuse("DripReply", "%d bytes every %v: at least 1 byte and no negative wait", n, every)
	}
	return Fault{&fault{name: fmt.Sprintf("DripReply(%d, %v)", n, every), phase: onTheReply, delivery: memnet.Delivery{Drip: n, Every: every}}}
}

// GoAway lets the call have its effect and its answer, and has the connection
// take no other call, as a server does that restarts: over HTTP/2 a GOAWAY
// follows, over HTTP/1.1 the answer says Connection: close. Direct has no
// connections, so there it only says so.
func GoAway() Fault {
	return Fault{&fault{name: "GoAway()", phase: onTheReply, delivery: memnet.Delivery{Ends: memnet.Leaves}}}
}

// sized stands for a text in the name of a fault, behind other arguments.
func sized(text string) string {
	if text == "" {
		return ""
	}
	return ", " + characters(text)
}

// characters stands for a text that may be somebody's words or key.
func characters(text string) string {
	return fmt.Sprintf("%d characters", utf8.RuneCountInString(text))
}

func checkStatus(method string, status int) {
	if status < 200 || status > 599 {
		misuse(method, "%d is no status from 200 to 599", status)
	}
}

// checkHeader refuses what would end the header's line. The value is not
// repeated: the arguments may have been swapped.
func checkHeader(method, value string) {
	if memnet.HoldsControl(value) {
		misuse(method, "the header's value holds a control character")
	}
}
