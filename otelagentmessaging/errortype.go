package otelagentmessaging

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// callErrorType is why a call failed: a status, or one of a few fixed words, as
// metrics need; "" if it did not fail.
func callErrorType(err error) string {
	if err == nil {
		return ""
	}
	failure := new(agentmessaging.Error)
	errors.As(err, &failure)
	switch {
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return "outcome_unknown"
	case failure.Local:
		return "limiter_refused"
	case failure.StatusCode >= 200 && failure.StatusCode <= 299:
		return causeType(err, "unreadable_answer")
	case failure.StatusCode != 0:
		return strconv.Itoa(failure.StatusCode)
	}
	return causeType(err, "_OTHER")
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
		return causeType(e.Err, "unreadable_answer")
	}
	return causeType(e.Err, "_OTHER")
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
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &refused):
		return "certificate_refused"
	case errors.As(err, &op) && op.Op == "dial": // also for a name that does not resolve
		return "connection_failed"
	}
	return other
}
