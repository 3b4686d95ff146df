package agentmessagingtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/agentmessagingtest"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// t stands for the argument of a test function.
var t = &exampleT{}

type exampleT struct{ testing.TB }

func (*exampleT) Helper()               {}
func (*exampleT) Cleanup(func())        {}
func (*exampleT) Errorf(string, ...any) {}
func (*exampleT) Logf(string, ...any)   {}
func (*exampleT) Failed() bool          { return false }

func ExampleNew() {
	// In a test: func TestAnswer(t *testing.T) {
	ctx := context.Background() // t.Context()
	client, fake := agentmessagingtest.New(t)
	fake.OnMessage(fakeserver.ByTextContaining("order")).Reply("It is on its way.")

	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	fmt.Println(agent.Status, err)
	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Where is my order?"})
	fmt.Println(reply.Text, err)
	// Output:
	// active <nil>
	// It is on its way. <nil>
}

// A day's requests are spent. A client that gives up tells how long to wait;
// tomorrow the call goes through.
func ExampleNew_limits() {
	ctx := context.Background() // t.Context()
	client, fake := agentmessagingtest.New(t)
	agent, _ := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})

	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)
	_, err := client.GetAgent(ctx, agent.ID)
	var refused *agentmessaging.Error
	fmt.Println(errors.As(err, &refused), refused.LimitKey, refused.RetryAfter.Round(time.Hour))

	fake.Advance(refused.RetryAfter)
	_, err = client.GetAgent(ctx, agent.ID)
	fmt.Println(err)
	// Output:
	// true key_day 24h0m0s
	// <nil>
}
