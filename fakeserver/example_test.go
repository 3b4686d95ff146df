package fakeserver_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// do sends a request with the key and prints the answer.
func do(client *http.Client, key, method, url, body string) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(resp.StatusCode, string(answer))
}

// Outside tests a fake is opened and closed; in tests, New(t) does both.
func ExampleOpen() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := fake.HTTPClient(nil)
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/agent_000001/messages", `{"text":"hello"}`)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000002"}
}

func ExampleServer_OnMessage() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	fake.OnMessage().Reply("Hello.", "What else?")
	fake.OnMessage(fakeserver.ByTextContaining("price")).ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
		return fakeserver.Reply{Text: fmt.Sprintf("After %d exchanges: 5 euros.", len(m.History))}
	})
	client := &http.Client{Transport: fake.Direct()}
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
	for _, text := range []string{"hi", "what is the price?", "thanks"} {
		do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/agent_000001/messages", fmt.Sprintf(`{"text":%q}`, text))
	}
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// 200 {"reply_text":"Hello.","trace_id":"trace_000002"}
	// 200 {"reply_text":"After 1 exchanges: 5 euros.","trace_id":"trace_000003"}
	// 200 {"reply_text":"What else?","trace_id":"trace_000004"}
}

func ExampleServer_Exhaust() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	fake.Exhaust(fake.Key(), fakeserver.LimitWarmUpKeyHour)
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/warmup", "")
	fake.Advance(time.Hour)
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/warmup", "")
	for _, call := range fake.Calls() {
		fmt.Println(call)
	}
	// Output:
	// 429 {"error":"rate_limited","trace_id":"trace_000001","limit_key":"warmup_key_hour"}
	// 200 {"ok":true,"warmed":true,"mode":"hosted","trace_id":"trace_000002"}
	// trace_000001 POST /v1/warmup key_000001: 429 rate_limited (warmup_key_hour)
	// trace_000002 POST /v1/warmup key_000001: 200
}

// The second call is answered by a gateway instead of the service.
func ExampleServer_Inject() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	fake.Inject(fakeserver.RawAnswer(502, "text/html", "<h1>Bad Gateway</h1>"), fakeserver.ByEndpoint(fakeserver.EndpointStatus)).Nth(2)
	for range 3 {
		do(client, fake.Key(), "GET", fake.BaseURL()+"/v1/status", "")
	}
	// Output:
	// 200 {"ok":true,"service":"agent-messaging-fake","version":"v1","mode":"preview","trace_id":"trace_000001"}
	// 502 <h1>Bad Gateway</h1>
	// 200 {"ok":true,"service":"agent-messaging-fake","version":"v1","mode":"preview","trace_id":"trace_000003"}
}

// The message arrives and the reply does not: who sends it again, sends it
// twice.
func ExampleLoseReply() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := fake.HTTPClient(nil)
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Times(1)

	url, body := fake.BaseURL()+"/v1/agents/agent_000001/messages", `{"text":"hello"}`
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+fake.Key())
	_, err = client.Do(req)
	fmt.Println(errors.Is(err, syscall.ECONNRESET), len(fake.Conversation("agent_000001")))
	do(client, fake.Key(), "POST", url, body)
	fmt.Println(len(fake.Conversation("agent_000001")))
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// true 1
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000003"}
	// 2
}
