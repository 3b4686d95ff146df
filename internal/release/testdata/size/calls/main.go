// Command calls calls every method of the client, beside what the program
// plain does.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

type message struct {
	Text string `json:"text"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := call(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	body, err := json.Marshal(message{"Hello"})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("BASE_URL"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var reply message
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		return err
	}
	fmt.Println(reply.Text)
	return nil
}

func call(ctx context.Context) error {
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
