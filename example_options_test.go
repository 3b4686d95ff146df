package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

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
	fake, client := onFake(agentmessaging.WithLimiter(make(atMost, 2)))
	defer fake.Close()

	_, err := client.Status(context.Background())
	fmt.Println(err)
	// Output:
	// status 200
	// <nil>
}

func ExampleWithCallInfo() {
	fake, client := onFake()
	defer fake.Close()

	var info agentmessaging.CallInfo
	_, err := client.Status(agentmessaging.WithCallInfo(context.Background(), &info))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.StatusCode, info.Attempts, info.Waited, info.TraceID, info.Header.Get("Content-Type"))
	// Output: 200 1 0s trace_000001 application/json
}

// A journal knows at any moment whether the message may be with the agent.
func ExampleWithBeforeSend() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	closing := agentmessaging.ObserverFunc(func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.AttemptEnd); ok {
			fmt.Println("journal: attempt", end.Attempt, "is", end.Verdict)
		}
		return nil
	})
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)),
		agentmessaging.WithClock(fake), agentmessaging.WithObserver(closing))
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	ctx := agentmessaging.WithBeforeSend(context.Background(), func(_ context.Context, attempt int) error {
		fmt.Println("journal: sending, attempt", attempt)
		return nil // an error would keep the message here
	})
	_, err = client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Order 4711: two chairs."})
	fmt.Println(err)
	// Output:
	// journal: sending, attempt 1
	// journal: attempt 1 is not done
	// journal: sending, attempt 2
	// journal: attempt 2 is done
	// <nil>
}

func ExampleWithRetry() {
	fake, client := onFake(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitWarmUpKeyHour)

	_, err := client.WarmUp(context.Background(), "")
	fmt.Println(err)
	// Output: agentmessaging: POST /v1/warmup: 429 rate_limited (limit warmup_key_hour, retry after 1h0m0s, trace trace_000001)
}

func ExampleWithLogger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "elapsed" {
				return slog.Attr{} // different in each run
			}
			return a
		},
	}))
	fake, client := onFake(agentmessaging.WithLogger(logger))
	defer fake.Close()

	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)

	_, _ = client.GetAgent(context.Background(), "agent_000007")
	// Output:
	// level=INFO msg="agentmessaging cool-down" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 limit_key=key_day wait=24h0m0s
	// level=DEBUG msg="agentmessaging attempt" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 attempt=1 status=429 trace_id=trace_000001 limit_key=key_day
	// level=WARN msg="agentmessaging gave up" method=GET path=/v1/agents/{agent_id} call=1 agent_id=agent_000007 attempts=1 refusals=1 waited=0s trace_id=trace_000001 limit_key=key_day error="agentmessaging: GET /v1/agents/{agent_id}: 429 rate_limited: the next attempt is due in 24h0m0s, later than the RetryPolicy waits (1m30s) (limit key_day, retry after 24h0m0s, trace trace_000001)"
}

func ExampleWithObserver() {
	failed := map[string]int{}
	count := func(_ context.Context, event agentmessaging.Event) context.Context {
		if end, ok := event.(agentmessaging.CallEnd); ok && end.Err != nil {
			failed[end.Endpoint.Name]++
		}
		return nil
	}
	fake, client := onFake(agentmessaging.WithObserver(agentmessaging.ObserverFunc(count)))
	defer fake.Close()

	_, _ = client.GetAgent(context.Background(), "agent_000007")
	_, _ = client.Status(context.Background())
	fmt.Println(failed)
	// Output: map[GetAgent:1]
}
