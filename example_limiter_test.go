package agentmessaging_test

import (
	"context"
	"fmt"
	"log"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// atMost is a Limiter: so many attempts at once, and no more.
type atMost chan struct{}

// Acquire waits for a free place.
func (l atMost) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	select {
	case l <- struct{}{}:
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Done frees it.
func (l atMost) Done(outcome agentmessaging.AttemptOutcome) {
	fmt.Println("status", outcome.StatusCode)
	<-l
}

// A limiter of your own, which takes the place of the cool-down: at most two
// attempts are under way at any time.
func ExampleWithLimiter() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)),
		agentmessaging.WithLimiter(make(atMost, 2)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Status(context.Background())
	fmt.Println(err)
	// Output:
	// status 200
	// <nil>
}
