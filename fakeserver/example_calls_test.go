package fakeserver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Matchers pick calls, for scripts, faults and records alike.
func ExampleMatcher() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	other := fake.IssueKey(fakeserver.KeyOptions{})
	callAs(fake, other, "GET", "/v1/agents/agent_000001", "")
	say(fake, "good morning")
	for _, m := range []fakeserver.Matcher{
		fakeserver.ByKey(other),
		fakeserver.ByAgent("agent_000001"),
		fakeserver.ByEndpoint(fakeserver.EndpointSendMessage),
		fakeserver.ByText("good morning"),
		fakeserver.ByTextContaining("morning"),
	} {
		fmt.Println(fake.CallCount(m), m)
	}
	refused := fakeserver.Where(func(c fakeserver.Call) bool { return c.Status >= 400 })
	fmt.Println(fake.CallCount(refused, fakeserver.ByKey(other)))
	// Output:
	// 404 {"error":"not_found","trace_id":"trace_000001","reason":"no agent of this API key has this identifier"}
	// 200 {"reply_text":"You wrote: good morning","trace_id":"trace_000002"}
	// 1 ByKey(key_000002)
	// 2 ByAgent(agent_000001)
	// 1 ByEndpoint(POST /v1/agents/{agent_id}/messages)
	// 1 ByText(12 characters)
	// 1 ByTextContaining(7 characters)
	// 1
}

// A test waits until the program under test has sent its second message, and
// watches the calls meanwhile.
func ExampleServer_AwaitCalls() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	stop := fake.OnCall(func(c fakeserver.Call) { fmt.Println("seen:", c) }, fakeserver.ByText("hello"))
	defer stop()
	done := make(chan bool)
	go func() { // the program
		say(fake, "hello")
		say(fake, "goodbye")
		close(done)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	calls, err := fake.AwaitCalls(ctx, 2, fakeserver.ByAgent(agent.ID))
	<-done
	fmt.Println(len(calls), calls[1], err)
	// Output:
	// seen: trace_000001 POST /v1/agents/agent_000001/messages key_000001: 200
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// 200 {"reply_text":"You wrote: goodbye","trace_id":"trace_000002"}
	// 2 trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200 <nil>
}
