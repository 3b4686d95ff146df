// BYOK stores a provider key, shows what the service tells of it, creates an
// agent that uses it, and clears it.
//
// It runs on a fake inside the program. On the service that
// AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY name it stores the key
// in PROVIDER_API_KEY, which must be one of OpenAI, and does nothing where a
// key is stored already.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/examples/internal/connect"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, stdout io.Writer) error {
	conn, err := connect.Open()
	if err != nil {
		return err
	}
	defer conn.Close()
	client := conn.Client

	key, err := providerKey(conn)
	if err != nil {
		return err
	}
	if err := refuseToReplace(ctx, client); err != nil {
		return err
	}
	config, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI,
		APIKey:   key,
		Label:    "byok example",
	})
	if err != nil {
		return err
	}
	// A Secret prints as [redacted], and the service never returns it.
	fmt.Fprintf(stdout, "stored:      %s for %s\n", key, config.Provider)
	fmt.Fprintf(stdout, "fingerprint: %s\n", config.Fingerprint)
	fmt.Fprintf(stdout, "updated at:  %s\n", config.UpdatedAt)

	return errors.Join(talk(ctx, client, stdout), clearKey(ctx, client, stdout))
}

// providerKey is the key to store: any text will do for the fake.
func providerKey(conn *connect.Conn) (agentmessaging.Secret, error) {
	if conn.Fake != nil {
		return "sk-example", nil
	}
	key := agentmessaging.Secret(os.Getenv("PROVIDER_API_KEY"))
	if key == "" {
		return "", errors.New("set PROVIDER_API_KEY to the OpenAI key to store")
	}
	return key, nil
}

// refuseToReplace keeps the example from clearing a key that is in use: there
// is one configuration for all agents of an API key.
func refuseToReplace(ctx context.Context, client *agentmessaging.Client) error {
	config, err := client.GetBYOK(ctx)
	switch {
	case errors.Is(err, agentmessaging.ErrForbidden):
		return fmt.Errorf("BYOK needs a dashboard-issued API key: %w", err)
	case err != nil:
		return err
	case config != nil:
		return fmt.Errorf("a key for %s is stored already; the example would replace and then clear it", config.Provider)
	}
	return nil
}

// talk creates an agent that uses the stored key.
func talk(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		LLM: agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK},
	})
	if err != nil {
		return err
	}
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "agent:       %s replies %q\n", agent.ID, reply.Text)
	return nil
}

func clearKey(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	if err := client.ClearBYOK(ctx); err != nil {
		return err
	}
	config, err := client.GetBYOK(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "cleared:     %t\n", config == nil)
	return nil
}
