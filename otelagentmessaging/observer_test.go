package otelagentmessaging_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
)

const (
	requestDuration = "http.client.request.duration"
	callDuration    = "agentmessaging.client.call.duration"
)

func TestOptionsRefuseNil(t *testing.T) {
	for name, opt := range map[string]otelagentmessaging.Option{
		"opts":               nil,
		"WithTracerProvider": otelagentmessaging.WithTracerProvider(nil),
		"WithMeterProvider":  otelagentmessaging.WithMeterProvider(nil),
	} {
		_, err := otelagentmessaging.NewObserver(opt)
		var refused *agentmessaging.ValidationError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, name, refused.Field)
	}
}

// afterwards makes an observer and sets the global providers after it, as
// programs do: once, since the first ones that are set are for good.
var afterwards = sync.OnceValues(func() (agentmessaging.Observer, *telemetry) {
	observer, err := otelagentmessaging.NewObserver()
	if err != nil {
		panic(err)
	}
	r := newTelemetry()
	otel.SetTracerProvider(r.tracer)
	otel.SetMeterProvider(r.meter)
	return observer, r
})

func TestTheGlobalProvidersAreTheDefault(t *testing.T) {
	observer, r := afterwards()
	r.spans.Reset()
	require.NoError(t, status(t.Context(), nil, newClient(t, fakeserver.New(t), agentmessaging.WithObserver(observer))))
	spans := r.spans.GetSpans()
	require.Len(t, spans, 2)
	assert.Equal(t, "agentmessaging.Status", spans[1].Name)
	assert.Contains(t, strings.Join(r.points(t), ""), callDuration)
	for _, s := range spans {
		assert.Equal(t, "github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging", s.InstrumentationScope.Name)
		assert.Equal(t, agentmessaging.Version, s.InstrumentationScope.Version)
		assert.Equal(t, "https://opentelemetry.io/schemas/1.41.0", s.InstrumentationScope.SchemaURL)
	}
}

// noting is a sampler that keeps what it is shown, and takes nothing.
type noting map[string]attrs

func (n noting) Description() string { return "noting" }

func (n noting) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	n[p.Name] = attrsOf(p.Attributes)
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// TestSamplersSeeAttributes checks what is there from the start, and that a
// call has its metrics where no span of it is kept.
func TestSamplersSeeAttributes(t *testing.T) {
	seen, fake := noting{}, fakeserver.New(t)
	r := newTelemetry(sdktrace.WithSampler(seen))
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t))))
	assert.Equal(t, noting{
		"invoke_agent": {
			"agentmessaging.method": "SendMessage", "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "agent_000001",
			"gen_ai.provider.name": "agent_messaging_service", "server.address": host, "server.port": int64(443),
		},
		"POST /v1/agents/{agent_id}/messages": {
			"http.request.method": "POST", "url.template": "/v1/agents/{agent_id}/messages",
			"url.full":       "https://" + host + "/v1/agents/agent_000001/messages",
			"server.address": host, "server.port": int64(443),
		},
	}, seen)
	assert.Empty(t, r.spans.GetSpans())
	assert.Len(t, r.points(t), 3)
}

// TestExemplars checks that a duration leads to the span that took it.
func TestExemplars(t *testing.T) {
	r, fake := newTelemetry(), fakeserver.New(t)
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t))))
	for i, name := range []string{requestDuration, callDuration} {
		data := r.metrics(t)[name].Data.(metricdata.Histogram[float64])
		require.Len(t, data.DataPoints[0].Exemplars, 1, name)
		span := r.spans.GetSpans()[i].SpanContext.SpanID()
		assert.Equal(t, span[:], data.DataPoints[0].Exemplars[0].SpanID, name)
	}
}

// TestTwoObserversOfOneClient checks that each has its own calls, whatever the
// other has put into the context.
func TestTwoObserversOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, fake := newTelemetry(), newTelemetry(), fakeserver.New(t)
		require.NoError(t, send(t.Context(), fake, newClient(t, fake, first.observer(t), second.observer(t))))
		a, b := first.spans.GetSpans(), second.spans.GetSpans()
		assert.Equal(t, trace.SpanContext{}, a[1].Parent)
		assert.Equal(t, a[1].SpanContext, a[0].Parent)
		assert.Equal(t, a[1].SpanContext, b[1].Parent, "below the first's call")
		assert.Equal(t, b[1].SpanContext, b[0].Parent)
		assert.Equal(t, first.points(t), second.points(t))
	})
}

// TestManyCallsAtOnce is for the race detector, and counts.
func TestManyCallsAtOnce(t *testing.T) {
	const callers = 50
	r, fake := newTelemetry(), fakeserver.New(t)
	id, client := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID, newClient(t, fake, r.observer(t))
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			_, err := client.GetAgent(t.Context(), id)
			assert.NoError(t, err)
		})
	}
	group.Wait()
	parents := map[trace.SpanID]bool{}
	for _, s := range r.spans.GetSpans() {
		if s.Parent.IsValid() {
			parents[s.Parent.SpanID()] = true
		}
	}
	assert.Len(t, parents, callers, "each call has a request of its own")
	assert.Len(t, r.points(t), 2)
	for _, point := range r.points(t) {
		assert.Contains(t, point, ": 50, ")
	}
}

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
