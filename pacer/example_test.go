package pacer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// A batch of 20 messages where 60 a minute are allowed: no call is refused, and
// the last ones wait. On the fake that is no time at all. A page of yours, or a metric, may
// show the State.
func ExampleNew() {
	p, err := pacer.New(pacer.PreviewLimits())
	if err != nil {
		log.Fatal(err)
	}
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithLimiter(p),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithClock(fake))
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	for range 20 {
		if _, err := client.SendMessage(context.Background(), agent.ID, agentmessaging.MessageParams{Text: "Hello"}); err != nil {
			log.Fatal(err)
		}
	}
	limit := p.State().Limits[0]
	fmt.Printf("%d calls were sent; %s: %d of %.0f\n", fake.CallCount(), limit.Key, limit.Used, limit.Level)
	// Output: 20 calls were sent; key_minute: 20 of 60
}
