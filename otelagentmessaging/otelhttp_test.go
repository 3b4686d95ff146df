package otelagentmessaging_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

// TestOtelhttpBelowTheObserver checks that nothing is doubled: the calls are
// the observer's, and the requests otelhttp's, which sends traceparent.
func TestOtelhttpBelowTheObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fake := newTelemetry(), fakeserver.New(t)
		base, parents := fake.HTTPClient(t).Transport, []string{}
		transport := otelhttp.NewTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
			parents = append(parents, req.Header.Get("traceparent"))
			return base.RoundTrip(req)
		}), otelhttp.WithTracerProvider(r.tracer), otelhttp.WithMeterProvider(r.meter), otelhttp.WithPropagators(propagation.TraceContext{}))
		client := newClient(t, fake, r.observer(t, otelagentmessaging.WithoutHTTP()), agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, inTurn(limitedOnce(send), status)(t.Context(), fake, client))

		spans := r.spans.GetSpans()
		require.Len(t, spans, 5)
		for i, call := range []int{2, 2, 4} {
			request := spans[[]int{0, 1, 3}[i]]
			assert.Equal(t, spans[call].SpanContext, request.Parent)
			assert.Equal(t, "00-"+request.SpanContext.TraceID().String()+"-"+request.SpanContext.SpanID().String()+"-01", parents[i])
			assert.NotRegexp(t, "(http|url)\\.", attrsOf(spans[call].Attributes))
		}
		assert.Len(t, spans[2].Events, 3)
		assert.Equal(t, trace.SpanKindClient, spans[2].SpanKind)
		assert.Equal(t, trace.SpanKindInternal, spans[4].SpanKind)
		assert.Equal(t, 3, strings.Count(r.story(t), requestDuration))
		assert.NotContains(t, r.story(t), "url.template", "the metrics of requests are otelhttp's")
	})
}

// TestTheTransportSeesTheSpanOfItsCall also where nothing is recorded: a transport
// with instruments of its own continues the trace.
func TestTheTransportSeesTheSpanOfItsCall(t *testing.T) {
	r, fake := newTelemetry(sdktrace.WithSampler(sdktrace.NeverSample())), fakeserver.New(t)
	base, seen := fake.HTTPClient(t).Transport, trace.SpanContext{}
	transport := roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = trace.SpanContextFromContext(req.Context())
		return base.RoundTrip(req)
	})
	observer := r.observer(t, otelagentmessaging.WithMeterProvider(noop.NewMeterProvider()))
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, observer, agentmessaging.WithHTTPClient(&http.Client{Transport: transport}))))
	assert.True(t, seen.IsValid())
	assert.Empty(t, fake.Calls()[0].Header.Get("traceparent"))
}
