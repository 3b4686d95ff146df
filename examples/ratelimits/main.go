// Ratelimits reads an agent until the service refuses, shows the typed error
// and waits as long as it asks.
//
// It runs on a fake inside the program, whose clock it moves instead of
// waiting.
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
	// By default a call waits out a minute limit by itself. With one attempt
	// it returns the refusal, and the program decides.
	fake, err := fakeserver.Open()
	if err != nil {
		return err
	}
	defer fake.Close()
	// In a program of your own: client, err := agentmessaging.NewClientFromEnv()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)),
		agentmessaging.WithClock(fake), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	if err != nil {
		return err
	}
	return exceed(ctx, client, fake, stdout)
}

func exceed(ctx context.Context, client *agentmessaging.Client, clock agentmessaging.Clock, stdout io.Writer) error {
	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	if err != nil {
		return err
	}

	refusal, err := readUntilRefused(ctx, client, agent.ID, stdout)
	if err != nil {
		return err
	}
	show(refusal, stdout)
	fmt.Fprintf(stdout, "waiting %s\n", refusal.RetryAfter)
	if err := clock.Sleep(ctx, refusal.RetryAfter); err != nil { // in a program of your own: time.Sleep
		return err
	}
	if _, err := client.GetAgent(ctx, agent.ID); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "the next call went through")
	return nil
}

// maxCalls is more than any plan allows in a minute, and keeps the example
// from spending a whole day's requests on a service without limits.
const maxCalls = 700

func readUntilRefused(ctx context.Context, client *agentmessaging.Client, agentID string, stdout io.Writer) (*agentmessaging.Error, error) {
	for n := range maxCalls {
		_, err := client.GetAgent(ctx, agentID)
		var refusal *agentmessaging.Error
		if errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &refusal) {
			fmt.Fprintf(stdout, "refused after %d calls\n", n+1) // creation was one
			return refusal, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("not refused in %d calls", maxCalls)
}

func show(refusal *agentmessaging.Error, stdout io.Writer) {
	fmt.Fprintf(stdout, "  error:       %s\n", refusal)
	fmt.Fprintf(stdout, "  status:      %d\n", refusal.StatusCode)
	fmt.Fprintf(stdout, "  code:        %s\n", refusal.Code)
	fmt.Fprintf(stdout, "  limit key:   %s\n", refusal.LimitKey)
	fmt.Fprintf(stdout, "  retry after: %s\n", refusal.RetryAfter)
	fmt.Fprintf(stdout, "  trace id:    %s\n", refusal.TraceID)
}
