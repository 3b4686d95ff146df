package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
)

// This file decides about a request that got no answer: whether the service may have seen
// it, how the answer was missed, and whether another try may help. It decides from facts
// and the transport's error alone. net/http exports few of its errors, so some are
// recognized by their words. The client's tests check these words against a real net/http.

// facts holds what is known of a try. Hooks may still run after RoundTrip has returned, so
// all decisions about a failure use one copy of the facts.
type facts struct {
	isHTTPTransport bool      // the transport is net/http's own
	hasBody         bool      // the request has a body
	bodyReadEarly   bool      // the body may have been read before there was a connection; a POST without a body counts as read
	bodySealed      bool      // the body was not read, and cannot be read any more
	lookedForConn   bool      // the transport has looked for a connection (GetConn or GotConn)
	connected       bool      // the transport has a connection (GotConn)
	http2           bool      // a connection was HTTP/2
	reused          bool      // the connection was used before
	headers         int       // how often the header was written; more than once by a transport that repeats
	answers         int       // how many answers have begun; interim answers (1xx) do not count
	interim         int       // how many interim answers have come
	repeat          bool      // the transport was about to repeat the request, so the try was ended
	sameConn        bool      // the repeat would have used the same connection, so that connection is not closing
	rejection       rejection // why no HTTP/2 connection took the request
	ended           bool      // the context of the try has ended
	everAnswered    bool      // the service has answered a request of the Sender
}

// rejection says why an HTTP/2 connection did not take a request.
type rejection int

const (
	notRejected   rejection = iota // it took the request, or another try would not help
	noRoom                         // the connection has no room: net/http looks for another one
	noFirstAnswer                  // the connection's first answer did not come before the context ended
)

var (
	errNothing        = errors.New("the transport returned neither an answer nor an error")
	errNoAnswer       = errors.New("the connection, or the HTTP/2 stream, was ended without an answer")
	errCrowded        = errors.New("the HTTP/2 connection was full or closing")
	errTooLarge       = errors.New("the body is larger than any documented one")
	errTooManyInterim = errors.New("too many 1xx answers before the answer")
)

// failure returns the Answer for a request that got none. again means that no connection
// took the request, and another try may help.
func (f facts) failure(err error) (_ Answer, again bool) {
	words, unwritten := f.http2Words(err), f.headers == 0
	if words == cannotRewind {
		f.rejection = noRoom
	}
	answer := Answer{Err: f.reason(err), Missed: f.missed(err), Sent: f.maybeSent(err)}
	switch {
	case unwritten && answer.Sent: // another connection must not get it
	case unwritten && f.rejection == noRoom:
		answer.Err, answer.OtherConnection = errCrowded, true
		return answer, true
	case f.http2 && f.reused && f.everAnswered:
		// Services replace their connections now and then, and net/http would have sent the
		// request again at once. A service that has never answered has another problem.
		answer.OtherConnection = f.repeat && !f.sameConn || f.isGoAway(words)
	}
	return answer, false
}

// reason returns the error for the Answer. If the try ended before a repeat, net/http's
// own error is lost, so reason returns errNoAnswer. If net/http could not repeat the
// request, its error asks for GetBody, which no caller can set: reason returns only the
// cause.
func (f facts) reason(err error) error {
	why, kept := strings.CutPrefix(err.Error(), notRepeated)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record) && string(record.RecordHeader[:]) == "HTTP/":
		return http.ErrSchemeMismatch // the error that http.Client would return
	case f.repeat:
		return errNoAnswer
	case kept:
		why, _, _ = strings.Cut(why, "] after Request.Body")
		return errors.New(why)
	}
	return err
}

// cannotRewind is net/http's error for a request that it would have written to another
// connection, if it could have read the body again: this one has not taken it, and nothing was
// written.
const cannotRewind = "net/http: cannot rewind body after connection loss"

// notRepeated begins net/http's error for a request that it would have sent again over
// HTTP/2, if it could have read the body again.
const notRepeated = "http2: Transport: cannot retry err ["

// missed returns how the answer was missed.
func (f facts) missed(err error) Missed {
	switch {
	case f.ended && !f.repeat, isTimeout(err):
		return NoAnswer
	case f.isCertificateError(err), errors.As(err, new(proxyDenial)) && !f.maybeSentUnseen():
		return Denied
	case isStreamRefused(err):
		return StreamRefused
	case errors.Is(err, errTooLarge):
		return Unreadable
	}
	return Broken
}

// maybeSent reports whether the service may have processed the request. It is false only
// if that is impossible.
func (f facts) maybeSent(err error) bool {
	var op *net.OpError
	switch {
	case f.isCertificateError(err): // the TLS handshake failed
		return false
	case f.headers > 1, f.maybeSentUnseen(): // err does not matter: a transport that repeats requests returns only its last error
		return true
	case f.headers == 1: // only a GOAWAY proves that the service did not process the request
		return f.answering() || !f.isGoAway(f.http2Words(err))
	case f.rejection != notRejected: // no HTTP/2 connection took the request: nothing was written
		return false
	case f.connected:
		// The header may be on its way. Only net/http's own transport can rule that out, and
		// only if nothing ended the try.
		return f.ended || !f.isHTTPTransport || errors.Is(err, context.Canceled) || isTimeout(err)
	case f.lookedForConn, f.hasBody:
		// The hooks show that there was no connection. Or the transport has not read the body,
		// for example because its circuit breaker is open.
		return false
	}
	// No hook ran and there is no body: only a failed dial is certain.
	return f.ended || !errors.As(err, &op) || op.Op != "dial"
}

// maybeSentUnseen reports that the transport may have read the body and sent it without
// running hooks, for example over HTTP/3. It has not if it is net/http's own and has looked
// for a connection, because then the hooks show everything. If there is no body, the hooks
// are believed: otherwise each failed dial would leave the request in doubt.
func (f facts) maybeSentUnseen() bool {
	certain := f.lookedForConn && (f.isHTTPTransport || !f.hasBody)
	return f.bodyReadEarly && !certain
}

// answering reports that an answer, or an interim answer, has begun.
func (f facts) answering() bool { return f.answers > 0 || f.interim > 0 }

// isCertificateError reports that the client or the service refused the other's
// certificate, or got none. With TLS 1.3 the request may be on its way when the service
// refuses a certificate. But the handshake is not over, so the service has processed
// nothing.
//
// It reports false if the handshake is over, because the connection was used before or an
// answer has come. It also reports false if the error may be about another connection:
// the context has ended and the error may be its cause, or the request may have been sent
// unseen.
func (f facts) isCertificateError(err error) bool {
	var alert *net.OpError
	switch {
	case f.ended, f.reused, f.answering(), f.maybeSentUnseen():
		return false
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return f.headers == 0
	}
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}

// http2Words returns the text of net/http's error about the HTTP/2 connection that had the
// request. It is empty if the error may come from elsewhere: once a context has ended,
// net/http returns the context's cause, which may be the error of a request to another
// service.
func (f facts) http2Words(err error) string {
	if !f.http2 || f.ended {
		return ""
	}
	return err.Error()
}

// isGoAway recognizes net/http's words for a GOAWAY that names an earlier stream: the
// service has not processed the request (RFC 9113, 8.7). The error's type is not exported.
// The words must begin the text: in an error that wraps another one, they may be about
// another service.
//
// For the first stream of a connection, net/http returns the words alone. For a later stream
// it wants to repeat the request, cannot read the body again, and puts notRepeated in front of
// the words. Alone, they are then not believed: the connection may be a tunnel through another
// HTTP/2 connection, whose GOAWAY looks the same.
//
// REFUSED_STREAM promises the same. But HAProxy also sends it when the server behind it
// went away after it had the request, to invite a retry.
func (f facts) isGoAway(words string) bool {
	return strings.HasPrefix(words, notRepeated+"http2: Transport received Server's graceful shutdown GOAWAY") ||
		!f.reused && strings.HasPrefix(words, "http2: Transport received GOAWAY from server")
}

// isStreamRefused recognizes net/http's words for a stream that the service refused.
func isStreamRefused(err error) bool {
	text := strings.TrimPrefix(err.Error(), notRepeated)
	return strings.HasPrefix(text, "stream error: stream ID ") && strings.Contains(text, "; REFUSED_STREAM; ")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
