package pacer_test

import (
	"context"
	"fmt"
	"log"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// onFake is a client on a fake, which waits by the fake's clock.
func onFake(p *pacer.Pacer) (*fakeserver.Server, *agentmessaging.Client) {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithLimiter(p),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithClock(fake))
	if err != nil {
		log.Fatal(err)
	}
	return fake, client
}

// A batch of 20 messages where 60 a minute are allowed: no call is refused, and
// the last ones wait. On the fake that is no time at all.
func ExampleNew() {
	p, err := pacer.New(pacer.PreviewLimits())
	if err != nil {
		log.Fatal(err)
	}
	fake, client := onFake(p)
	defer fake.Close()
	agent, err := client.CreateAgent(context.Background(), agentmessaging.CreateAgentParams{})
	if err != nil {
		log.Fatal(err)
	}
	for range 20 {
		if _, err := client.SendMessage(context.Background(), agent.ID, agentmessaging.MessageParams{Text: "Hello"}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(fake.CallCount(), "calls were sent")
	// Output: 21 calls were sent
}

// What a page of yours, or a metric, may show.
func ExamplePacer_State() {
	p, err := pacer.New(pacer.PreviewLimits())
	if err != nil {
		log.Fatal(err)
	}
	fake, client := onFake(p)
	defer fake.Close()
	if _, err := client.WarmUp(context.Background(), agentmessaging.LLMModeHosted); err != nil {
		log.Fatal(err)
	}
	state := p.State()
	for _, l := range state.Limits {
		if l.Used > 0 {
			fmt.Printf("%s: %d of %.0f\n", l.Key, l.Used, l.Level)
		}
	}
	fmt.Println(state.Interactive+state.Batch, "calls wait")
	// Output:
	// key_minute: 1 of 60
	// ip_minute: 1 of 120
	// key_day: 1 of 1000
	// warmup_key_hour: 1 of 3
	// 0 calls wait
}
