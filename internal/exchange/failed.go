package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// This file says what is known of a request that got no answer.

var (
	errNoAnswer = errors.New("the connection, or the HTTP/2 stream, was ended without an answer")
	errCrowded  = errors.New("the HTTP/2 connection was full or closing")
)

// failed says what is known of a request that got no answer, and why no connection took
// it, if another try may help.
func (rt *roundTrip) failed(err error) (Answer, admission) {
	words, unwritten, why := rt.http2Words(err), rt.headers.Load() == 0, admission(rt.admission.Load())
	if unwritten && words == "net/http: cannot rewind body after connection loss" {
		why = full
	}
	answer := Answer{Err: rt.reason(err), Missed: rt.missed(err), Sent: rt.maybeSent(err, why)}
	switch {
	case answer.Sent && unwritten:
		why = admitted
	case unwritten && why == full:
		answer.Err, answer.Renewed = errCrowded, true
	case rt.conn.Load() != nil && rt.reused.Load() && rt.sender.answered.Load():
		// As a rule, the service replaces its connections now and then, and net/http would
		// have sent the request again at once. A service that never answered does not.
		answer.Renewed = rt.repeat.Load() && !rt.sameConn.Load() || isGoAway(words)
	}
	if !unwritten || why == late {
		why = admitted
	}
	return answer, why
}

// reason is why the try failed. If we stopped a repeat, net/http's own error is lost.
// If net/http could not repeat, it complains about GetBody, which no caller can set.
func (rt *roundTrip) reason(err error) error {
	why, kept := strings.CutPrefix(err.Error(), notRepeated)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch // as http.Client says, which is not between
	case rt.repeat.Load():
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
func (rt *roundTrip) missed(err error) Missed {
	switch {
	case rt.ctx.Err() != nil && !rt.repeat.Load(), isTimeout(err):
		return NoAnswer
	case rt.isCertificateError(err), errors.As(err, new(proxyDenial)) && !rt.unseen():
		return Denied
	case isStreamRefused(err):
		return StreamRefused
	case errors.Is(err, errTooLarge):
		return Unreadable
	}
	return Broken
}

// isStreamRefused reports net/http's words for a stream that the service refused.
func isStreamRefused(err error) bool {
	text := strings.TrimPrefix(err.Error(), notRepeated)
	return strings.HasPrefix(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM; ")
}

// maybeSent is false only where it is certain that the service has processed nothing. A
// header that was written counts before the error, because a transport that repeats
// returns only its last error. While a connection is there, the header may be on its
// way, which only net/http's own transport knows, and only if nothing ended the try. A
// transport that runs no hook and has not read the body has given the service nothing
// to carry out: an open circuit breaker, for one. If it has read the body it may have
// delivered it, and dialed another address then. A request without a body was not sent
// if it could not dial.
func (rt *roundTrip) maybeSent(err error, why admission) bool {
	rt.delivery.CompareAndSwap(unread, closed) // what RoundTrip has left behind cannot read it later
	var op *net.OpError
	ended := rt.ctx.Err() != nil
	switch headers := rt.headers.Load(); {
	case rt.isCertificateError(err):
		return false
	case headers > 1, rt.unseen():
		return true
	case headers == 1:
		return rt.answers.Load() > 0 || rt.hints.Load() > 0 || !isGoAway(rt.http2Words(err))
	case why != admitted:
		return false
	case rt.connected.Load():
		return ended || rt.own == nil || errors.Is(err, context.Canceled) || isTimeout(err)
	case rt.started.Load(), rt.own != nil, rt.delivery.Load() == closed && rt.body.Size() > 0:
		return false
	}
	return ended || !errors.As(err, &op) || op.Op != "dial"
}

// http2Words are what net/http says of the HTTP/2 connection that had the request. They
// are empty where others may have made the error: when a context has ended, HTTP/1.1
// returns its cause, such as the error of a request to another service.
func (rt *roundTrip) http2Words(err error) string {
	if rt.conn.Load() == nil || rt.ctx.Err() != nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), notRepeated)
}

// isGoAway reports the words by which net/http says that an HTTP/2 service ended
// its connection with a GOAWAY that names an earlier stream: it has not processed
// the request (RFC 9113, 8.7). The error's type is not exported. An error around it is
// not asked: a transport of the user's may have made it of another service's.
//
// REFUSED_STREAM promises the same, but HAProxy sends it when its backend
// went away with the request in hand, and means it as an invitation to retry.
func isGoAway(words string) bool {
	return strings.HasPrefix(words, "http2: Transport received GOAWAY from server") ||
		strings.HasPrefix(words, "http2: Transport received Server's graceful shutdown GOAWAY")
}

// isCertificateError reports that one side refused the other's certificate, or refused it
// for having none. With TLS 1.3 a request may be on its way when the service says so, but
// the handshake is not over yet: nothing was carried out. Who has answered has taken the
// certificate, and of a context that has ended the error may be the cause: then it is
// about another connection. So it may be where the request was delivered unseen.
func (rt *roundTrip) isCertificateError(err error) bool {
	var refused *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case rt.ctx.Err() != nil, rt.answers.Load() > 0, rt.hints.Load() > 0, rt.unseen():
		return false
	case errors.As(err, &refused):
		return rt.headers.Load() == 0
	}
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
