package otelagentmessaging_test

import (
	"net/http"
	"strings"
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
		require.NoError(t, limitedOnce(send)(t.Context(), fake, client))

		spans := r.spans.GetSpans()
		require.Len(t, spans, 3)
		for i, s := range spans[:2] {
			assert.Equal(t, "HTTP POST", s.Name)
			assert.Equal(t, spans[2].SpanContext, s.Parent)
			assert.Equal(t, "00-"+s.SpanContext.TraceID().String()+"-"+s.SpanContext.SpanID().String()+"-01", parents[i])
		}
		assert.Len(t, spans[2].Events, 2)
		assert.Equal(t, 2, strings.Count(r.story(t), requestDuration))
		assert.NotContains(t, r.story(t), "url.template", "the metrics of requests are otelhttp's")
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
