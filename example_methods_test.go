package agentmessaging_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The address and the key from the environment, as a deployed program has them.
func ExampleNewClientFromEnv() {
	_ = os.Setenv(agentmessaging.EnvBaseURL, "https://service.example")
	_ = os.Setenv(agentmessaging.EnvAPIKey, "key")
	defer os.Unsetenv(agentmessaging.EnvBaseURL)
	defer os.Unsetenv(agentmessaging.EnvAPIKey)

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

func ExampleClient_ClearBYOK() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	_, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI,
		APIKey:   "sk-example",
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.ClearBYOK(ctx); err != nil {
		log.Fatal(err)
	}
	config, err := client.GetBYOK(ctx)
	fmt.Println(config == nil, err)
	// Output: true <nil>
}

// A proxy of your own, or other timeouts, come with an http.Client. Its
// Timeout bounds one attempt, WithTimeout the call.
func ExampleWithHTTPClient() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	hc := fake.HTTPClient(nil) // elsewhere &http.Client{Transport: ...}
	hc.Timeout = 30 * time.Second
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(hc),
		agentmessaging.WithTimeout(2*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Status(context.Background())
	fmt.Println(err)
	// Output: <nil>
}

// Without the cool-down each call is refused by the service for itself.
func ExampleUnlimited() {
	fake, client := onFake(agentmessaging.WithLimiter(agentmessaging.Unlimited()))
	defer fake.Close()
	fake.Exhaust(fakeserver.LimitKeyDay, fake.Key())

	for range 2 {
		_, _ = client.GetAgent(context.Background(), "agent_000001")
	}
	fmt.Println(fake.CallCount(), "calls were refused by the service")
	// Output: 2 calls were refused by the service
}

// Over a socket the client cannot know that the fake's clock was advanced,
// unless it is given that clock.
func ExampleWithClock() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	server := httptest.NewServer(fake)
	defer server.Close()
	client, err := agentmessaging.NewClient(server.URL, fake.Key(), agentmessaging.WithClock(fake.Now))
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	fake.Exhaust(fakeserver.LimitKeyDay, fake.Key())
	_, err = client.GetAgent(context.Background(), agent.ID)
	fmt.Println(err)
	fake.Advance(24 * time.Hour)
	_, err = client.GetAgent(context.Background(), agent.ID)
	fmt.Println(err)
	// Output:
	// agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited (limit key_day, retry after 24h0m0s, trace trace_000001)
	// <nil>
}
