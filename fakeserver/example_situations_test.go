package fakeserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Situations that tests of applications meet.

// situation returns a fake, a client of it and an agent.
func situation() (fake *fakeserver.Server, client *agentmessaging.Client, agent *agentmessaging.Agent, ctx context.Context) {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	ctx = context.Background()
	client = clientOf(fake, fake.Key())
	if agent, err = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{}); err != nil {
		log.Fatal(err)
	}
	return fake, client, agent, ctx
}

// clientOf returns a client that calls with key, and hardly waits.
func clientOf(fake *fakeserver.Server, key string) *agentmessaging.Client {
	client, err := agentmessaging.NewClient(fake.BaseURL(), key,
		agentmessaging.WithHTTPClient(&http.Client{Transport: fake.Direct()}),
		agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: time.Millisecond}))
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func Example_scriptedConversation() {
	fake, client, agent, ctx := situation()
	defer fake.Close()
	fake.OnMessage(fakeserver.ByTextContaining("order")).Reply("Which order?", "It ships today.")
	first, _ := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Where is my order?"})
	second, _ := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "My order 17"})
	fmt.Println(first.Text, second.Text)
	// Output: Which order? It ships today.
}

func Example_dailyLimit() {
	fake, client, agent, ctx := situation()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
	_, err := client.GetAgent(ctx, agent.ID) // at once: a day is longer than any wait
	fmt.Println(errors.Is(err, agentmessaging.ErrRateLimited))
	fake.Advance(24 * time.Hour)
	_, err = client.GetAgent(ctx, agent.ID)
	fmt.Println(err)
	// Output:
	// true
	// <nil>
}

func Example_lostReply() {
	fake, client, agent, ctx := situation()
	defer fake.Close()
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Times(1)
	_, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
	fmt.Println(errors.Is(err, agentmessaging.ErrOutcomeUnknown))
	fmt.Println(len(fake.Conversation(agent.ID))) // the agent has read it, once
	// Output:
	// true
	// 1
}

func Example_inactivePlan() {
	fake, client, agent, ctx := situation()
	defer fake.Close()
	fake.SetPlan(fake.Key(), fakeserver.PlanFree)
	_, err := client.GetAgent(ctx, agent.ID)
	fmt.Println(errors.Is(err, agentmessaging.ErrPaymentRequired))
	// Output: true
}

func Example_byokDown() {
	fake, client, _, ctx := situation()
	defer fake.Close()
	fake.SetBYOKAvailable(false)
	_, err := client.WarmUp(ctx, agentmessaging.LLMModeBYOK)
	fmt.Println(errors.Is(err, agentmessaging.ErrUnavailable))
	// Output: true
}

func Example_twoAccounts() {
	fake, _, agent, ctx := situation()
	defer fake.Close()
	other := clientOf(fake, fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanPro}))
	_, err := other.GetAgent(ctx, agent.ID)
	fmt.Println(errors.Is(err, agentmessaging.ErrNotFound))
	// Output: true
}

func Example_flakyNetwork() {
	fake, client, agent, ctx := situation()
	defer fake.Close()
	flaky := fake.Inject(fakeserver.CloseEarly(), fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)).Chance(0.3, 7)
	for range 4 {
		_, err := client.GetAgent(ctx, agent.ID)
		fmt.Println(err, flaky.Hits()) // in every run the same: the seed decides
	}
	// Output:
	// <nil> 0
	// <nil> 0
	// <nil> 2
	// <nil> 4
}

// TestWaitedOut: a 429 waited out, in virtual time.
func TestWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, client, agent, ctx := situation()
		defer fake.Close()
		fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)
		start := time.Now()
		_, err := client.GetAgent(ctx, agent.ID)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), time.Minute) // none of it real
	})
}

// TestSlowAgent: an agent that is slower than the caller's patience.
func TestSlowAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, client, agent, ctx := situation()
		defer fake.Close()
		fake.Inject(fakeserver.LoseReply(fakeserver.Hang()), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage))
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// ExampleServer_Direct makes one call by hand.
func ExampleServer_Direct() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	req, _ := http.NewRequest("GET", fake.BaseURL()+"/v1/byok", nil)
	req.Header.Set("Authorization", "Bearer "+fake.Key())
	resp, err := fake.Direct().RoundTrip(req)
	if err != nil {
		log.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body))
	// Output: 200 {"ok":true,"byok":null,"trace_id":"trace_000001"}
}
