package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
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

// The address and the key from the environment, as a deployed program has them.
func ExampleNewClientFromEnv() {
	_ = os.Setenv("AGENT_MESSAGING_BASE_URL", "https://service.example")
	_ = os.Setenv("AGENT_MESSAGING_API_KEY", "key")
	defer os.Unsetenv("AGENT_MESSAGING_BASE_URL")
	defer os.Unsetenv("AGENT_MESSAGING_API_KEY")

	client, err := agentmessaging.NewClientFromEnv()
	fmt.Println(client, err)
	// Output: agentmessaging.Client(https://service.example) <nil>
}

func ExampleClient_Status() {
	fake, client := onFake()
	defer fake.Close()

	status, err := client.Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.OK, status.Service, status.Version, status.Mode)
	// Output: true agent-messaging-fake v1 preview
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

// A provider key is stored once and serves all agents of the API key. What is
// stored is never returned; nothing stored is no error, but nil.
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

	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		LLM: agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent.Status)

	if err := client.ClearBYOK(ctx); err != nil {
		log.Fatal(err)
	}
	config, err = client.GetBYOK(ctx)
	fmt.Println(config == nil, err)
	// Output:
	// [redacted] anthropic true
	// active
	// true <nil>
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
