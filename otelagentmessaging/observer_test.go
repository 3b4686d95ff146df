package otelagentmessaging_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
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
	require.Len(t, spans, 1)
	assert.Equal(t, "agentmessaging.Status", spans[0].Name)
	assert.Contains(t, strings.Join(r.points(t), ""), callDuration)
	scope := spans[0].InstrumentationScope
	assert.Equal(t, "github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging", scope.Name)
	assert.Equal(t, agentmessaging.Version, scope.Version)
	assert.Equal(t, "https://opentelemetry.io/schemas/1.41.0", scope.SchemaURL)
}

// noting is a sampler that keeps what it is shown, and takes nothing.
type noting map[string]attrs

func (n noting) Description() string { return "noting" }

func (n noting) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	n[p.Name] = attrsOf(p.Attributes)
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

// TestSamplersSeeAttributes checks what is there from the start.
func TestSamplersSeeAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, fake := noting{}, fakeserver.New(t)
		r := newTelemetry(sdktrace.WithSampler(seen))
		require.NoError(t, limitedOnce(send)(t.Context(), fake, newClient(t, fake, r.observer(t))))
		assert.Equal(t, noting{
			"invoke_agent": {
				"agentmessaging.method": "SendMessage", "gen_ai.operation.name": "invoke_agent",
				"gen_ai.provider.name": "agent_messaging_service", "server.address": host, "server.port": int64(443),
			},
			"POST /v1/agents/{agent_id}/messages": {
				"http.request.method": "POST", "url.template": "/v1/agents/{agent_id}/messages",
				"url.full":       "https://" + host + "/v1/agents/agent_000001/messages",
				"server.address": host, "server.port": int64(443),
				"http.request.resend_count": int64(1), "http.response.status_code": int64(200),
			},
		}, seen)
	})
}

// TestEachMetricAlone reads one metric, and drops all others and all spans.
func TestEachMetricAlone(t *testing.T) {
	all := tellAll(t)
	for _, name := range rows(t, "metrics", 1) {
		others := func(i metric.Instrument) (metric.Stream, bool) {
			return metric.Stream{Aggregation: metric.AggregationDrop{}}, i.Name != name
		}
		for i, story := range stories {
			r := newTelemetry(sdktrace.WithSampler(sdktrace.NeverSample()))
			r.reader = metric.NewManualReader()
			r.meter = metric.NewMeterProvider(metric.WithReader(r.reader), metric.WithView(others))
			story.tell(t, r)
			want := slices.DeleteFunc(all[i].points(t), func(point string) bool { return !strings.HasPrefix(point, name) })
			assert.ElementsMatch(t, want, r.points(t), story.name)
		}
	}
}

// wantExemplars checks that durations lead to the spans that took them.
func (r *telemetry) wantExemplars(t *testing.T) {
	of := map[string]attrs{}
	for _, s := range r.spans.GetSpans() {
		of[s.SpanContext.SpanID().String()] = attrsOf(s.Attributes)
	}
	for name, key := range map[string]string{requestDuration: "http.response.status_code", callDuration: "agentmessaging.method"} {
		data, _ := r.metrics(t)[name].Data.(metricdata.Histogram[float64])
		for _, p := range data.DataPoints {
			require.NotEmpty(t, p.Exemplars)
			span := of[hex.EncodeToString(p.Exemplars[0].SpanID)]
			assert.Equal(t, attrsOf(p.Attributes.ToSlice())[key], span[key])
		}
	}
}

// TestTwoObserversOfOneClient checks that each has its own calls, whatever the
// other has put into the context.
func TestTwoObserversOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, fake := newTelemetry(), newTelemetry(), fakeserver.New(t)
		require.NoError(t, limitedOnce(send)(t.Context(), fake, newClient(t, fake, first.observer(t), second.observer(t))))
		a, b := first.spans.GetSpans(), second.spans.GetSpans()
		assert.Equal(t, trace.SpanContext{}, a[2].Parent)
		assert.Equal(t, a[2].SpanContext, b[2].Parent, "below the first's call")
		for i := range 2 {
			assert.Equal(t, a[2].SpanContext, a[i].Parent)
			assert.Equal(t, b[2].SpanContext, b[i].Parent)
		}
		assert.Equal(t, first.points(t), second.points(t))
		first.wantExemplars(t)
		second.wantExemplars(t)
	})
}

// TestManyCallsAtOnce is for the race detector, and counts.
func TestManyCallsAtOnce(t *testing.T) {
	const callers = 50
	r, fake := newTelemetry(), fakeserver.New(t)
	client := newClient(t, fake, r.observer(t))
	var group sync.WaitGroup
	for range callers {
		group.Go(func() { assert.NoError(t, status(t.Context(), fake, client)) })
	}
	group.Wait()
	assert.Len(t, r.spans.GetSpans(), callers)
	assert.Len(t, r.points(t), 2)
	for _, point := range r.points(t) {
		assert.Contains(t, point, ": 50, ")
	}
}
