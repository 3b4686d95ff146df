// Command made imports the client and makes one, beside what the program plain
// does.
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

func call(context.Context) error {
	client, err := agentmessaging.NewClientFromEnv()
	fmt.Println(client)
	return err
}
