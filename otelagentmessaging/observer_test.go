package otelagentmessaging_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/otelagentmessaging"
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
	_, err := newClient(t, fakeserver.New(t), agentmessaging.WithObserver(observer)).Status(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"agentmessaging.Status > GET /v1/status", " > agentmessaging.Status"}, r.names())
	assert.Len(t, r.points(t, callDuration), 1)
}

// TestEveryMethodHasASpan holds the names of the nine.
func TestEveryMethodHasASpan(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client, r *telemetry) {
		every(ctx, client)
		want := map[string]trace.SpanKind{
			"create_agent": trace.SpanKindClient, "invoke_agent": trace.SpanKindClient,
		}
		for _, method := range []string{"Status", "WarmUp", "GetBYOK", "SetBYOK", "ClearBYOK", "GetAgent", "EnableSMS"} {
			want["agentmessaging."+method] = trace.SpanKindInternal
		}
		got := map[string]trace.SpanKind{}
		for _, s := range r.ended() {
			if s.Parent == "" {
				got[s.Name] = s.Kind
			}
		}
		assert.Equal(t, want, got)
		assert.Len(t, r.ended(), 18)
	})
}

// every calls each method once, with words that no telemetry may hold.
func every(ctx context.Context, client *agentmessaging.Client) {
	_, _ = client.Status(ctx)
	_, _ = client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary", Label: "label-canary", Model: "model-canary",
	})
	_, _ = client.GetBYOK(ctx)
	_, _ = client.WarmUp(ctx, agentmessaging.LLMModeHosted)
	_, _ = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "prompt-canary", CustomerRef: "customer-canary", Metadata: map[string]string{"key": "metadata-canary"},
		LLM: agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "other-provider-canary"},
	})
	_, _ = client.GetAgent(ctx, "agent_000001")
	_, _ = client.EnableSMS(ctx, "agent_000001", agentmessaging.SMSModeSandbox)
	_, _ = client.SendMessage(ctx, "agent_000001", agentmessaging.MessageParams{Text: "message-canary", UserRef: "user-canary"})
	_ = client.ClearBYOK(ctx)
}

// TestTwoObserversOfOneClient checks that each has its own calls, whatever the
// other has put into the context.
func TestTwoObserversOfOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, fake := newTelemetry(), newTelemetry(), fakeserver.New(t)
		client := newClient(t, fake, first.observer(t), second.observer(t))
		require.NoError(t, send(t.Context(), fake, client))
		assert.Equal(t, []string{"invoke_agent > POST " + messages, " > invoke_agent"}, first.names())
		assert.Equal(t, []string{"invoke_agent > POST " + messages, "unknown > invoke_agent"}, second.names(), "below the first's call")
		assert.Equal(t, first.points(t, requestDuration), second.points(t, requestDuration))
	})
}

// TestAContextThatWasReplaced has an observer that drops the context of the
// call: there is no telemetry, and no panic.
func TestAContextThatWasReplaced(t *testing.T) {
	drop := agentmessaging.ObserverFunc(func(context.Context, agentmessaging.Event) context.Context { return context.Background() })
	r, fake := newTelemetry(), fakeserver.New(t)
	require.NoError(t, send(t.Context(), fake, newClient(t, fake, r.observer(t), agentmessaging.WithObserver(drop))))
	assert.Empty(t, r.ended())
}

// TestManyCallsAtOnce is for the race detector, and counts.
func TestManyCallsAtOnce(t *testing.T) {
	const callers, calls = 8, 10
	r, fake := newTelemetry(), fakeserver.New(t, fakeserver.WithLimit(fakeserver.LimitKeyMinute, 1000), fakeserver.WithLimit(fakeserver.LimitIPMinute, 1000))
	observer := r.observer(t)
	id := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	var group sync.WaitGroup
	for range callers {
		client := newClient(t, fake, observer)
		group.Go(func() {
			for range calls {
				_, err := client.GetAgent(t.Context(), id)
				assert.NoError(t, err)
			}
		})
	}
	group.Wait()
	parents := map[trace.SpanID]int{}
	for _, s := range r.spans.GetSpans() {
		if s.Parent.IsValid() {
			parents[s.Parent.SpanID()]++
		}
	}
	assert.Len(t, parents, callers*calls, "each call has a request of its own")
	assert.EqualValues(t, callers*calls, r.points(t, callDuration)[0].Count)
	assert.EqualValues(t, callers*calls, r.points(t, requestDuration)[0].Count)
}
