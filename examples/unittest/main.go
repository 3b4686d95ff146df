// Unittest is an imaginary application, an HTTP handler that asks an agent,
// and its test on the fake: handler.go and handler_test.go.
//
// As a program it serves the handler on a loopback port and asks it one
// question, on a fake.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

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
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}
	server := httptest.NewServer(askHandler(client, agent.ID))
	defer server.Close()
	return post(ctx, server.URL+"/ask", "When do you open?", stdout)
}

func post(ctx context.Context, url, question string, stdout io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(question))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s\n%s\n", resp.Status, body)
	return nil
}
