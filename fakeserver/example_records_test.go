package fakeserver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// open returns a fake whose clock stands still.
func open() *fakeserver.Server {
	noon := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	fake, err := fakeserver.Open(fakeserver.WithClock(func() time.Time { return noon }))
	if err != nil {
		log.Fatal(err)
	}
	return fake
}

// A test waits until the program under test has sent its second message.
func ExampleServer_AwaitCalls() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	var program sync.WaitGroup
	program.Go(func() {
		client := &http.Client{Transport: fake.Direct()}
		for _, text := range []string{"hello", "goodbye"} {
			do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/"+agent.ID+"/messages", fmt.Sprintf(`{"text":%q}`, text))
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	calls, err := fake.AwaitCalls(ctx, 2, fakeserver.ByAgent(agent.ID))
	program.Wait()
	fmt.Println(len(calls), calls[1], err)
	// Output:
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// 200 {"reply_text":"You wrote: goodbye","trace_id":"trace_000002"}
	// 2 trace_000002 POST /v1/agents/agent_000001/messages key_000001: 200 <nil>
}

// One line of JSON for each call; texts and keys are redacted.
func ExampleServer_WriteCalls() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	req, err := http.NewRequest("GET", fake.BaseURL()+"/v1/agents/"+agent.ID, nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("User-Agent", "shop/1.0")
	resp, err := fake.Direct().RoundTrip(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if err := fake.WriteCalls(os.Stdout, fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"seq":1,"time":"2040-01-01T12:00:00Z","endpoint":"GET /v1/agents/{agent_id}","method":"GET","url":"https://WithHTTPClient(fake.HTTPClient(t)).is-missing.invalid/v1/agents/agent_000001","path":"/v1/agents/agent_000001","agent_id":"agent_000001","key":"missing","address":"192.0.2.1","header":{"Accept-Encoding":["gzip"],"User-Agent":["shop/1.0"]},"body_bytes":0,"took_ns":0,"sent":{"status":401,"header":{"Content-Length":["127"],"Content-Type":["application/json"],"Date":["Sun, 01 Jan 2040 12:00:00 GMT"],"Www-Authenticate":["Bearer"]},"body":"{\"error\":\"unauthorized\",\"trace_id\":\"trace_000001\",\"reason\":\"the Authorization header must be: Bearer, a space, and an API key\"}","bytes":127},"status":401,"code":"unauthorized","reason":"the Authorization header must be: Bearer, a space, and an API key","reply_body":"{\"error\":\"unauthorized\",\"trace_id\":\"trace_000001\",\"reason\":\"the Authorization header must be: Bearer, a space, and an API key\"}","trace_id":"trace_000001"}
}

// What several tests need is set up once; each begins with the same state.
func ExampleServer_Snapshot() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "support"})
	ready := fake.Snapshot()

	client := &http.Client{Transport: fake.Direct()}
	for range 2 {
		do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/support/messages", `{"text":"hello"}`)
		fmt.Println("exchanges:", len(fake.Conversation("support")))
		fake.Restore(ready)
	}
	// Output:
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// exchanges: 1
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000002"}
	// exchanges: 1
}

// An agent that has been there for a year, with its conversation.
func ExampleServer_AddAgent() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{
		CreatedAt: time.Date(2039, 1, 1, 0, 0, 0, 0, time.UTC),
		SMS:       &fakeserver.SMS{Mode: "sandbox"},
	})
	fake.AddExchanges(agent.ID, fakeserver.Exchange{Text: "hello", ReplyText: "Good morning."})

	client := &http.Client{Transport: fake.Direct()}
	do(client, fake.Key(), "GET", fake.BaseURL()+"/v1/agents/"+agent.ID, "")
	fmt.Println(agent.SMS.PhoneNumber, fake.Conversation(agent.ID)[0].ReplyText)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","created_at":"2039-01-01T00:00:00Z","updated_at":"2039-01-01T00:00:00Z","sms":{"status":"active","phone_number":"+12025550101"},"trace_id":"trace_000001"}
	// +12025550101 Good morning.
}
