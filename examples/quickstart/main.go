// Quickstart creates an agent, sends it a message and prints the reply.
//
// It runs on a fake inside the program, without a key or a network. If
// AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY are set, it calls the service that
// they name.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func main() {
	log.SetFlags(0)
	client, err := connect()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "You answer questions about opening hours. Be brief.",
		CustomerRef:  "quickstart",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("agent:     %s (%s)\n", agent.ID, agent.Status) // print it first: the next call may fail
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "When do you open?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("reply:     %q\n", reply.Text)
	fmt.Printf("trace id:  %s\n", reply.TraceID)
}

// connect returns a client of the service that AGENT_MESSAGING_BASE_URL and
// AGENT_MESSAGING_API_KEY name or, if neither is set, of a fake in this program. Your own
// program needs only NewClientFromEnv.
func connect() (*agentmessaging.Client, error) {
	if os.Getenv("AGENT_MESSAGING_BASE_URL") != "" || os.Getenv("AGENT_MESSAGING_API_KEY") != "" {
		return agentmessaging.NewClientFromEnv()
	}
	fake, err := fakeserver.Open()
	if err != nil {
		return nil, err
	}
	return agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
}
