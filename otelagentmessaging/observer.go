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
	endpoints   endpoints
}

// call is what an observer keeps of a call that is under way, in its context.
// The events of a call come one after the other, so it needs no lock.
type call struct {
	*endpoint
	span trace.Span
	url  string

	request context.Context // of the current attempt, with its span; nil unless it was sent
	began   time.Time       // the request

	named   bool                  // the agent, by the attributes of the start
	attrs   [7]attribute.KeyValue // room for those of a span, which copies them
	options [2]trace.SpanStartOption
}

// start begins a span with attributes.
func (c *call) start(ctx context.Context, tracer trace.Tracer, name string, kind trace.SpanStartOption, attrs []attribute.KeyValue) (context.Context, trace.Span) {
	c.options = [...]trace.SpanStartOption{kind, trace.WithAttributes(attrs...)}
	return tracer.Start(ctx, name, c.options[:]...)
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
		o.endRequest(c, e)
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
	c := &call{endpoint: o.endpoints.of(e.Endpoint, e.URL), url: e.URL.String()}
	ctx, c.span = c.start(ctx, o.tracer, c.endpoint.span, c.kind, c.startAttributes(e))
	return context.WithValue(ctx, callKey{o}, c)
}

func (o *observer) endCall(ctx context.Context, c *call, e agentmessaging.CallEnd) {
	failure := callErrorType(e.Err)
	if c.span.IsRecording() {
		c.span.SetAttributes(c.endAttributes(e)...)
		fail(c.span, failure)
	}
	c.span.End()
	o.instruments.recordCall(ctx, c, e.Elapsed.Seconds(), failure)
}

// startRequest begins the HTTP span, in the context that the transport gets.
// Its parent is the call's, also where another observer has put a span of
// another exporter in between.
func (o *observer) startRequest(ctx context.Context, c *call, e agentmessaging.RequestStart) context.Context {
	if o.noHTTP {
		return nil
	}
	if !trace.SpanContextFromContext(ctx).Equal(c.span.SpanContext()) {
		ctx = trace.ContextWithSpan(ctx, c.span)
	}
	c.began = time.Now()
	c.request, _ = c.start(ctx, o.tracer, c.endpoint.request, clientKind, c.requestAttributes(e))
	return c.request
}

func (o *observer) endRequest(c *call, e agentmessaging.AttemptEnd) {
	if c.request == nil {
		return
	}
	took, failure := time.Since(c.began).Seconds(), requestErrorType(e)
	span := trace.SpanFromContext(c.request)
	if span.IsRecording() {
		if e.StatusCode != 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(e.StatusCode))
		}
		fail(span, failure)
	}
	span.End()
	// In the request's context, so that an exemplar points there.
	o.instruments.recordRequest(c.request, c, e.StatusCode, took, failure)
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
	o.instruments.recordCoolDown(ctx, c)
}
