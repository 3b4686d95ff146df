package agentmessagingtest_test

import (
	"context"
	"fmt"
	"testing"

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
