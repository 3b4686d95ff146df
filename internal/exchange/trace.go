package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"
)

// trace follows one request by net/http's hooks; see build. They run on the transport's
// goroutines and may fire after RoundTrip has returned, so each try has its own.
type trace struct {
	try
	sender *Sender
	stop   func()          // ends the try
	ctx    context.Context // that stop ends

	started, connected atomic.Bool
	bodyRead           atomic.Bool  // by a transport other than net/http's, or there is none
	headers            atomic.Int32 // written; a transport that repeats writes more than one
	answers            atomic.Int32 // of which the first byte has come; interim answers (1xx) do not count
	hints              atomic.Int32 // interim answers
	repeat             atomic.Bool  // net/http was about to repeat, which ended the try
	reused             atomic.Bool  // the connection was used before
	open               atomic.Bool  // net/http was about to repeat on the same connection: it is not closing
	hooks              httptrace.ClientTrace

	conn          atomic.Pointer[connection] // nil: none yet, or not HTTP/2
	answersBefore atomic.Int64               // answers of conn before this request
	alone         atomic.Pointer[connection] // that has this request alone until its first answer; nil: none
	refused       atomic.Int32               // a refusal
	looking       atomic.Bool                // it is this request's turn to look for a connection
	turnTimer     *time.Timer                // ends the turn
}

func (t *trace) getConn(string) {
	t.started.Store(true)
	if !t.preventRepeat() && t.conn.Load() != nil && t.headers.Load() == 0 {
		t.refuse(full) // and saves the dial
	}
}

func (t *trace) gotConn(info httptrace.GotConnInfo) {
	t.connected.Store(true)
	conn := t.sender.connections.find(info.Conn)
	t.leaveQueue(conn != nil)
	if t.preventRepeat() {
		if conn == nil && info.Conn != nil {
			info.Conn.Close() // HTTP/1.1 may write to an idle connection though the context has ended
		}
		t.open.Store(conn != nil && conn == t.conn.Load())
		return
	}
	t.reused.Store(info.Reused)
	if conn != nil {
		t.useHTTP2(conn)
	}
}

// useHTTP2 waits until the request may be written to conn, or refuses it. What is
// refused is not written: net/http looks at the context before.
func (t *trace) useHTTP2(conn *connection) {
	switch before := t.conn.Swap(conn); {
	case before != nil && t.headers.Load() == 0:
		t.refuse(full)
		return
	case conn.stalled() && t.number <= maxTries/2: // perhaps no other takes it
		t.refuse(stalled)
		return
	}
	alone, err := conn.admit(t.ctx)
	if alone {
		t.alone.Store(conn)
	}
	t.answersBefore.Store(conn.answers.Load())
	if err != nil {
		t.refuse(late)
	}
}

// refusal is why an HTTP/2 connection does not take a request.
type refusal int32

const (
	taken   refusal = iota // it does
	full                   // net/http looks for another one
	stalled                // nothing comes back on it
	late                   // its first answer did not come before the context ended
)

func (t *trace) refuse(why refusal) {
	t.refused.CompareAndSwap(int32(taken), int32(why))
	t.stop()
}

// queueUp waits for the request's turn to look for a connection.
func (t *trace) queueUp() error {
	if t.after == stalled {
		// For a try with retire set, a goroutine of net/http retires the connection. It
		// may run late, and does nothing if it sees first that the try has ended. So
		// more tries may follow, and each waits 1 ms longer than the one before.
		select {
		case <-time.After(time.Duration(t.number) * time.Millisecond):
		case <-t.ctx.Done():
		}
	}
	turn, err := t.sender.connections.queue.enter(t.ctx)
	if turn {
		t.turnTimer = time.AfterFunc(firstAnswerWait, func() { t.leaveQueue(false) })
	}
	t.looking.Store(turn)
	return err
}

// leaveQueue ends the request's turn, if it has one. If it found an HTTP/2 connection,
// which others may share, the next in the queue takes its turn. Otherwise all go at once.
func (t *trace) leaveQueue(http2 bool) {
	if t.looking.CompareAndSwap(true, false) {
		t.turnTimer.Stop()
		t.sender.connections.queue.leave(!http2)
	}
}

func (t *trace) answered() {
	t.answers.Add(1)
	if conn := t.conn.Load(); conn != nil {
		conn.answered()
	}
}

// finish is called when the request is over.
func (t *trace) finish() {
	t.leaveQueue(false)
	conn := t.conn.Load()
	if conn == nil || t.answers.Load() > 0 || t.hints.Load() > 0 {
		return
	}
	if held := t.alone.Load(); held != nil { // not always conn: net/http may have found another one
		<-held.alone
	}
	if t.ctx.Err() != nil && t.headers.Load() == 1 && !t.repeat.Load() {
		conn.missed(t.answersBefore.Load())
	}
}

// preventRepeat ends the try if net/http is about to send the request again: it
// looks for a connection, though the request was written and is not answered. A
// transport of the caller's may repeat what was answered. Both getConn and gotConn
// ask: getConn saves the dial, but does not run for an HTTP/2 connection that was
// dialed for another request.
func (t *trace) preventRepeat() bool {
	if t.headers.Load() > t.answers.Load() {
		t.repeat.Store(true)
		t.stop()
	}
	return t.repeat.Load()
}

// got1xx sets answers back to 0: the first byte was that of an interim answer, after
// which net/http may still repeat the request. net/http bounds the number of interim
// answers only where this hook is not set. So the bound is here.
func (t *trace) got1xx(int, textproto.MIMEHeader) error {
	t.answers.Store(0)
	if t.hints.Add(1) > maxHints {
		return errTooManyHints
	}
	return nil
}

// maxHints lets a service that works on a slow reply say so every second.
const maxHints = 1000

var (
	errTooManyHints = errors.New("too many 1xx answers before the answer")
	errNoAnswer     = errors.New("the connection, or the HTTP/2 stream, was ended without an answer")
	errCrowded      = errors.New("the HTTP/2 connection was full or closing")
)

// failed says what is known of a request that got no answer, and why no connection took
// it, if another try may help.
func (t *trace) failed(transport http.RoundTripper, err error) (Answer, refusal) {
	http2, unwritten, why := t.conn.Load() != nil, t.headers.Load() == 0, refusal(t.refused.Load())
	if http2 && unwritten && err.Error() == "net/http: cannot rewind body after connection loss" {
		why = full
	}
	crowded := unwritten && why == full
	answer := Answer{Err: t.reason(err), Missed: t.missed(err), Sent: t.maybeSent(transport, err), Renewed: crowded}
	switch {
	case crowded:
		answer.Err = errCrowded
	case http2 && t.reused.Load() && t.sender.answered.Load():
		// As a rule, the service replaces its connections now and then, and net/http would
		// have sent the request again at once. A service that never answered does not.
		answer.Renewed = t.repeat.Load() && !t.open.Load() || isGoAway(err)
	}
	if !unwritten || why == late {
		why = taken
	}
	return answer, why
}

// reason is why the try failed. If we stopped a repeat, net/http's own error is lost.
// If net/http could not repeat, it complains about GetBody, which no caller can set.
func (t *trace) reason(err error) error {
	why, kept := strings.CutPrefix(err.Error(), notRepeated)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch // as http.Client says, which is not between
	case t.repeat.Load():
		return errNoAnswer
	case kept:
		why, _, _ = strings.Cut(why, "] after Request.Body")
		return errors.New(why)
	}
	return err
}

// notRepeated is how net/http's error of a request with a body begins that it
// would have sent again over HTTP/2.
const notRepeated = "http2: Transport: cannot retry err ["

// missed sorts err.
func (t *trace) missed(err error) Missed {
	switch {
	case t.ctx.Err() != nil && !t.repeat.Load(), isTimeout(err):
		return NoAnswer
	case isRefused(err):
		return Refused
	case errors.Is(err, errTooLarge):
		return Unreadable
	}
	return Broken
}

// isRefused reports net/http's words for a stream that the service refused.
func isRefused(err error) bool {
	text := strings.TrimPrefix(err.Error(), notRepeated)
	return strings.HasPrefix(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM; ")
}

// maybeSent is false only where it is certain that the service has processed
// nothing. A header that was written counts before the error, because a
// transport that repeats returns only its last error. Where no hook ran, nothing
// is certain, unless the transport is net/http's own, which runs them. Another one's error
// of a dial is believed if it has not read the body: else it may have delivered that, and
// dialed another address then. Nor is anything certain when the try's context ends while
// the header may be on its way.
func (t *trace) maybeSent(transport http.RoundTripper, err error) bool {
	switch headers := t.headers.Load(); {
	case headers > 1:
		return true
	case headers == 0 && t.refused.Load() != 0:
		return false
	case headers == 1:
		return t.hints.Load() > 0 || !isGoAway(err)
	case isDialError(err):
		return !t.started.Load() && t.bodyRead.Load()
	case !t.started.Load():
		_, runsHooks := transport.(*http.Transport)
		return !runsHooks
	}
	return t.connected.Load() && (t.ctx.Err() != nil || errors.Is(err, context.Canceled) || isTimeout(err))
}

// isGoAway reports an error by which net/http says that an HTTP/2 service ended
// its connection with a GOAWAY that names an earlier stream: it has not processed
// the request (RFC 9113, 8.7). Its type is not exported, so its words tell; none of
// them come from the service.
//
// REFUSED_STREAM promises the same, but HAProxy sends it when its backend
// went away with the request in hand, and means it as an invitation to retry.
func isGoAway(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		text := strings.TrimPrefix(err.Error(), notRepeated)
		if strings.HasPrefix(text, "http2: Transport received GOAWAY from server") ||
			strings.HasPrefix(text, "http2: Transport received Server's graceful shutdown GOAWAY") {
			return true
		}
	}
	return false
}

func isDialError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
