package fakeserver_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// open returns a fake whose clock is stopped at noon.
func open() *fakeserver.Server {
	noon := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	fake, err := fakeserver.Open(fakeserver.WithClock(func() time.Time { return noon }))
	if err != nil {
		log.Fatal(err)
	}
	return fake
}

// call makes a call, and prints the answer.
func call(fake *fakeserver.Server, key, method, path, body string) {
	req, answer := httptest.NewRequest(method, path, strings.NewReader(body)), httptest.NewRecorder()
	req.Header.Set("Authorization", "Bearer "+key)
	fake.ServeHTTP(answer, req)
	fmt.Println(answer.Code, answer.Body)
}

// say sends a text to agent_000001.
func say(fake *fakeserver.Server, text string) {
	call(fake, fake.Key(), "POST", "/v1/agents/agent_000001/messages", fmt.Sprintf(`{"text":%q}`, text))
}

// Outside tests a fake is opened and closed; in tests, New(t) does both.
func ExampleOpen() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Status(context.Background())
	fmt.Println(err)
	// Output: <nil>
}

// A script answers with texts, or with the result of a function, which may also have warnings
// or be an error of interface 4.8. The newest script comes first; if it does not act on the
// message, the next older one does.
func ExampleServer_OnMessage() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.OnMessage().Reply("Hello.", "What else?")
	fake.OnMessage(fakeserver.ByTextContaining("price")).ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: fmt.Sprintf("After %d exchanges: 5 euros.", len(m.History)), Warnings: []string{"old"}}
	})
	fake.OnMessage(fakeserver.ByText("bother")).Times(1).ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Status: 400, Reason: "not that word"}
	})
	for _, text := range []string{"hi", "what is the price?", "bother", "bother"} {
		say(fake, text)
	}
	// Output:
	// 200 {"reply_text":"Hello.","trace_id":"trace_000001"}
	// 200 {"reply_text":"After 1 exchanges: 5 euros.","warnings":["old"],"trace_id":"trace_000002"}
	// 400 {"error":"bad_request","trace_id":"trace_000003","reason":"not that word"}
	// 200 {"reply_text":"What else?","trace_id":"trace_000004"}
}

// A test sets up an agent that was created a year ago, with its conversation, and a change that
// the service makes later.
func ExampleServer_AddAgent() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{
		CreatedAt: time.Date(2039, 1, 1, 0, 0, 0, 0, time.UTC),
		SMS:       &fakeserver.SMS{Mode: "managed"},
	})
	fake.AddExchanges(agent.ID, fakeserver.Exchange{Text: "hello", ReplyText: "Good morning."})
	fake.SetSMS(agent.ID, "active", "+12025550123")
	call(fake, fake.Key(), "GET", "/v1/agents/agent_000001", "")

	agent, ok := fake.Agent("agent_000001")
	fmt.Println(ok, agent.LLM.Mode, agent.SMS.Mode, fake.Conversation(agent.ID)[0].ReplyText)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","created_at":"2039-01-01T00:00:00Z","updated_at":"2040-01-01T12:00:00Z","sms":{"status":"active","phone_number":"+12025550123"},"trace_id":"trace_000001"}
	// true hosted managed Good morning.
}

// The second call is answered by a gateway instead of the service. The service is down from
// the third on, for every call (with 0.5: for half of them, which the seed 7 picks), until
// the fault is removed. Required makes the test fail if the fault is never used.
func ExampleServer_Inject() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.RawAnswer(502, "text/html", "<h1>Bad Gateway</h1>"), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).From(2).Times(1)
	down := fake.Inject(fakeserver.Answer(503, "")).From(3).Chance(1, 7).Required()
	for range 3 {
		say(fake, "hello")
	}
	fmt.Println(down.Hits())
	down.Remove()
	say(fake, "hello")
	// Output:
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// 502 <h1>Bad Gateway</h1>
	// 503 {"error":"service_unavailable","trace_id":"trace_000003","reason":"injected by the test"}
	// 1
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000004"}
}

// The same matchers pick calls for scripts, for faults and for records.
func ExampleMatcher() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	other := fake.IssueKey(fakeserver.KeyOptions{})
	call(fake, other, "GET", "/v1/agents/agent_000001", "")
	say(fake, "good morning")
	call(fake, "", "GET", "/v1/status", "")
	for _, m := range []fakeserver.Matcher{
		fakeserver.ByKey(other),
		fakeserver.ByAgent("agent_000001"),
		fakeserver.ByEndpoint(fakeserver.EndpointSendMessage),
		fakeserver.ByText("good morning"),
		fakeserver.ByTextContaining("morning"),
		fakeserver.ByText(""), // matches no call: a call without text is not a message with an empty text
		fakeserver.ByKey(""),  // matches no call: a call without a key has no key, and not an empty one
	} {
		fmt.Println(fake.CallCount(m), m)
	}
	refused := fakeserver.Where(func(c fakeserver.Call) bool { return c.Status >= 400 })
	fmt.Println(fake.CallCount(refused, fakeserver.ByKey(other)))
	// Output:
	// 404 {"error":"not_found","trace_id":"trace_000001","reason":"no agent of this API key has this identifier"}
	// 200 {"reply_text":"You wrote: good morning","trace_id":"trace_000002"}
	// 401 {"error":"unauthorized","trace_id":"trace_000003","reason":"the Authorization header must be: Bearer, a space, and an API key"}
	// 1 ByKey(key_000002)
	// 2 ByAgent(agent_000001)
	// 1 ByEndpoint(POST /v1/agents/{agent_id}/messages)
	// 1 ByText(12 characters)
	// 1 ByTextContaining(7 characters)
	// 0 ByText(0 characters)
	// 0 ByKey(…)
	// 1
}

// A test waits until the program under test has sent its second message, and
// watches the calls meanwhile.
func ExampleServer_AwaitCalls() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	stop := fake.OnCall(func(c fakeserver.Call) { fmt.Println("seen:", c) }, fakeserver.ByText("hello"))
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
	stop()
	say(fake, "hello")
	// Output:
	// seen: trace_000001 POST /v1/agents/agent_000001/messages key_000001: 200
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// 200 {"reply_text":"You wrote: goodbye","trace_id":"trace_000002"}
	// 2 trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200 <nil>
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000003"}
}
