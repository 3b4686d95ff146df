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
func (rt *roundTrip) failed(transport http.RoundTripper, err error) (Answer, refusal) {
	http2, unwritten, why := rt.conn.Load() != nil, rt.headers.Load() == 0, refusal(rt.refused.Load())
	if http2 && unwritten && err.Error() == "net/http: cannot rewind body after connection loss" {
		why = full
	}
	crowded := unwritten && why == full
	answer := Answer{Err: rt.reason(err), Missed: rt.missed(err), Sent: rt.maybeSent(transport, err), Renewed: crowded}
	switch {
	case crowded:
		answer.Err = errCrowded
	case http2 && rt.reused.Load() && rt.sender.answered.Load():
		// As a rule, the service replaces its connections now and then, and net/http would
		// have sent the request again at once. A service that never answered does not.
		answer.Renewed = rt.repeat.Load() && !rt.open.Load() || isGoAway(err)
	}
	if !unwritten || why == late {
		why = taken
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
func (rt *roundTrip) maybeSent(transport http.RoundTripper, err error) bool {
	switch headers := rt.headers.Load(); {
	case headers > 1:
		return true
	case headers == 0 && rt.refused.Load() != 0:
		return false
	case headers == 1:
		return rt.hints.Load() > 0 || !isGoAway(err)
	case isDialError(err):
		return !rt.started.Load() && rt.bodyRead.Load()
	case !rt.started.Load():
		_, runsHooks := transport.(*http.Transport)
		return !runsHooks
	}
	return rt.connected.Load() && (rt.ctx.Err() != nil || errors.Is(err, context.Canceled) || isTimeout(err))
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
