package otelagentmessaging

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
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

// An endpoint of a server has all that the telemetry of its calls has in
// common. It is made once, since calls that succeed differ in little else.
type endpoint struct {
	name, request string                  // names of spans
	start         []trace.SpanStartOption // of the call's span

	ofRequest    []attribute.KeyValue // of a span that covers one request
	ofCalls      []attribute.KeyValue // of the metrics of this package
	ofOperations []attribute.KeyValue // of the metric of agent operations; nil where the method is none
	ofRequests   []attribute.KeyValue // of the metric of requests

	// The same for what succeeds.
	called, operated, requested []metric.RecordOption
}

// newEndpoint makes spans of kind INTERNAL where the transport makes those of
// kind CLIENT, but for the agent operations, whose convention asks for CLIENT.
func newEndpoint(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	of := server(base)
	x := &endpoint{
		name: "agentmessaging." + e.Name, request: e.Method + " " + e.Path,
		ofRequest: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)},
		ofCalls:   slices.Concat(of, []attribute.KeyValue{keyMethod.String(e.Name)}),
	}
	kind := trace.SpanKindClient
	operation := operation(e.Name)
	if operation != nil {
		x.name = operation[0].Value.AsString()
		x.ofOperations = slices.Concat(of, operation)
		x.operated = recorded(x.ofOperations)
	} else if noHTTP {
		kind = trace.SpanKindInternal
	}
	x.start = []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(slices.Concat(x.ofCalls, operation)...)}
	x.ofRequests = slices.Concat(of, x.ofRequest, []attribute.KeyValue{semconv.URLScheme(base.Scheme)})
	x.called = recorded(x.ofCalls)
	x.requested = recorded(x.ofRequests, semconv.HTTPResponseStatusCode(200))
	return x
}

// recorded are the attributes of a measurement, and more.
func recorded(attrs []attribute.KeyValue, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(slices.Concat(attrs, more)...))}
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

// endpoints are those that were called. They are read without a lock.
type endpoints struct {
	known atomic.Pointer[map[endpointKey]*endpoint]
}

type endpointKey struct{ name, scheme, host string }

func (x *endpoints) of(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	key := endpointKey{e.Name, base.Scheme, base.Host}
	known := x.known.Load()
	if found := (*known)[key]; found != nil {
		return found
	}
	made := newEndpoint(e, base, noHTTP)
	more := map[endpointKey]*endpoint{key: made}
	maps.Copy(more, *known)
	x.known.CompareAndSwap(known, &more) // whoever loses makes it again next time
	return made
}
