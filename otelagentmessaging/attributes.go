package otelagentmessaging

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
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

// provider names the service. The values of the convention name model providers, whose
// formats the service does not speak.
var provider = semconv.GenAIProviderNameKey.String("agent_messaging_service")

// endAttributes returns the attributes of a call's end. If the call made only one request,
// they include the request's; otherwise each request has a span.
func (c *call) endAttributes(e agentmessaging.CallEnd, failure string) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 10), keyAttempts.Int(e.Attempts), keyWaited.Float64(e.Waited.Seconds()))
	if e.Refusals > 0 {
		attrs = append(attrs, keyRefusals.Int(e.Refusals))
	}
	attrs = appendIdentifier(attrs, semconv.GenAIAgentIDKey, e.AgentID)
	refused := new(agentmessaging.Error)
	errors.As(e.Err, &refused)
	attrs = appendIdentifier(attrs, keyTraceID, cmp.Or(e.TraceID, refused.TraceID)) // for a call refused here, the trace_id of the answer that closed the limit
	attrs = c.appendVerdict(attrs)
	if unknown := (*agentmessaging.OutcomeUnknownError)(nil); errors.As(e.Err, &unknown) {
		attrs = append(attrs, keyMissed.String(string(unknown.Missed)))
	}
	if c.request.attempt == 1 {
		return appendOutcome(c.appendRequest(attrs), c.request.status, failure)
	}
	return appendOutcome(attrs, 0, failure)
}

func (c *call) appendRequest(attrs []attribute.KeyValue) []attribute.KeyValue {
	return append(append(attrs, c.requestAttributes...), semconv.URLFull(c.url.String()))
}

// appendVerdict adds the verdict of the last attempt, unless it is VerdictDone.
func (c *call) appendVerdict(attrs []attribute.KeyValue) []attribute.KeyValue {
	if verdict := c.request.verdict; verdict != "" && verdict != agentmessaging.VerdictDone {
		attrs = append(attrs, keyVerdict.String(string(verdict)))
	}
	return attrs
}

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
	return causeType(e.Err, "_OTHER") // without an error, the transport panicked
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

// An endpoint has the names, options and attributes that the telemetry of all its calls
// shares. It is made once for each server, so that a call that succeeds adds little.
type endpoint struct {
	callSpan, requestSpan string                  // names
	startOptions          []trace.SpanStartOption // options for the call's span

	requestAttributes []attribute.KeyValue // for a span that covers one request
	callMetric        []attribute.KeyValue // for this package's metrics
	operationMetric   []attribute.KeyValue // for the metric of agent operations; nil: the method is not an operation
	requestMetric     []attribute.KeyValue // for the metric of requests

	// The same as options, for a call, operation or request that succeeds.
	callSuccess, operationSuccess, requestSuccess []metric.RecordOption
}

// newEndpoint returns the endpoint of a server. The spans of calls are of kind CLIENT.
// With noHTTP the transport makes CLIENT spans, so the spans of calls are INTERNAL. Agent
// operations are always CLIENT, because their convention asks for it.
func newEndpoint(e agentmessaging.Endpoint, base *url.URL, noHTTP bool) *endpoint {
	x := &endpoint{
		callSpan: "agentmessaging." + e.Name, requestSpan: e.Method + " " + e.Path,
		requestAttributes: []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(e.Method), semconv.URLTemplate(e.Path)},
		callMetric:        append(server(base), keyMethod.String(e.Name)),
	}
	kind, attrs := trace.SpanKindClient, x.callMetric
	if operation, is := operations[e.Name]; is {
		x.callSpan = operation.Value.AsString()
		x.operationMetric = append(server(base), operation, provider)
		x.operationSuccess = recorded(x.operationMetric)
		attrs = slices.Concat(attrs, []attribute.KeyValue{operation, provider})
	} else if noHTTP {
		kind = trace.SpanKindInternal
	}
	x.startOptions = []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(attrs...)}
	x.requestMetric = append(append(server(base), x.requestAttributes...), semconv.URLScheme(base.Scheme))
	x.callSuccess = recorded(x.callMetric)
	x.requestSuccess = recorded(x.requestMetric, semconv.HTTPResponseStatusCode(200))
	return x
}

// recorded returns attributes as an option of a measurement.
func recorded(attrs []attribute.KeyValue, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(slices.Concat(attrs, more)...))}
}

// server returns the attributes for the server's address in u.
func server(u *url.URL) []attribute.KeyValue {
	port, err := strconv.Atoi(u.Port())
	if err != nil { // the address leaves the port to its scheme
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{semconv.ServerAddress(u.Hostname()), semconv.ServerPort(port)}
}

type endpointKey struct{ name, scheme, host string }

func (o *observer) endpoint(e agentmessaging.Endpoint, base *url.URL) *endpoint {
	key := endpointKey{e.Name, base.Scheme, base.Host}
	made, found := o.endpoints.Load(key)
	if !found {
		made, _ = o.endpoints.LoadOrStore(key, newEndpoint(e, base, o.noHTTP))
	}
	return made.(*endpoint)
}
