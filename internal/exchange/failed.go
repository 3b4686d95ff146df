package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// This file handles a request that got no answer. From the error it finds out whether the
// service may have seen the request, how the answer was missed, and whether another try
// may help. net/http exports few of its errors, so some are recognized by their words.
// The client's tests check these words against a real net/http.

var (
	errNoAnswer = errors.New("the connection, or the HTTP/2 stream, was ended without an answer")
	errCrowded  = errors.New("the HTTP/2 connection was full or closing")
)

// failed returns the Answer of a request that got no answer. If no connection took the
// request and another try may help, again is true.
func (rt *roundTrip) failed(err error) (_ Answer, again bool) {
	if rt.failedBefore(err) {
		rt.started.Store(true) // the hooks show everything
	}
	words, unwritten, why := rt.http2Words(err), rt.headers.Load() == 0, rejection(rt.rejection.Load())
	if unwritten && words == "net/http: cannot rewind body after connection loss" {
		why = full
	}
	answer := Answer{Err: rt.reason(err), Missed: rt.missed(err), Sent: rt.mayBeSent(err, why)}
	switch {
	case answer.Sent && unwritten:
	case unwritten && why == full:
		answer.Err, answer.TurnedAway, again = errCrowded, true, true
	case rt.conn.Load() != nil && rt.reused.Load() && rt.sender.everAnswered.Load():
		// Services replace their connections now and then, and net/http would have sent the
		// request again at once. A service that has never answered has another problem.
		answer.TurnedAway = rt.repeat.Load() && !rt.sameConn.Load() || isGoAway(words)
	}
	return answer, again
}

// reason returns the error for the Answer. If preventRepeat ended the try, net/http's own
// error is lost, so reason returns errNoAnswer. If net/http could not repeat the request,
// its error asks for GetBody, which no caller can set: reason returns only the cause.
func (rt *roundTrip) reason(err error) error {
	why, kept := strings.CutPrefix(err.Error(), notRepeated)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch // the error that http.Client would return
	case rt.repeat.Load():
		return errNoAnswer
	case kept:
		why, _, _ = strings.Cut(why, "] after Request.Body")
		return errors.New(why)
	}
	return err
}

// notRepeated begins net/http's error for a request that it would have sent again over
// HTTP/2, if it could have read the body again.
const notRepeated = "http2: Transport: cannot retry err ["

// missed returns how the answer was missed.
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

// isStreamRefused recognizes net/http's words for a stream that the service refused.
func isStreamRefused(err error) bool {
	text := strings.TrimPrefix(err.Error(), notRepeated)
	return strings.HasPrefix(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM; ")
}

// mayBeSent reports whether the service may have processed the request. It is false only
// if that is impossible. The cases, in order:
//
//   - The TLS handshake failed because of a certificate: nothing was processed.
//   - The header was written more than once, or the transport read the body without
//     running hooks: the request may have been sent. The error does not matter, because a
//     transport that repeats requests returns only its last error.
//   - The header was written once: only a GOAWAY proves that the service did not process
//     the request.
//   - No HTTP/2 connection took the request: nothing was written.
//   - There is a connection, and the header may be on its way. Only net/http's own
//     transport can rule that out, and only if nothing ended the try.
//   - Hooks ran but found no connection, or the transport has not read the body, for
//     example an open circuit breaker: nothing was sent.
//   - Otherwise no hook ran and there is no body: only a failed dial is certain.
func (rt *roundTrip) mayBeSent(err error, why rejection) bool {
	rt.delivery.CompareAndSwap(bodyUnread, bodyClosed) // from now on, no goroutine that RoundTrip left behind can read the body
	var op *net.OpError
	ended := rt.ctx.Err() != nil
	switch headers := rt.headers.Load(); {
	case rt.isCertificateError(err):
		return false
	case headers > 1, rt.unseen():
		return true
	case headers == 1:
		return rt.answers.Load() > 0 || rt.interim.Load() > 0 || !isGoAway(rt.http2Words(err))
	case why != none:
		return false
	case rt.connected.Load():
		return ended || rt.own == nil || errors.Is(err, context.Canceled) || isTimeout(err)
	case rt.started.Load(), rt.own != nil, rt.delivery.Load() == bodyClosed && rt.body.Size() > 0:
		return false
	}
	return ended || !errors.As(err, &op) || op.Op != "dial"
}

// http2Words returns the text of net/http's error about the HTTP/2 connection that had the
// request. It is empty if the error may come from elsewhere: once a context has ended,
// net/http returns the context's cause, which may be the error of a request to another
// service.
func (rt *roundTrip) http2Words(err error) string {
	if rt.conn.Load() == nil || rt.ctx.Err() != nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), notRepeated)
}

// isGoAway recognizes net/http's words for a GOAWAY that names an earlier stream: the
// service has not processed the request (RFC 9113, 8.7). The error's type is not exported.
// The words must begin the text: in an error that wraps another one, they may be about
// another service.
//
// REFUSED_STREAM promises the same. But HAProxy also sends it when the server behind it
// went away after it had the request, to invite a retry.
func isGoAway(words string) bool {
	return strings.HasPrefix(words, "http2: Transport received GOAWAY from server") ||
		strings.HasPrefix(words, "http2: Transport received Server's graceful shutdown GOAWAY")
}

// isCertificateError reports that the client or the service refused the other's
// certificate, or got none. With TLS 1.3 the request may be on its way when the service
// refuses a certificate. But the handshake is not over, so the service has processed
// nothing.
//
// It reports false if the handshake is over, because the connection was used before or an
// answer has come. It also reports false if the error may be about another connection:
// the context has ended and the error may be its cause, or the request may have been sent
// unseen.
func (rt *roundTrip) isCertificateError(err error) bool {
	var refused *tls.CertificateVerificationError
	var alert *net.OpError
	switch {
	case rt.ctx.Err() != nil, rt.reused.Load(), rt.answers.Load() > 0, rt.interim.Load() > 0, rt.unseen():
		return false
	case errors.As(err, &refused):
		return rt.headers.Load() == 0
	}
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// failedBefore reports that net/http's own transport failed before it ran any hook,
// because its Proxy function failed. To find that out, failedBefore calls the Proxy
// function once more.
func (rt *roundTrip) failedBefore(err error) bool {
	if rt.own == nil || rt.own.Proxy == nil || rt.started.Load() {
		return false
	}
	_, again := rt.own.Proxy(&rt.request)
	return again != nil && again.Error() == err.Error()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
