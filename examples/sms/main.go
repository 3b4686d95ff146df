// SMS enables the text-message channel of an agent. CreateAgentParams.SMS asks for
// one at the creation.
//
// It runs on a fake inside the program. The service describes enabling as a
// scaffold, and does not show what moves a channel from one status to the next.
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
	return enable(ctx, client, fake, stdout)
}

func enable(ctx context.Context, client *agentmessaging.Client, fake *fakeserver.Server, stdout io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "created %s\n", agent.ID)
	if err := show(ctx, client, agent.ID, stdout); err != nil {
		return err
	}
	channel, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeManaged)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "enabled managed SMS: %s\n", channel.Status)
	// On the fake the program is also the one who finishes compliance.
	fake.SetSMS(agent.ID, string(agentmessaging.SMSStatusActive), "+15550100")
	return show(ctx, client, agent.ID, stdout)
}

// show reads the agent: only then does the service tell the phone number.
func show(ctx context.Context, client *agentmessaging.Client, agentID string, stdout io.Writer) error {
	agent, err := client.GetAgent(ctx, agentID)
	switch {
	case err != nil:
		return err
	case agent.SMS == nil:
		fmt.Fprintf(stdout, "  %s has no SMS channel\n", agent.ID)
	case agent.SMS.PhoneNumber == "":
		fmt.Fprintf(stdout, "  %s: SMS is %s\n", agent.ID, agent.SMS.Status)
	default:
		fmt.Fprintf(stdout, "  %s: SMS is %s at %s\n", agent.ID, agent.SMS.Status, agent.SMS.PhoneNumber)
	}
	return nil
}
