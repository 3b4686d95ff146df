package fakeserver

import (
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
)

// Fault makes a call go wrong. The functions below make faults, and Inject says
// which calls they act on. A Fault may be used any number of times. It prints as
// the Go call that made it.
//
// When a fault acts decides whether the call has an effect:
//
//   - Before the call is sent: RefuseConnection.
//   - Before the call reaches the service, which then carries it out: Latency and
//     Change.
//   - Instead of the call, as in a proxy before the service: Answer, RawAnswer,
//     RateLimited, Hang, CloseEarly and ResetConnection. The call has no effect and
//     spends no limit.
//   - After the call has had its effect: LoseReply, TruncateReply, ResetReply,
//     DripReply and GoAway.
//
// Every fault but RefuseConnection acts after the request was received whole.
//
// A client sees errors that are equal for errors.Is over HTTPClient, over Direct and over
// a socket. HTTP/2 differs (httptest serves the fake so with EnableHTTP2 and StartTLS):
// calls share a connection there, so a fault ends only the stream of its call, and
// instead of io.EOF and ECONNRESET the client sees a stream error with the code
// INTERNAL_ERROR. No fault refuses a stream, since a handler of net/http cannot do that.
type Fault struct{ f *fault }

// phase says when a fault acts. So it decides whether the call has its effect.
type phase int

// The phases.
const (
	// insteadOfCall: the service never sees the call, as if a proxy answered it.
	insteadOfCall phase = iota
	// beforeConnecting: no connection is made, and nothing is sent.
	beforeConnecting
	// onTheWay: the call arrives later, or after a change. It may be combined with one
	// fault of another phase.
	onTheWay
	// onTheReply: the call has its effect, and its answer is changed or lost.
	onTheReply
)

// fault is what a Fault does. It never changes, so a test may use one Fault for many calls at
// once. Fields that a fault does not need are zero.
type fault struct {
	name     string // the Go call that made the fault, such as LoseReply(Hang())
	did      string // what the fault did to the answer, for why; "" if why works it out (a cut answer), or the fault acts before the call
	phase    phase
	delay    time.Duration        // on the way
	change   func()               // on the way; nil changes nothing
	answer   *wire.InjectedAnswer // replaces the service's answer; nil keeps it
	delivery memnet.Delivery      // how the answer is sent
}

// why says in one sentence what the fault did to a call, and whether the call had its
// effect. message is true if the call is a message. decided is the status that the
// service decided, body the length of the whole answer in bytes. why returns "" if the
// fault changed nothing, such as a cut beyond the end of the answer.
func (f *fault) why(message bool, decided, body int) string {
	did := f.did
	switch {
	case f.phase == beforeConnecting:
		return f.name + " refused the connection: nothing was sent."
	case did == "" && f.delivery.Sent >= body:
		return ""
	case did == "":
		did = fmt.Sprintf("cut the answer after %d of %d bytes", f.delivery.Sent, body)
	}
	return f.name + " " + did + "; " + f.effect(message, decided) + "."
}

// effect tells the author of a test whether a retry would repeat what the call did.
func (f *fault) effect(message bool, decided int) string {
	switch {
	case f.phase != onTheReply:
		return "the call had no effect"
	case decided == 200 && message:
		return "the agent has the message"
	case decided >= 200 && decided < 300:
		return "the call had its effect"
	}
	return "the service had refused it with " + strconv.Itoa(decided)
}

// String returns the Go call that made the fault, such as
// LoseReply(ResetConnection()), with the length of a body in place of the body.
func (f Fault) String() string {
	if f.f == nil {
		return "Fault{}"
	}
	return f.f.name
}

// Answer answers with a status from 200 to 599 and a body, as application/json. From 300 on, an
// empty body becomes an error body (interface 7). Its error is the one that the service has for
// that status and endpoint, or else the name of the status, such as bad_gateway. It has the
// call's trace identifier and, except for a 429, the reason "injected by the test". A 429
// carries Retry-After: 1; RateLimited sends others. With 204 and 304 no body is sent, even if
// one is given. Any other status panics.
func Answer(status int, body string) Fault {
	checkStatus("Answer", status)
	return answerFault(fmt.Sprintf("Answer(%d%s)", status, sized(body)), wire.InjectedAnswer{Status: status, Body: body})
}

// RawAnswer answers with a status from 200 to 599, a Content-Type and a body,
// all unchanged: HTML, broken JSON, nothing at all. 204 and 304 send neither a body nor
// a Content-Type. An empty contentType sends no such header. Another status panics,
// and so does a contentType that no header can hold, such as one with a line feed.
func RawAnswer(status int, contentType, body string) Fault {
	checkStatus("RawAnswer", status)
	contentType = checkedHeader("RawAnswer", contentType)
	return answerFault(fmt.Sprintf("RawAnswer(%d%s)", status, sized(body)), wire.InjectedAnswer{Status: status, Body: body, Raw: true, ContentType: contentType})
}

// RateLimited answers 429 rate_limited with this Retry-After, unchanged: a
// number of seconds, a fraction, a date, nonsense. "" sends no such header. The
// limit_key of the answer is key_minute, or key_day for a wait of more than a minute.
// A value that no header can hold, such as one with a line feed, panics.
func RateLimited(retryAfter string) Fault {
	value := checkedHeader("RateLimited", retryAfter)
	shown := characters(retryAfter)
	if _, err := strconv.ParseFloat(retryAfter, 64); err == nil || retryAfter == "" {
		shown = strconv.Quote(retryAfter)
	}
	return answerFault("RateLimited("+shown+")", wire.InjectedAnswer{Status: http.StatusTooManyRequests, RetryAfter: &value})
}

// answerFault makes a fault that answers instead of the call.
func answerFault(name string, answer wire.InjectedAnswer) Fault {
	return Fault{&fault{name: name, did: "answered in place of the service", answer: &answer}}
}

// RefuseConnection refuses the client's connection: the client sees ECONNREFUSED in a
// *net.OpError, and has sent nothing. The fault acts on the calls of HTTPClient and
// Direct, even if a connection is open, and never on calls over a socket. A matcher sees the
// body of a request only if it has a GetBody. Those of package agentmessaging have none:
// choose their calls by ByEndpoint, ByAgent, ByKey or Nth, and not by ByText.
func RefuseConnection() Fault {
	return Fault{&fault{name: "RefuseConnection()", phase: beforeConnecting}}
}

// Change changes the state just before a call reaches the service, which then
// answers as it does in the new state: the plan ends, the key is revoked, the
// agent is gone. change may call the fake. what describes it in a few words, for
// messages and records. A panic in change fails the test and aborts the
// connection. A nil change panics.
func Change(what string, change func()) Fault {
	if change == nil {
		misuse("Change", "the function is nil")
	}
	return Fault{&fault{name: "Change(" + printable.Line(what, maxShown) + ")", phase: onTheWay, change: change}}
}

// Hang never answers. It ends when the client leaves: when the client's context ends, or
// when the cleanup of HTTPClient closes the client's connection. A client without a
// deadline waits forever.
func Hang() Fault {
	return connectionFault("Hang()", "never answered", memnet.Hangs)
}

// CloseEarly closes the connection instead of answering: the client sees
// io.EOF. By itself, net/http repeats a GET when a connection that was used
// before ends without any answer. Direct has no connections, so it repeats
// nothing.
func CloseEarly() Fault {
	return connectionFault("CloseEarly()", "ended the connection without an answer", memnet.Closes)
}

// ResetConnection aborts the connection instead of answering: the client sees
// ECONNRESET in a *net.OpError. net/http may repeat the call as it does after
// CloseEarly.
func ResetConnection() Fault {
	return connectionFault("ResetConnection()", "ended the connection without an answer", memnet.Resets)
}

// connectionFault makes a fault without an answer, which acts instead of the call.
func connectionFault(name, did string, how memnet.Ending) Fault {
	return Fault{&fault{name: name, did: did, delivery: memnet.Delivery{Ends: how, Sent: memnet.Nothing}}}
}

// Latency makes a call take d to reach the service, in real time or in the time
// of a synctest bubble. The call meets the limits of the moment when it
// arrives. If its client has left by then, the call never happens. A negative d
// panics.
func Latency(d time.Duration) Fault {
	if d < 0 {
		misuse("Latency", "%v is negative", d)
	}
	return Fault{&fault{name: fmt.Sprintf("Latency(%v)", d), phase: onTheWay, delay: d}}
}

// LoseReply lets the call have its effect, and applies the fault how instead of
// answering. how is one of the faults that otherwise replace a call:
// LoseReply(Answer(504, "")) is a gateway that timed out. Any other fault panics.
func LoseReply(how Fault) Fault {
	if how.f == nil || how.f.phase != insteadOfCall {
		misuse("LoseReply", "%v cannot lose a reply; Answer, RawAnswer, RateLimited, Hang, CloseEarly and ResetConnection can; "+
			"TruncateReply and ResetReply end the reply after the call's effect by themselves", how)
	}
	lost := *how.f
	lost.name, lost.phase = "LoseReply("+how.f.name+")", onTheReply
	if lost.answer != nil {
		lost.did = "replaced the answer"
	}
	return Fault{&lost}
}

// TruncateReply lets the call have its effect, announces the full length of the
// answer, sends n bytes of its body and closes the connection. The client sees
// io.ErrUnexpectedEOF when it reads the body. An answer of at most n bytes
// arrives whole. A negative n panics.
func TruncateReply(n int) Fault { return cutFault("TruncateReply", n, memnet.Closes) }

// ResetReply is TruncateReply, except that it aborts the connection at the end: the
// client sees ECONNRESET when it reads the body. On a socket the system decides whether
// the bytes before the abort still arrive; on Linux they do.
func ResetReply(n int) Fault { return cutFault("ResetReply", n, memnet.Resets) }

// cutFault makes a fault that sends n bytes of the body, and then ends the connection in
// the way how.
func cutFault(method string, n int, how memnet.Ending) Fault {
	if n < 0 {
		misuse(method, "%d is negative", n)
	}
	return Fault{&fault{name: fmt.Sprintf("%s(%d)", method, n), phase: onTheReply, delivery: memnet.Delivery{Ends: how, Sent: n}}}
}

// DripReply lets the call have its effect. Then it sends the body of the answer n
// bytes at a time, with a pause of length every in between. The first bytes come
// with the header. An n below 1 and a negative every panic.
func DripReply(n int, every time.Duration) Fault {
	if n < 1 || every < 0 {
		misuse("DripReply", "%d bytes every %v: at least 1 byte and no negative wait", n, every)
	}
	did := fmt.Sprintf("sent %d bytes at a time, with %v in between", n, every)
	return Fault{&fault{name: fmt.Sprintf("DripReply(%d, %v)", n, every), did: did, phase: onTheReply, delivery: memnet.Delivery{Drip: n, Every: every}}}
}

// GoAway lets the call have its effect and its answer. Then the connection takes no other
// call, as with a server that restarts: over HTTP/2 a GOAWAY follows, over HTTP/1.1 the
// answer says Connection: close. Direct has no connections: there only Response.Close
// shows the fault.
func GoAway() Fault {
	const did = "answered, and then took no other call on the connection"
	return Fault{&fault{name: "GoAway()", did: did, phase: onTheReply, delivery: memnet.Delivery{Ends: memnet.GoesAway}}}
}

// sized describes a text in the name of a fault, after other arguments. It gives only the
// length, since the text may be a message or a key.
func sized(text string) string {
	if text == "" {
		return ""
	}
	return ", " + characters(text)
}

// characters gives the length of a text and not the text, which may be a message or a
// key.
func characters(text string) string {
	return fmt.Sprintf("%d characters", utf8.RuneCountInString(text))
}

// checkStatus panics for a status that no final answer can have. After a status below
// 200, net/http would wait for another answer.
func checkStatus(method string, status int) {
	if status < 200 || status > 599 {
		misuse(method, "%d is not a status from 200 to 599", status)
	}
}

// checkedHeader returns a header's value without the space around it, which a client cannot
// see. It panics for a value that would end the header's line. It does not repeat the value,
// because a test that swaps arguments may pass a key.
func checkedHeader(method, value string) string {
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if strings.ContainsFunc(value, isControl) {
		misuse(method, "the header's value holds a control character")
	}
	return textproto.TrimString(value)
}
