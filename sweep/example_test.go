package sweep_test

import (
	"context"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/sweep"
)

func ExampleTest() {
	var t *testing.T // the argument of func TestReminderSurvives(t *testing.T)

	remind := func(ctx context.Context, client *agentmessaging.Client) error {
		agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
		if err != nil {
			return err
		}
		_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Your order is ready."})
		return err
	}
	sweep.Test(t, func(env *sweep.Env) {
		env.Reports(remind(env.Context(), env.Client))
	}, sweep.Pairs(), sweep.Without(sweep.Doubled, fakeserver.EndpointSendMessage))
}
