// BYOK stores a provider key, shows what the service tells of it, creates an
// agent that uses it, and clears it.
//
// It runs on a fake inside the program.
package main

import (
	"context"
	"errors"
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
	fake, err := fakeserver.Open()
	if err != nil {
		return err
	}
	defer fake.Close()
	// In a program of your own: client, err := agentmessaging.NewClientFromEnv()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	if err != nil {
		return err
	}
	return use(ctx, client, stdout)
}

// use ends without a stored key, whatever happens in between.
func use(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	key := agentmessaging.Secret("sk-example") // any text will do for the fake
	config, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI,
		APIKey:   key,
		Label:    "byok example",
	})
	if err != nil {
		// The key may be stored all the same: only the answer was lost.
		return errors.Join(err, client.ClearBYOK(ctx))
	}
	// A Secret prints as [redacted], and the service never returns it.
	fmt.Fprintf(stdout, "stored:      %s for %s\n", key, config.Provider)
	fmt.Fprintf(stdout, "fingerprint: %s\n", config.Fingerprint)
	fmt.Fprintf(stdout, "updated at:  %s\n", config.UpdatedAt)

	return errors.Join(talk(ctx, client, stdout), clearKey(ctx, client, stdout))
}

// talk creates an agent that uses the stored key.
func talk(ctx context.Context, client *agentmessaging.Client, stdout io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		LLM: agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK},
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "agent:       %s\n", agent.ID)
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "reply:       %q\n", reply.Text)
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
