package otelagentmessaging

import (
	"context"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
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
	o := &observer{tracer: tracer, instruments: instruments, noHTTP: settings.noHTTP}
	o.endpoints.known.Store(new(map[endpointKey]*endpoint))
	return o, nil
}

type observer struct {
	tracer      trace.Tracer
	instruments *instruments
	noHTTP      bool
	endpoints   endpoints
}

// call is what an observer keeps of a call that is under way, and the context
// of that call, with its span. The events of a call come one after the other,
// so it needs no lock.
type call struct {
	context.Context
	*endpoint
	observer *observer
	span     trace.Span
	url      *url.URL
	named    bool // the agent, by the attributes of the start
	request  request
}

// A request is kept until it is known whether the call repeats it.
type request struct {
	attempt int // from 1; 0: nothing was sent
	began   time.Time
	status  int
	verdict agentmessaging.Verdict
	failure string
}

// callKey finds the call in a context. It holds the observer, because a client
// may have two, with providers of their own.
type callKey struct{ *observer }

// Value implements context.Context.
func (c *call) Value(key any) any {
	if key == (callKey{c.observer}) {
		return c
	}
	return c.Context.Value(key)
}

// room is for the attributes and options of a span, which copies them.
type room struct {
	attrs   [9]attribute.KeyValue
	options [2]trace.SpanStartOption
}

var rooms = sync.Pool{New: func() any { return new(room) }}

// Observe implements agentmessaging.Observer.
func (o *observer) Observe(ctx context.Context, event agentmessaging.Event) context.Context {
	switch e := event.(type) {
	case agentmessaging.CallStart:
		return o.startCall(ctx, e)
	case agentmessaging.AttemptStart, agentmessaging.LimiterWaitStart:
		return nil // before ctx is searched for the call
	}
	c, ok := ctx.Value(callKey{o}).(*call)
	if !ok {
		return nil // nobody wants this one, or another observer has put a context of its own in between
	}
	switch e := event.(type) {
	case agentmessaging.RequestStart:
		if !o.noHTTP {
			c.request = request{attempt: e.Attempt, began: time.Now()}
		}
	case agentmessaging.AttemptEnd:
		c.request.status, c.request.verdict, c.request.failure = e.StatusCode, e.Verdict, requestErrorType(e)
	case agentmessaging.Retry:
		o.endRequest(c, true)
		c.span.AddEvent(eventRetry, trace.WithAttributes(
			keyAttempt.Int(e.Attempt), keyRetryReason.String(e.Outcome), keyWait.Float64(e.Wait.Seconds())))
		o.instruments.retries.Add(c, 1, metric.WithAttributes(c.ofCalls...), metric.WithAttributes(keyRetryReason.String(e.Outcome)))
	case agentmessaging.LimiterWait:
		c.span.AddEvent(eventLimiterWait, trace.WithAttributes(
			keyAttempt.Int(e.Attempt), keyWait.Float64(e.Wait.Seconds())))
		o.instruments.wait.Record(c, e.Wait.Seconds(), c.called...)
	case agentmessaging.CoolDown:
		c.span.AddEvent(eventCoolDown, trace.WithAttributes(coolDownAttributes(e)...))
		o.instruments.coolDowns.Add(c, 1, metric.WithAttributes(c.ofCalls...))
	case agentmessaging.CallEnd:
		o.endCall(c, e)
	}
	return nil
}

func (o *observer) startCall(ctx context.Context, e agentmessaging.CallStart) context.Context {
	c := call{endpoint: o.endpoints.of(e.Endpoint, e.URL, o.noHTTP), observer: o, url: e.URL, named: e.AgentID != ""}
	r := rooms.Get().(*room)
	r.options = [...]trace.SpanStartOption{c.kind, trace.WithAttributes(c.startAttributes(r.attrs[:0], e)...)}
	c.Context, c.span = o.tracer.Start(ctx, c.name, r.options[:]...)
	rooms.Put(r)
	if !c.span.IsRecording() && !o.instruments.enabled(c.Context) {
		c.span.End()
		return c.Context // without the call: nobody wants its other events
	}
	kept := c
	return &kept
}

func (o *observer) endCall(c *call, e agentmessaging.CallEnd) {
	failure := callErrorType(e.Err)
	if c.span.IsRecording() {
		r := rooms.Get().(*room)
		c.span.SetAttributes(c.endAttributes(r.attrs[:0], e, failure)...)
		rooms.Put(r)
		fail(c.span, failure)
	}
	o.endRequest(c, c.request.attempt > 1)
	c.span.End()
	o.instruments.recordCall(c, e.Elapsed.Seconds(), failure)
}

// endRequest records the attempt's request, if one was sent. It is called right
// after the attempt's end, so the request ends now. In a repeated call it gets a
// span of its own, and else it has the call's. An exemplar leads there.
func (o *observer) endRequest(c *call, repeated bool) {
	if c.request.attempt == 0 {
		return
	}
	ctx := context.Context(c)
	if repeated {
		var span trace.Span
		ctx, span = o.tracer.Start(c, c.endpoint.request,
			clientKind, trace.WithTimestamp(c.request.began), trace.WithAttributes(c.requestAttributes()...))
		fail(span, c.request.failure)
		span.End()
	}
	o.instruments.recordRequest(ctx, c)
	c.request = request{}
}
