package otelagentmessaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"

// NewObserver returns an observer for agentmessaging.WithObserver. Its error is an
// *agentmessaging.ValidationError about an option, or the meter provider's error about an
// instrument.
func NewObserver(opts ...Option) (agentmessaging.Observer, error) {
	settings := &settings{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for i, opt := range opts {
		if opt == nil {
			return nil, &agentmessaging.ValidationError{Field: "opts", Reason: fmt.Sprintf("option %d is nil", i+1)}
		}
		if err := opt(settings); err != nil {
			return nil, err
		}
	}
	instruments, err := newInstruments(settings.meters.Meter(ScopeName,
		metric.WithInstrumentationVersion(agentmessaging.Version), metric.WithSchemaURL(semconv.SchemaURL)))
	if err != nil {
		return nil, err
	}
	tracer := settings.tracers.Tracer(ScopeName,
		trace.WithInstrumentationVersion(agentmessaging.Version), trace.WithSchemaURL(semconv.SchemaURL))
	return &observer{tracer: tracer, instruments: instruments, noHTTP: settings.noHTTP}, nil
}

type observer struct {
	tracer      trace.Tracer
	instruments *instruments
	noHTTP      bool
	endpoints   sync.Map // by endpointKey: the endpoints of the calls so far
}

// call is the observer's state of a call that is under way. It is also the call's
// context, which has the span. The events of a call come one after the other, so it needs
// no lock.
type call struct {
	context.Context
	*endpoint
	observer *observer
	span     trace.Span
	url      *url.URL
	request  request
	verdict  agentmessaging.Verdict // what the service has done after all attempts so far
}

// callKey is the context key of the call. It contains the observer, because a client may
// have two observers, with different providers.
type callKey struct{ *observer }

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{c.observer}) {
		return c
	}
	return c.Context.Value(key)
}

// Observe implements agentmessaging.Observer.
func (o *observer) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	if start, ok := event.(agentmessaging.CallStart); ok {
		return o.startCall(ctx, start)
	}
	c, ok := ctx.Value(callKey{o}).(*call)
	if !ok {
		return nil // another observer has returned an older context
	}
	switch e := event.(type) {
	case agentmessaging.RequestStart:
		if !o.noHTTP {
			c.request = request{attempt: e.Attempt, began: time.Now()}
		}
	case agentmessaging.AttemptEnd:
		c.request.status, c.request.verdict, c.request.failure = e.StatusCode, e.Verdict, requestErrorType(e)
		if e.Verdict != agentmessaging.VerdictNotDone { // an attempt that did nothing leaves what an earlier one may have done
			c.verdict = e.Verdict
		}
	case agentmessaging.Retry:
		o.endRequest(c, true)
		c.span.AddEvent("agentmessaging.retry", trace.WithAttributes(
			keyAttempt.Int(e.Attempt), keyRetryReason.String(e.Outcome), keyWait.Float64(e.Wait.Seconds())))
		o.instruments.retries.Add(c, 1, metric.WithAttributes(c.callMetric...), metric.WithAttributes(keyRetryReason.String(e.Outcome)))
	case agentmessaging.LimiterWait:
		c.span.AddEvent("agentmessaging.limiter_wait", trace.WithAttributes(
			keyAttempt.Int(e.Attempt), keyWait.Float64(e.Wait.Seconds())))
		o.instruments.wait.Record(c, e.Wait.Seconds(), c.callSuccess...)
	case agentmessaging.CoolDown:
		attrs := []attribute.KeyValue{keyWait.Float64(e.Wait.Seconds())}
		c.span.AddEvent("agentmessaging.cool_down", trace.WithAttributes(appendIdentifier(attrs, keyLimitKey, e.LimitKey)...))
	case agentmessaging.CallEnd:
		o.endCall(c, e)
	}
	return nil
}

func (o *observer) startCall(ctx context.Context, e agentmessaging.CallStart) context.Context {
	c := &call{endpoint: o.endpoint(e.Endpoint, e.URL), observer: o, url: e.URL, verdict: agentmessaging.VerdictNotDone}
	c.Context, c.span = o.tracer.Start(ctx, c.callSpan, c.startOptions...)
	return c
}

func (o *observer) endCall(c *call, e agentmessaging.CallEnd) {
	failure := callErrorType(e.Err)
	if c.span.IsRecording() {
		c.span.SetAttributes(c.endAttributes(e, failure)...)
		fail(c.span, failure)
	}
	o.endRequest(c, c.request.attempt > 1)
	c.span.End()
	o.instruments.recordCall(c, c.endpoint, e.Elapsed.Seconds(), failure)
}

// endRequest records the last request, if one was sent. It runs right after the attempt's
// end, so the request ends now. With ownSpan, which is for a call of several requests, it gets
// a span below the call's span. The metric's exemplar points to the request's span, or else to
// the call's.
func (o *observer) endRequest(c *call, ownSpan bool) {
	if c.request.attempt == 0 {
		return
	}
	ctx := context.Context(c)
	if ownSpan {
		attrs := appendOutcome(appendVerdict(c.appendRequest(server(c.url)), c.request.verdict), c.request.status, c.request.failure)
		if c.request.attempt > 1 {
			attrs = append(attrs, semconv.HTTPRequestResendCount(c.request.attempt-1))
		}
		var span trace.Span
		ctx, span = o.tracer.Start(c, c.requestSpan,
			trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.request.began), trace.WithAttributes(attrs...))
		fail(span, c.request.failure)
		span.End()
	}
	o.instruments.recordRequest(ctx, c.endpoint, c.request)
	c.request = request{}
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

// endAttributes returns the attributes of a call's end. If the call made only one request,
// they include the request's. Otherwise each request has a span.
func (c *call) endAttributes(e agentmessaging.CallEnd, failure string) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 10), keyAttempts.Int(e.Attempts), keyWaited.Float64(e.Waited.Seconds()))
	if e.Refusals > 0 {
		attrs = append(attrs, keyRefusals.Int(e.Refusals))
	}
	attrs = appendIdentifier(attrs, semconv.GenAIAgentIDKey, e.AgentID)
	traceID := e.TraceID
	if e.Err != nil {
		refused, unknown := new(agentmessaging.Error), new(agentmessaging.OutcomeUnknownError)
		errors.As(e.Err, &refused)
		traceID = cmp.Or(traceID, refused.TraceID) // for a call refused here, the trace_id of the answer that closed the limit
		if errors.As(e.Err, &unknown) {
			attrs = append(attrs, keyMissed.String(string(unknown.Missed)))
		}
	}
	attrs = appendVerdict(appendIdentifier(attrs, keyTraceID, traceID), c.verdict)
	if c.request.attempt == 1 {
		return appendOutcome(c.appendRequest(attrs), c.request.status, failure)
	}
	return appendOutcome(attrs, 0, failure)
}

func (c *call) appendRequest(attrs []attribute.KeyValue) []attribute.KeyValue {
	return append(append(attrs, c.requestAttributes...), semconv.URLFull(c.url.String()))
}

// appendVerdict adds the verdict of a call or a request, unless it is VerdictDone.
func appendVerdict(attrs []attribute.KeyValue, verdict agentmessaging.Verdict) []attribute.KeyValue {
	if verdict != agentmessaging.VerdictDone {
		attrs = append(attrs, keyVerdict.String(string(verdict)))
	}
	return attrs
}

// An Option changes the observer of [NewObserver], which refuses a nil option and an
// option given nil.
type Option func(*settings) error

type settings struct {
	tracers trace.TracerProvider
	meters  metric.MeterProvider
	noHTTP  bool
}

// WithTracerProvider makes the spans with provider. The default is the global provider,
// even if it is set after the observer was made.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(s *settings) error {
		s.tracers = provider
		return refuseNil("WithTracerProvider", provider)
	}
}

// WithMeterProvider records the metrics with provider. The default is the global
// provider, even if it is set after the observer was made.
func WithMeterProvider(provider metric.MeterProvider) Option {
	return func(s *settings) error {
		s.meters = provider
		return refuseNil("WithMeterProvider", provider)
	}
}

// WithoutHTTP leaves the HTTP spans and http.client.request.duration to the
// client's transport, such as otelhttp's. The transport's spans are children of the
// call's span.
func WithoutHTTP() Option {
	return func(s *settings) error {
		s.noHTTP = true
		return nil
	}
}

// refuseNil also refuses a nil pointer, as a variable of an SDK's type has before it is set.
func refuseNil(name string, given any) error {
	if v := reflect.ValueOf(given); v.IsValid() && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return nil
	}
	return &agentmessaging.ValidationError{Field: name, Reason: "was given nil; leave the option out for the default"}
}
