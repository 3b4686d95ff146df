package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A whole program, on a fake of the service. For the service itself, give NewClient its
// address and an API key, and no options.
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
	fmt.Println(reply.Text)
	// Output: You wrote: Hello
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

func ExampleClient_CreateAgent() {
	fake, client := onFake()
	defer fake.Close()

	agent, err := client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{
		SystemPrompt: "You book tables. Be brief.",
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

// EnableSMS loses its answer. GetAgent shows whether the service has enabled the channel.
func ExampleClient_EnableSMS() {
	fake, client := onFake()
	defer fake.Close()
	ctx, agent := context.Background(), fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Times(1)

	_, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeSandbox)
	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
		read, err := client.GetAgent(ctx, agent.ID)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(read.SMS.Status, read.SMS.PhoneNumber)
	}
	// Output: active +12025550101
}

// A provider key is stored once and serves all agents of the API key. The service never
// returns it. If none is stored, GetBYOK returns nil and no error.
func ExampleClient_SetBYOK() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	key := agentmessaging.Secret("sk-example") // read it from where you keep secrets
	_, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderAnthropic,
		APIKey:   key,
		Label:    "production",
	})
	if err != nil {
		log.Fatal(err)
	}
	config, err := client.GetBYOK(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(key, config.Provider, config.Fingerprint != "")

	if err := client.ClearBYOK(ctx); err != nil {
		log.Fatal(err)
	}
	config, err = client.GetBYOK(ctx)
	fmt.Println(config == nil, err)
	// Output:
	// [redacted] anthropic true
	// true <nil>
}

// A journal shows at each moment whether the agent may have read the message.
func ExampleWithBeforeSend() {
	closing := agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.AttemptEnd); ok {
			fmt.Println("journal: attempt", end.Attempt, "is", end.Verdict)
		}
		return nil
	})
	fake, client := onFake(agentmessaging.WithObserver(closing))
	defer fake.Close()
	client, err := client.With(agentmessaging.WithClock(fake)) // a wait only moves the clock of the fake
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	ctx := agentmessaging.WithBeforeSend(context.Background(), func(_ context.Context, attempt int) error {
		fmt.Println("journal: sending, attempt", attempt)
		return nil // an error would keep the message from being sent
	})
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Order 4711: two chairs."})
	fmt.Println(err)
	// Output:
	// journal: sending, attempt 1
	// journal: attempt 1 is not done
	// journal: sending, attempt 2
	// journal: attempt 2 is done
	// <nil>
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
	// level=WARN msg="agentmessaging gave up" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 attempts=1 refusals=1 waited=0s trace_id=trace_000001 limit_key=key_day error="agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: the next attempt is due in 24h0m0s, later than the RetryPolicy waits (1m30s) (limit key_day, retry after 24h0m0s, trace trace_000001)"
}

// By default a call waits for a minute limit to open. If the wait would pass the context's
// deadline, the call fails at once, and the error says how long the wait is. The cool-down
// refuses the second call: nothing is sent.
func ExampleError_rateLimited() {
	fake, client := onFake()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		_, err := client.GetAgent(ctx, "agent_000001")
		var refusal *agentmessaging.Error
		if wait, ok := agentmessaging.RetryAfter(err); ok && errors.As(err, &refusal) {
			fmt.Println(refusal.Code, refusal.LimitKey, "come back in", wait.Round(time.Minute), refusal.Local)
		}
	}
	fmt.Println(fake.CallCount(), "call was sent")
	// Output:
	// rate_limited key_minute come back in 1m0s false
	// rate_limited key_minute come back in 1m0s true
	// 1 call was sent
}
