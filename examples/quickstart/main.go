// Quickstart creates an agent, sends it a message and prints the reply.
//
// It runs on a fake inside the program, without a key or a network. With
// AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY set it talks to that
// service.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stdout io.Writer) error {
	client, fake, err := connect()
	if err != nil {
		return err
	}
	defer fake.Close()
	return greet(ctx, client, stdout)
}

func greet(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "You answer questions about opening hours. Be brief.",
		CustomerRef:  "quickstart",
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "agent:     %s (%s)\n", agent.ID, agent.Status) // first of all: what follows may fail
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "When do you open?"})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "reply:     %q\n", reply.Text)
	fmt.Fprintf(stdout, "trace id:  %s\n", reply.TraceID)
	return nil
}

// connect returns a client of the service that AGENT_MESSAGING_BASE_URL and
// AGENT_MESSAGING_API_KEY name, or of a fake in this program where neither is
// set. A program of your own needs NewClientFromEnv only.
func connect() (client *agentmessaging.Client, closer io.Closer, err error) {
	if os.Getenv("AGENT_MESSAGING_BASE_URL") != "" || os.Getenv("AGENT_MESSAGING_API_KEY") != "" {
		client, err = agentmessaging.NewClientFromEnv()
		return client, io.NopCloser(nil), err
	}
	fake, err := fakeserver.Open()
	if err != nil {
		return nil, nil, err
	}
	client, err = agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	return client, fake, err
}
