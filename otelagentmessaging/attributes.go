package otelagentmessaging

import (
	"net/url"
	"strconv"
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
	keyWaited      = attribute.Key("agentmessaging.waited")
	keyTraceID     = attribute.Key("agentmessaging.trace_id")
	keyAttempt     = attribute.Key("agentmessaging.attempt")
	keyWait        = attribute.Key("agentmessaging.wait")
	keyRetryReason = attribute.Key("agentmessaging.retry.reason")
	keyLimitKey    = attribute.Key("agentmessaging.limit_key")

	eventRetry       = "agentmessaging.retry"
	eventLimiterWait = "agentmessaging.limiter_wait"
	eventCoolDown    = "agentmessaging.cool_down"
)

// providerName tells the service apart from model providers, whose formats the
// convention's own values stand for.
const providerName = "agent_messaging_service"

// maxIdentifier bounds what of the service's words gets into a span.
const maxIdentifier = 128

// operation is the GenAI operation that a method is; false if it is none.
func operation(method string) (attribute.KeyValue, bool) {
	switch method {
	case "SendMessage":
		return semconv.GenAIOperationNameInvokeAgent, true
	case "CreateAgent":
		return semconv.GenAIOperationNameCreateAgent, true
	}
	return attribute.KeyValue{}, false
}

// callName is that of a call's span. The agents have no name to add to it.
func callName(endpoint agentmessaging.Endpoint) (string, trace.SpanKind) {
	if name, ok := operation(endpoint.Name); ok {
		return name.Value.AsString(), trace.SpanKindClient
	}
	return "agentmessaging." + endpoint.Name, trace.SpanKindInternal
}

// callAttributes are there from the start, for samplers.
func callAttributes(c *call, e agentmessaging.CallStart) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 6), keyMethod.String(e.Endpoint.Name))
	attrs = append(attrs, c.server...)
	if name, ok := operation(e.Endpoint.Name); ok {
		attrs = append(attrs, name, semconv.GenAIProviderNameKey.String(providerName))
	}
	if e.AgentID != "" {
		attrs = append(attrs, semconv.GenAIAgentID(e.AgentID))
	}
	return attrs
}

func callEndAttributes(e agentmessaging.CallEnd) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyAttempts.Int(e.Attempts), keyWaited.Float64(e.Waited.Seconds())}
	if isIdentifier(e.AgentID) {
		attrs = append(attrs, semconv.GenAIAgentID(e.AgentID))
	}
	if isIdentifier(e.TraceID) {
		attrs = append(attrs, keyTraceID.String(e.TraceID))
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

// isIdentifier keeps sentences out, such as a request that a proxy echoes.
func isIdentifier(text string) bool {
	foreign := func(r rune) bool {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return false
		}
		return !strings.ContainsRune("_-.:/", r)
	}
	return text != "" && len(text) <= maxIdentifier && !strings.ContainsFunc(text, foreign)
}

func requestAttributes(c *call, e agentmessaging.RequestStart) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 6),
		semconv.HTTPRequestMethodKey.String(e.Endpoint.Method), semconv.URLFull(c.url), semconv.URLTemplate(e.Endpoint.Path))
	attrs = append(attrs, c.server...)
	if e.Attempt > 1 {
		attrs = append(attrs, semconv.HTTPRequestResendCount(e.Attempt-1))
	}
	return attrs
}

// server is where the client's address points.
func server(u *url.URL) []attribute.KeyValue {
	port := 443
	if u.Scheme == "http" {
		port = 80
	}
	if given, err := strconv.Atoi(u.Port()); err == nil {
		port = given
	}
	return []attribute.KeyValue{semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
}

// fail marks the span of what failed; failure is "" for what did not. The
// description stays empty: error texts may hold the service's words.
func fail(span trace.Span, failure string) {
	if failure == "" {
		return
	}
	span.SetStatus(codes.Error, "")
	span.SetAttributes(semconv.ErrorTypeKey.String(failure))
}
