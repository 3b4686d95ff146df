package otelagentmessaging

import (
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// The attributes and events that no convention has a name for.
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

	eventRetry       = "agentmessaging.retry"
	eventLimiterWait = "agentmessaging.limiter_wait"
	eventCoolDown    = "agentmessaging.cool_down"
)

// operation is the GenAI operation that a method is; nil if it is none. Its
// provider tells the service apart from model providers, whose formats the
// convention's own values name.
func operation(method string) []attribute.KeyValue {
	provider := semconv.GenAIProviderNameKey.String("agent_messaging_service")
	switch method {
	case "SendMessage":
		return []attribute.KeyValue{semconv.GenAIOperationNameInvokeAgent, provider}
	case "CreateAgent":
		return []attribute.KeyValue{semconv.GenAIOperationNameCreateAgent, provider}
	}
	return nil
}

// endAttributes hold the request too where the call made one: the first of a
// repeated call is not there any more.
func (c *call) endAttributes(e agentmessaging.CallEnd, failure string) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 10), keyAttempts.Int(e.Attempts), keyWaited.Float64(e.Waited.Seconds()))
	if e.Refusals > 0 {
		attrs = append(attrs, keyRefusals.Int(e.Refusals))
	}
	if isIdentifier(e.AgentID) {
		attrs = append(attrs, semconv.GenAIAgentID(e.AgentID))
	}
	if isIdentifier(e.TraceID) {
		attrs = append(attrs, keyTraceID.String(e.TraceID))
	}
	if unknown := (*agentmessaging.OutcomeUnknownError)(nil); errors.As(e.Err, &unknown) {
		attrs = append(attrs, keyMissed.String(string(unknown.Missed)))
	}
	if c.request.attempt == 1 {
		return ended(c.requestAttributes(attrs), c.request.status, failure)
	}
	return ended(attrs, 0, failure)
}

func (c *call) requestAttributes(attrs []attribute.KeyValue) []attribute.KeyValue {
	attrs = append(append(attrs, c.ofRequest...), semconv.URLFull(c.url.String()))
	if c.request.verdict != agentmessaging.VerdictDone {
		attrs = append(attrs, keyVerdict.String(string(c.request.verdict)))
	}
	return attrs
}

func coolDownAttributes(e agentmessaging.CoolDown) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyWait.Float64(e.Wait.Seconds())}
	if isIdentifier(e.LimitKey) {
		attrs = append(attrs, keyLimitKey.String(e.LimitKey))
	}
	return attrs
}

// ended adds how something ended: its status, unless that is 0, and its
// error.type, unless that is "".
func ended(attrs []attribute.KeyValue, status int, failure string) []attribute.KeyValue {
	if status != 0 {
		attrs = append(attrs, semconv.HTTPResponseStatusCode(status))
	}
	if failure != "" {
		attrs = append(attrs, semconv.ErrorTypeKey.String(failure))
	}
	return attrs
}

// isIdentifier keeps out of a span what of the service's words is long, or a
// sentence, such as a request that a proxy echoes.
func isIdentifier(text string) bool {
	foreign := func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/", r)
	}
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, foreign)
}

// fail marks the span of what failed; failure is "" for what did not. The
// description stays empty: error texts may hold the service's words.
func fail(span trace.Span, failure string) {
	if failure != "" {
		span.SetStatus(codes.Error, "")
	}
}
