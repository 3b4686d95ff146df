//go:build calls

package main

import (
	"context"
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go"
)

func init() {
	use = func(ctx context.Context) error {
		client, err := agentmessaging.NewClientFromEnv()
		if err != nil {
			return err
		}
		status, err := client.Status(ctx)
		fmt.Println(status, err)
		warm, err := client.WarmUp(ctx, "")
		fmt.Println(warm, err)
		stored, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{})
		fmt.Println(stored, err)
		stored, err = client.GetBYOK(ctx)
		fmt.Println(stored, err, client.ClearBYOK(ctx))
		agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
		if err != nil {
			return err
		}
		agent, err = client.GetAgent(ctx, agent.ID)
		fmt.Println(agent, err)
		sms, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeSandbox)
		fmt.Println(sms, err)
		reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
		fmt.Println(reply, err)
		return err
	}
}
