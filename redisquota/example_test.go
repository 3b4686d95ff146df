package redisquota_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// There is no Redis in this example, so it also shows an outage: the calls go
// on, on this process's share of the limits.
func Example() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()

	redis.SetLogger(silent{}) // go-redis writes failed dials to standard error
	rdb := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:1",
		ContextTimeoutEnabled: true,
		DialTimeout:           250 * time.Millisecond,
		ReadTimeout:           250 * time.Millisecond,
		MaxRetries:            -1,
	})
	defer rdb.Close()
	coordinator, err := redisquota.New(redisquota.GoRedis(rdb), fake.Key())
	if err != nil {
		log.Fatal(err)
	}
	pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits(), agentmessaging.WithCoordinator(coordinator))
	if err != nil {
		log.Fatal(err)
	}
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithLimiter(pacer), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{})
	fmt.Println(err)
	// Output: <nil>
}

type silent struct{}

func (silent) Printf(_ context.Context, format string, args ...any) {
	fmt.Fprintf(io.Discard, format, args...)
}
