package agentmessaging

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// ending is how an attempt ended, as far as retries are concerned.
type ending int

const (
	endedWell ending = iota
	endedUnsent
	endedLost
	endedLimited
	endedDown
	endedUnavailable
	endedBroken
	endedOtherwise
	endedCertificate
	endedByContext
	endedByContextSent
	endedRefused
)

// outcome is how one attempt ended.
type outcome struct {
	status  int // 0: no answer
	header  http.Header
	body    []byte // bounded
	traceID string // of a 2xx
	answer  *Error // what an answer that is no success says of itself
	err     error  // no answer, or why a 2xx cannot be read
	sent    bool   // the service may have seen the request
	refused bool   // by the limiter; nothing was sent
	renewed bool   // no answer, because the service renewed its connection
}

// success reports a 2xx status. err says why its body cannot be read, if so.
func (o *outcome) success() bool { return isSuccess(o.status) }

func (o *outcome) failed() bool { return o.err != nil || !o.success() }

func (o *outcome) limited() bool { return isLimited(o.status) }

// ending sorts an outcome of a call to endpoint. ctxErr is the error of the
// call's context, which counts only where there is no answer: what has arrived
// is kept.
func (o *outcome) ending(endpoint *spec.Endpoint, ctxErr error) ending {
	switch {
	case o.refused:
		return endedRefused
	case o.status == 0:
		return o.endingUnanswered(ctxErr)
	case !o.failed():
		return endedWell
	case o.success() && ctxErr != nil:
		return endedByContextSent
	case o.success():
		return endedLost
	case o.limited():
		return endedLimited
	case isServerError(o.status):
		return o.endingServerError(endpoint)
	}
	return endedOtherwise
}

// endingServerError knows one status after which nothing was done: the 503
// that the interface lists, in the service's own words.
func (o *outcome) endingServerError(endpoint *spec.Endpoint) ending {
	switch {
	case isUnavailable(o.status) && endpoint.Lists(o.status) && o.answer.Code != "":
		return endedUnavailable
	case isUnavailable(o.status), isGateway(o.status):
		return endedDown
	}
	return endedBroken
}

func (o *outcome) endingUnanswered(ctxErr error) ending {
	switch {
	case o.sent && ctxErr != nil:
		return endedByContextSent
	case ctxErr != nil:
		return endedByContext
	case isCertificateError(o.err):
		return endedCertificate
	case o.sent:
		return endedLost
	}
	return endedUnsent
}

// askedWait is the wait that the answer asks for, and after a 429 that asks
// for none, a second.
func (o *outcome) askedWait() time.Duration {
	switch {
	case o.answer == nil:
		return 0
	case o.limited() && o.answer.RetryAfter == 0:
		return cooldown.LeastShut
	}
	return o.answer.RetryAfter
}

// isCertificateError reports that one side refused the other's certificate, or its
// having none. With TLS 1.3 a request may be on its way when the service says so,
// but the handshake is not over yet: nothing was carried out.
func isCertificateError(err error) bool {
	var verification *tls.CertificateVerificationError
	if errors.As(err, &verification) {
		return true
	}
	var alert *net.OpError
	return errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(alert.Err.Error(), "certificate")
}
