package otelagentmessaging

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// The values of error.type beside status codes. They are few and fixed, as
// they are in metrics.
const (
	errorLimiter    = "limiter_refused"
	errorUnknown    = "outcome_unknown"
	errorTimeout    = "timeout"
	errorCanceled   = "canceled"
	errorCert       = "certificate_refused"
	errorConnect    = "connection_failed"
	errorUnreadable = "unreadable_answer"
	errorOther      = "_OTHER"
)

// callErrorType is why a call failed; "" if it did not.
func callErrorType(err error) string {
	if err == nil {
		return ""
	}
	failure := new(agentmessaging.Error)
	errors.As(err, &failure)
	switch {
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return errorUnknown
	case failure.Local:
		return errorLimiter
	case failure.StatusCode >= 200 && failure.StatusCode <= 299:
		return causeType(err, errorUnreadable)
	case failure.StatusCode != 0:
		return strconv.Itoa(failure.StatusCode)
	}
	return causeType(err, errorOther)
}

// requestErrorType is why a request failed, as the HTTP conventions see it: a
// redirect is an answer like any other.
func requestErrorType(e agentmessaging.AttemptEnd) string {
	switch {
	case e.StatusCode >= 400:
		return strconv.Itoa(e.StatusCode)
	case e.Err == nil:
		return ""
	case e.StatusCode != 0:
		return causeType(e.Err, errorUnreadable)
	}
	return causeType(e.Err, errorOther)
}

// causeType sorts what kept a call from an answer. A context's end comes first:
// transports wrap it in errors of every kind.
func causeType(err error, other string) string {
	var (
		timeout net.Error
		refused *tls.CertificateVerificationError
		op      *net.OpError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return errorCanceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errorTimeout
	case errors.As(err, &refused):
		return errorCert
	case errors.As(err, &op) && op.Op == "dial": // also for a name that does not resolve
		return errorConnect
	}
	return other
}
