//go:build made

package main

import (
	"context"
	"fmt"

	"github.com/agent-messaging-service/agentmessaging-go"
)

func init() {
	use = func(context.Context) error {
		client, err := agentmessaging.NewClientFromEnv()
		fmt.Println(client)
		return err
	}
}
