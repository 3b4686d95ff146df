package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The address and the key from the environment, as a deployed program has them.
func ExampleNewClientFromEnv() {
	_ = os.Setenv(agentmessaging.EnvBaseURL, "https://service.example")
	_ = os.Setenv(agentmessaging.EnvAPIKey, "key")
	defer os.Unsetenv(agentmessaging.EnvBaseURL)
	defer os.Unsetenv(agentmessaging.EnvAPIKey)

	client, err := agentmessaging.NewClientFromEnv()
	fmt.Println(client, err)
	// Output: agentmessaging.Client(https://service.example) <nil>
}

func ExampleClient_Status() {
	fake, client := onFake()
	defer fake.Close()

	status, err := client.Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.OK, status.Service, status.Version, status.Mode)
	// Output: true agent-messaging-fake v1 preview
}

func ExampleClient_ClearBYOK() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()

	_, err := client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI,
		APIKey:   "sk-example",
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := client.ClearBYOK(ctx); err != nil {
		log.Fatal(err)
	}
	config, err := client.GetBYOK(ctx)
	fmt.Println(config == nil, err)
	// Output: true <nil>
}

// A proxy of your own, or other timeouts, come with an http.Client. Its
// Timeout bounds one attempt, WithTimeout the call.
func ExampleWithHTTPClient() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	hc := fake.HTTPClient(nil) // elsewhere &http.Client{Transport: ...}
	hc.Timeout = 30 * time.Second
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(hc),
		agentmessaging.WithTimeout(2*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Status(context.Background())
	fmt.Println(err)
	// Output: <nil>
}

// Without the cool-down each call is refused by the service for itself.
func ExampleWithoutCoolDown() {
	fake, client := onFake(agentmessaging.WithoutCoolDown())
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)

	for range 2 {
		_, _ = client.GetAgent(context.Background(), "agent_000001")
	}
	fmt.Println(fake.CallCount(), "calls were refused by the service")
	// Output: 2 calls were refused by the service
}

// A web handler fails fast beside a batch that waits; both share connections,
// key and cool-down.
func ExampleClient_With() {
	fake, batch := onFake()
	defer fake.Close()
	handler, err := batch.With(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1, MaxWait: time.Second}))
	if err != nil {
		log.Fatal(err)
	}
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	for range 2 {
		_, err = handler.GetAgent(context.Background(), "agent_000001")
		fmt.Println(errors.Is(err, agentmessaging.ErrRateLimited))
	}
	fmt.Println(fake.CallCount(), "call was refused by the service, the other one here")
	// Output:
	// true
	// true
	// 1 call was refused by the service, the other one here
}

// A test need not wait for a limit to open.
func ExampleWithClock() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithClock(fake))
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)
	var info agentmessaging.CallInfo
	_, err = client.GetAgent(agentmessaging.WithCallInfo(context.Background(), &info), agent.ID)
	fmt.Println(err, info.Attempts, info.Waited >= time.Minute)
	// Output: <nil> 2 true
}

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
