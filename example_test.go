package agentmessaging_test

import (
	"context"
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
