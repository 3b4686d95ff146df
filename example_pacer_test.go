package agentmessaging_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// A pacer for the preview defaults, and a limit of your own beside them.
func ExampleNewPacer() {
	limits := append(agentmessaging.PreviewLimits(), agentmessaging.Limit{
		Key: "our_warm_ups", Max: 1, Window: time.Minute, Counts: agentmessaging.CountsWarmUps,
	})
	pacer, err := agentmessaging.NewPacer(limits)
	if err != nil {
		log.Fatal(err)
	}
	fake, client := onFake(agentmessaging.WithLimiter(pacer))
	defer fake.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		_, err := client.WarmUp(ctx, agentmessaging.LLMModeHosted)
		var e *agentmessaging.Error
		if errors.As(err, &e) {
			fmt.Println(e.LimitKey, e.Local) // at once: a minute is longer than the deadline
		}
	}
	fmt.Println(fake.CallCount(), "call was sent")
	// Output:
	// our_warm_ups true
	// 1 call was sent
}

func ExamplePreviewLimits() {
	for _, l := range agentmessaging.PreviewLimits() {
		fmt.Println(l.Key, l.Max, l.Window, l.Counts)
	}
	// Output:
	// key_minute 60 1m0s requests
	// ip_minute 120 1m0s requests
	// key_day 1000 24h0m0s requests
	// agent_create_key_day 50 24h0m0s agent creations
	// agent_create_ip_minute 10 1m0s agent creations
	// byok_set_key_hour 5 1h0m0s BYOK sets
	// warmup_key_hour 3 1h0m0s warm-ups
}

// What the plans raise.
func ExampleProLimits() {
	pro, byok := agentmessaging.ProLimits(), agentmessaging.BYOKLimits()
	for i, l := range agentmessaging.PreviewLimits()[:3] {
		fmt.Println(l.Key, l.Max, pro[i].Max, byok[i].Max)
	}
	// Output:
	// key_minute 60 300 600
	// ip_minute 120 500 1000
	// key_day 1000 10000 50000
}

// Calls that a person waits for go first; these are not such calls.
func ExampleWithPriority() {
	pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits())
	if err != nil {
		log.Fatal(err)
	}
	fake, client := onFake(agentmessaging.WithLimiter(pacer))
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	ctx := agentmessaging.WithPriority(context.Background(), agentmessaging.PriorityBatch)
	for _, text := range []string{"first report", "second report"} {
		reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: text})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(reply.Text)
	}
	// Output:
	// You wrote: first report
	// You wrote: second report
}

// Processes that share a coordinator share the limits. The redisquota module
// has one for Redis and Valkey.
func ExampleWithCoordinator() {
	var coordinator quota.Coordinator // redisquota.New(redisquota.GoRedis(redisClient), apiKey)

	pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits(),
		agentmessaging.WithCoordinator(coordinator),
		agentmessaging.WithFleetSize(4), // until the coordinator has answered
		agentmessaging.WithPacerLogger(slog.Default()))
	if err != nil {
		log.Fatal(err)
	}
	client, err := agentmessaging.NewClientFromEnv(agentmessaging.WithLimiter(pacer))
	fmt.Println(client, err)
}

// Each of ten processes takes a tenth, evenly: of a hundred calls a second ten.
func ExampleWithFleetSize() {
	limits := []agentmessaging.Limit{{Key: "minute", Max: 6000, Window: time.Minute}}
	pacer, err := agentmessaging.NewPacer(limits, agentmessaging.WithFleetSize(10))
	if err != nil {
		log.Fatal(err)
	}
	fake, client := onFake(agentmessaging.WithLimiter(pacer))
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	begin := time.Now()
	for range 4 {
		if _, err := client.GetAgent(context.Background(), agent.ID); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(time.Since(begin) > 250*time.Millisecond)
	// Output:
	// true
}

// On the clock of the fake, minutes pass when the test says so.
func ExampleWithPacerClock() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	limits := []agentmessaging.Limit{{Key: "minute", Max: 1, Window: time.Minute}}
	pacer, err := agentmessaging.NewPacer(limits, agentmessaging.WithPacerClock(fake.Now))
	if err != nil {
		log.Fatal(err)
	}
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(nil)), agentmessaging.WithLimiter(pacer))
	if err != nil {
		log.Fatal(err)
	}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	get := func() {
		_, err := client.GetAgent(ctx, agent.ID)
		fmt.Println(errors.Is(err, agentmessaging.ErrRateLimited))
	}
	get()
	get()
	fake.Advance(2 * time.Minute)
	get()
	// Output:
	// false
	// true
	// false
}
