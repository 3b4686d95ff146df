package agentmessaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A whole program, on a fake of the service. Against the service itself,
// NewClient takes its address and an API key and needs no options.
func Example() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	if err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "Be brief."})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent.Status)
	fmt.Println(reply.Text)
	// Output:
	// active
	// You wrote: Hello
}

// onFake returns a fake and a client of it, for the examples below.
func onFake(opts ...agentmessaging.Option) (*fakeserver.Server, *agentmessaging.Client) {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	opts = append(opts, agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), opts...)
	if err != nil {
		log.Fatal(err)
	}
	return fake, client
}

func ExampleNewClient() {
	_, err := agentmessaging.NewClient("http://service.example", "key")
	fmt.Println(err)
	client, err := agentmessaging.NewClient("https://service.example/gateway", "key",
		agentmessaging.WithUserAgent("shop/1.4"),
		agentmessaging.WithTimeout(time.Minute),
	)
	fmt.Println(client, err)
	// Output:
	// agentmessaging: baseURL: must be https: plain http would show the API key to the network (http is accepted for loopback hosts only)
	// agentmessaging.Client(https://service.example/gateway) <nil>
}

func ExampleClient_CreateAgent() {
	fake, client := onFake()
	defer fake.Close()

	agent, err := client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{
		SystemPrompt: "You book tables. Be brief.",
		CustomerRef:  "customer-42",
		Metadata:     map[string]any{"branch": "north", "tables": 12},
		SMS:          agentmessaging.SMSParams{Mode: agentmessaging.SMSModeManaged},
		LLM:          agentmessaging.LLMParams{Tier: agentmessaging.TierSmart},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent.ID, agent.Status, agent.SMS.Status)
	// Output: agent_000001 active needs_compliance
}

// A field beyond its documented bound is refused before anything is sent: it
// would only spend quota.
func ExampleClient_CreateAgent_invalid() {
	fake, client := onFake()
	defer fake.Close()

	_, err := client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{
		LLM: agentmessaging.LLMParams{APIKey: "sk-example"},
	})
	var invalid *agentmessaging.ValidationError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Field, invalid.Reason)
	}
	fmt.Println(fake.CallCount(), "calls")
	// Output:
	// llm.provider is required when llm.api_key is given: one of openai_compat, openai, anthropic
	// 0 calls
}

func ExampleClient_GetAgent() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	_, err := client.GetAgent(ctx, "agent_of_somebody_else")
	fmt.Println(errors.Is(err, agentmessaging.ErrNotFound))

	created, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		log.Fatal(err)
	}
	agent, err := client.GetAgent(ctx, created.ID)
	if err != nil {
		log.Fatal(err)
	}
	at, err := agent.CreatedAt.Time()
	fmt.Println(agent.Status, agent.SMS == nil, time.Since(at) < time.Minute, err)
	// Output:
	// true
	// active true true <nil>
}

func ExampleClient_SendMessage() {
	fake, client := onFake()
	defer fake.Close()
	fake.OnMessage(fakeserver.ByTextContaining("open")).Reply("At nine.", "Still at nine.")

	ctx := context.Background()
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		log.Fatal(err)
	}
	for _, text := range []string{"When do you open?", "When do you really open?"} {
		reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(reply.Text)
	}
	// Output:
	// At nine.
	// Still at nine.
}

func ExampleClient_EnableSMS() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		log.Fatal(err)
	}
	sms, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeBYOTwilio)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sms.Status)
	// Output: needs_setup
}

func ExampleClient_SetBYOK() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	key := agentmessaging.Secret("sk-example") // read it from where you keep secrets
	config, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderAnthropic,
		APIKey:   key,
		Label:    "production",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key, config.Provider, config.Fingerprint != "")

	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		LLM: agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent.Status)
	// Output:
	// [redacted] anthropic true
	// active
}

// Nothing stored is no error: the configuration is nil.
func ExampleClient_GetBYOK() {
	fake, client := onFake()
	defer fake.Close()

	config, err := client.GetBYOK(context.Background())
	fmt.Println(config == nil, err)
	// Output: true <nil>
}

func ExampleClient_WarmUp() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	warm, err := client.WarmUp(ctx, agentmessaging.LLMModeHosted)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(warm.Mode, warm.Warmed)

	_, err = client.WarmUp(ctx, agentmessaging.LLMModeBYOK)
	fmt.Println(errors.Is(err, agentmessaging.ErrConflict)) // no provider key is stored
	// Output:
	// hosted true
	// true
}

// A minute limit is waited out by default; a wait that would pass the
// context's deadline is not begun, and the error says how long it would be.
func ExampleError_rateLimited() {
	fake, client := onFake()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err := client.GetAgent(ctx, "agent_000001")

	var refusal *agentmessaging.Error
	if errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.LimitKey, refusal.RetryAfter, refusal.TraceID)
	}
	// Output: rate_limited key_minute 1m0s trace_000001
}

// Additional members of an error body are kept as they came.
func ExampleError() {
	err := error(&agentmessaging.Error{
		StatusCode: 402, Code: "payment_required", Method: "GET", Path: "/v1/status", TraceID: "trace_7",
		Extra: map[string]json.RawMessage{"plan": json.RawMessage(`"free"`)},
	})
	fmt.Println(err)

	var failure *agentmessaging.Error
	if errors.As(err, &failure) {
		fmt.Println(errors.Is(err, agentmessaging.ErrPaymentRequired), string(failure.Extra["plan"]))
	}
	// Output:
	// agentmessaging: GET /v1/status: 402 payment_required (activate a plan in the dashboard, trace trace_7)
	// true "free"
}

func ExampleWithCallInfo() {
	fake, client := onFake()
	defer fake.Close()

	var info agentmessaging.CallInfo
	_, err := client.Status(agentmessaging.WithCallInfo(context.Background(), &info))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.StatusCode, info.Attempts, info.Waited, info.TraceID, info.Header.Get("Content-Type"))
	// Output: 200 1 0s trace_000001 application/json
}

func ExampleWithRetry() {
	fake, client := onFake(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitWarmUpKeyHour)

	_, err := client.WarmUp(context.Background(), "")
	fmt.Println(err)
	// Output: agentmessaging: POST /v1/warmup: 429 rate_limited (limit warmup_key_hour, retry after 1 h, trace trace_000001)
}

func ExampleWithLogger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "elapsed" {
				return slog.Attr{} // different in each run
			}
			return a
		},
	}))
	fake, client := onFake(agentmessaging.WithLogger(logger))
	defer fake.Close()

	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)

	_, _ = client.GetAgent(context.Background(), "agent_000007")
	// Output:
	// level=INFO msg="agentmessaging cool-down" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 limit_key=key_day wait=24h0m0s
	// level=DEBUG msg="agentmessaging attempt" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 attempt=1 status=429 trace_id=trace_000001 limit_key=key_day
	// level=WARN msg="agentmessaging gave up" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 attempts=1 waited=0s trace_id=trace_000001 limit_key=key_day error="agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited (limit key_day, retry after 24 h, trace trace_000001)"
}

func ExampleWithObserver() {
	failed := map[string]int{}
	count := func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.CallEnd); ok && end.Err != nil {
			failed[end.Endpoint.Name]++
		}
		return nil
	}
	fake, client := onFake(agentmessaging.WithObserver(agentmessaging.ObserverFunc(count)))
	defer fake.Close()

	_, _ = client.GetAgent(context.Background(), "agent_000007")
	_, _ = client.Status(context.Background())
	fmt.Println(failed)
	// Output: map[GetAgent:1]
}
