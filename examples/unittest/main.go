// Unittest is an imaginary application, an HTTP handler that asks an agent,
// and its test on the fake: handler.go and handler_test.go.
//
// As a program it asks the handler one question, on a fake.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
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
	w := httptest.NewRecorder()
	askHandler(client, agent.ID).ServeHTTP(w, httptest.NewRequest("POST", "/ask", strings.NewReader("When do you open?")))
	_, err = fmt.Fprintln(stdout, w.Code, w.Body)
	return err
}
