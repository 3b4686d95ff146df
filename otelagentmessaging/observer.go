package otelagentmessaging

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// ScopeName is the instrumentation scope of all spans and metrics.
const ScopeName = "github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"

// NewObserver returns an observer for agentmessaging.WithObserver. Its error
// is an *agentmessaging.ValidationError for an option, or what the meter
// provider says of an instrument.
func NewObserver(opts ...Option) (agentmessaging.Observer, error) {
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	instruments, err := newInstruments(settings)
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
}

// call is what an observer keeps of a call that is under way, in its context.
// The events of a call come one after the other, so it needs no lock.
type call struct {
	span   trace.Span
	server []attribute.KeyValue // server.address and server.port
	scheme string
	url    string

	request trace.Span // of the current attempt; nil unless it was sent
	began   time.Time  // the request
}

// callKey finds the call in a context. It holds the observer, because a client
// may have two, with providers of their own.
type callKey struct{ *observer }

// Observe implements agentmessaging.Observer.
func (o *observer) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	if start, ok := event.(agentmessaging.CallStart); ok {
		return o.startCall(ctx, start)
	}
	c, ok := ctx.Value(callKey{o}).(*call)
	if !ok {
		return nil // another observer has put a context of its own in between
	}
	switch e := event.(type) {
	case agentmessaging.RequestStart:
		return o.startRequest(ctx, c, e)
	case agentmessaging.AttemptEnd:
		o.endRequest(ctx, c, e)
	case agentmessaging.Retry:
		o.retry(ctx, c, e)
	case agentmessaging.LimiterWait:
		o.limiterWait(ctx, c, e)
	case agentmessaging.CoolDown:
		o.coolDown(ctx, c, e)
	case agentmessaging.CallEnd:
		o.endCall(ctx, c, e)
	}
	return nil
}

func (o *observer) startCall(ctx context.Context, e agentmessaging.CallStart) context.Context {
	c := &call{server: server(e.URL), scheme: e.URL.Scheme, url: e.URL.String()}
	name, kind := callName(e.Endpoint)
	ctx, c.span = o.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(callAttributes(c, e)...))
	return context.WithValue(ctx, callKey{o}, c)
}

func (o *observer) endCall(ctx context.Context, c *call, e agentmessaging.CallEnd) {
	failure := callErrorType(e.Err)
	if c.span.IsRecording() {
		c.span.SetAttributes(callEndAttributes(e)...)
		fail(c.span, failure)
	}
	c.span.End()
	o.instruments.recordCall(ctx, c, e, failure)
}

// startRequest begins the HTTP span, in the context that the transport gets.
// Its parent is the call's, also where another observer has put a span of
// another exporter in between.
func (o *observer) startRequest(ctx context.Context, c *call, e agentmessaging.RequestStart) context.Context {
	if o.noHTTP {
		return nil
	}
	c.began = time.Now()
	ctx, c.request = o.tracer.Start(trace.ContextWithSpan(ctx, c.span), e.Endpoint.Method+" "+e.Endpoint.Path,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(requestAttributes(c, e)...))
	return ctx
}

func (o *observer) endRequest(ctx context.Context, c *call, e agentmessaging.AttemptEnd) {
	if c.request == nil {
		return
	}
	took, failure := time.Since(c.began).Seconds(), requestErrorType(e)
	if c.request.IsRecording() {
		if e.StatusCode != 0 {
			c.request.SetAttributes(semconv.HTTPResponseStatusCode(e.StatusCode))
		}
		fail(c.request, failure)
	}
	c.request.End()
	// In the request's span, so that an exemplar points there.
	o.instruments.recordRequest(trace.ContextWithSpan(ctx, c.request), c, e, took, failure)
	c.request = nil
}

func (o *observer) retry(ctx context.Context, c *call, e agentmessaging.Retry) {
	c.span.AddEvent(eventRetry, trace.WithAttributes(
		keyAttempt.Int(e.Attempt), keyRetryReason.String(e.Outcome), keyWait.Float64(e.Wait.Seconds())))
	o.instruments.recordRetry(ctx, c, e)
}

func (o *observer) limiterWait(ctx context.Context, c *call, e agentmessaging.LimiterWait) {
	c.span.AddEvent(eventLimiterWait, trace.WithAttributes(
		keyAttempt.Int(e.Attempt), keyWait.Float64(e.Wait.Seconds())))
	o.instruments.recordLimiterWait(ctx, c, e)
}

func (o *observer) coolDown(ctx context.Context, c *call, e agentmessaging.CoolDown) {
	c.span.AddEvent(eventCoolDown, trace.WithAttributes(coolDownAttributes(e)...))
	o.instruments.recordCoolDown(ctx, c, e)
}
