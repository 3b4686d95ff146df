package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

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
