package otelagentmessaging_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

// overOtelhttp is a client of the fake whose transport is otelhttp's, and
// parents gets the traceparent of each request.
func (r *telemetry) overOtelhttp(t *testing.T, fake *fakeserver.Server, parents *[]string, opts ...agentmessaging.Option) *agentmessaging.Client {
	base := fake.HTTPClient(t).Transport
	noting := roundTripper(func(req *http.Request) (*http.Response, error) {
		*parents = append(*parents, req.Header.Get("traceparent"))
		return base.RoundTrip(req)
	})
	transport := otelhttp.NewTransport(noting, otelhttp.WithTracerProvider(r.tracer),
		otelhttp.WithMeterProvider(r.meter), otelhttp.WithPropagators(propagation.TraceContext{}))
	return newClient(t, fake, append(opts, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))...)
}

// TestOtelhttpAlone has otelhttp make all spans: one for each attempt, below
// that of the caller.
func TestOtelhttpAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parents []string
		r, fake := newTelemetry(), fakeserver.New(t)
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		ctx, user := r.tracer.Tracer("user").Start(t.Context(), "user")
		require.NoError(t, send(ctx, fake, r.overOtelhttp(t, fake, &parents)))
		user.End()
		assert.Equal(t, []string{"user > HTTP POST", "user > HTTP POST", " > user"}, r.names())
		assert.Equal(t, r.traceparents(2), parents)
	})
}

// TestOtelhttpBelowTheObserver checks that nothing is doubled: the calls are
// the observer's, the requests otelhttp's.
func TestOtelhttpBelowTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parents []string
		r, fake := newTelemetry(), fakeserver.New(t)
		fake.Inject(fakeserver.RateLimited("3")).Times(1)
		client := r.overOtelhttp(t, fake, &parents, r.observer(t, otelagentmessaging.WithoutHTTP()))
		require.NoError(t, send(t.Context(), fake, client))
		assert.Equal(t, []string{"invoke_agent > HTTP POST", "invoke_agent > HTTP POST", " > invoke_agent"}, r.names())
		assert.Len(t, r.ended()[2].Events, 2)
		assert.Equal(t, r.traceparents(2), parents)
		for _, p := range r.points(t, requestDuration) {
			assert.EqualValues(t, 1, p.Count, "%v", p.Attrs)
			assert.NotContains(t, p.Attrs, "url.template", "otelhttp's")
		}
	})
}

// TestTheTransportSeesTheSpanOfItsRequest is what other transports with
// instruments of their own build on.
func TestTheTransportSeesTheSpanOfItsRequest(t *testing.T) {
	r, fake := newTelemetry(), fakeserver.New(t)
	base, seen := fake.HTTPClient(t).Transport, trace.SpanContext{}
	client := newClient(t, fake, r.observer(t), agentmessaging.WithHTTPClient(&http.Client{
		Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
			seen = trace.SpanContextFromContext(req.Context())
			return base.RoundTrip(req)
		}),
	}))
	require.NoError(t, send(t.Context(), fake, client))
	assert.Equal(t, r.spans.GetSpans()[0].SpanContext, seen)
	assert.Empty(t, fake.Calls()[0].Header.Get("traceparent"))
}

// traceparents are the headers that name the first n spans.
func (r *telemetry) traceparents(n int) []string {
	var headers []string
	for _, s := range r.spans.GetSpans()[:n] {
		headers = append(headers, "00-"+s.SpanContext.TraceID().String()+"-"+s.SpanContext.SpanID().String()+"-01")
	}
	return headers
}
