package otelagentmessaging

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// The attributes for which no convention has a name.
const (
	keyMethod      = attribute.Key("agentmessaging.method")
	keyAttempts    = attribute.Key("agentmessaging.attempts")
	keyRefusals    = attribute.Key("agentmessaging.refusals")
	keyWaited      = attribute.Key("agentmessaging.waited")
	keyTraceID     = attribute.Key("agentmessaging.trace_id")
	keyMissed      = attribute.Key("agentmessaging.missed")
	keyVerdict     = attribute.Key("agentmessaging.verdict")
	keyAttempt     = attribute.Key("agentmessaging.attempt")
	keyWait        = attribute.Key("agentmessaging.wait")
	keyRetryReason = attribute.Key("agentmessaging.retry.reason")
	keyLimitKey    = attribute.Key("agentmessaging.limit_key")
)

// operations maps a method to its operation of the GenAI convention.
var operations = map[string]attribute.KeyValue{
	"SendMessage": semconv.GenAIOperationNameInvokeAgent,
	"CreateAgent": semconv.GenAIOperationNameCreateAgent,
}

// provider names the service. The convention's own values name model providers, and the service
// has a format of its own.
var provider = semconv.GenAIProviderNameKey.String("agent_messaging_service")

// appendOutcome adds the status, unless it is 0, and the error.type, unless it is "".
func appendOutcome(attrs []attribute.KeyValue, status int, failure string) []attribute.KeyValue {
	if status != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(status))
	}
	if failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	return attrs
}

// appendIdentifier adds an identifier of the service. It leaves out a word that is empty,
// long or not an identifier, because a proxy may echo a request there.
func appendIdentifier(attrs []attribute.KeyValue, key attribute.Key, word string) []attribute.KeyValue {
	foreign := func(r rune) bool { // anything but a letter, _ and -./0123456789: (consecutive in ASCII)
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && (r < '-' || r > ':')
	}
	if word == "" || len(word) > 128 || strings.ContainsFunc(word, foreign) {
		return attrs
	}
	return append(attrs, key.String(word))
}

// fail marks a span as failed, unless failure is "". The description stays empty, because
// error texts may hold the service's words.
func fail(span trace.Span, failure string) {
	if failure != "" {
		span.SetStatus(codes.Error, "")
	}
}

// callErrorType returns why a call failed: a status, or one of a few fixed words, because a
// metric must not have many values; "" if it did not fail.
func callErrorType(err error) string {
	if err == nil {
		return ""
	}
	failure := new(agentmessaging.Error)
	errors.As(err, &failure)
	switch {
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		return "outcome_unknown"
	case failure.Local && failure.StatusCode == 0: // refused here, but not by a limit
		return "refused_here"
	case failure.Local:
		return "limiter_refused"
	case failure.StatusCode >= 200 && failure.StatusCode <= 299:
		return causeType(err, "unreadable_answer")
	case failure.StatusCode != 0:
		return strconv.Itoa(failure.StatusCode)
	}
	return causeType(err, "_OTHER")
}

// requestErrorType returns why a request failed; "" if it did not fail. By the HTTP
// conventions a redirect is not a failure.
func requestErrorType(e agentmessaging.AttemptEnd) string {
	switch {
	case e.StatusCode >= 400:
		return strconv.Itoa(e.StatusCode)
	case e.Err == nil && e.StatusCode != 0:
		return ""
	case e.StatusCode != 0:
		return causeType(e.Err, "unreadable_answer")
	}
	return causeType(e.Err, "_OTHER") // Err is nil if the transport panicked
}

// causeType returns the kind of an error that came in place of an answer; other if the
// kind is not known. It checks for a context's end first, because transports wrap that
// error in errors of every kind.
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
	case errors.As(err, &op) && op.Op == "dial": // includes a host name that does not resolve
		return "connection_failed"
	}
	return other
}
