package fakeserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// The second call is answered by a gateway instead of the service. The service
// is down from the third on, for every call (with 0.5: for half of them, which
// the seed 7 picks), until the fault is taken out. Required: or the test fails.
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

// What the client sees of each fault, and how many messages the agent has read
// by then: behind LoseReply and those after it, who sends again, sends twice.
func ExampleFault() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := fake.HTTPClient(nil)
	for _, fault := range []fakeserver.Fault{
		fakeserver.RateLimited("1.5"),
		fakeserver.RefuseConnection(),
		fakeserver.CloseEarly(),
		fakeserver.ResetConnection(),
		fakeserver.LoseReply(fakeserver.CloseEarly()),
		fakeserver.TruncateReply(10),
		fakeserver.ResetReply(10),
		fakeserver.DripReply(16, time.Millisecond),
		fakeserver.GoAway(),
	} {
		meet(fake, client, agent.ID, fault)
	}
	client.Timeout = 50 * time.Millisecond // enough to arrive
	meet(fake, client, agent.ID, fakeserver.Hang())
	meet(fake, client, agent.ID, fakeserver.Latency(time.Hour))
	// Output:
	// RateLimited("1.5"): 429, 0 read
	// RefuseConnection(): connection refused, 0 read
	// CloseEarly(): EOF, 0 read
	// ResetConnection(): connection reset by peer, 0 read
	// LoseReply(CloseEarly()): EOF, 1 read
	// TruncateReply(10): unexpected EOF, 2 read
	// ResetReply(10): connection reset by peer, 3 read
	// DripReply(16, 1ms): 200, 4 read
	// GoAway(): 200, 5 read
	// Hang(): context deadline exceeded, 5 read
	// Latency(1h0m0s): context deadline exceeded, 5 read
}

// meet sends a message into a fault, and prints the status or the error, and
// how many messages the agent has read by then.
func meet(fake *fakeserver.Server, client *http.Client, agentID string, fault fakeserver.Fault) {
	defer fake.Inject(fault).Times(1).Remove()
	req, _ := http.NewRequest("POST", fake.BaseURL()+"/v1/agents/"+agentID+"/messages", strings.NewReader(`{"text":"hi"}`))
	req.Header.Set("Authorization", "Bearer "+fake.Key())
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
	}
	var outcome any
	for _, known := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.ECONNREFUSED, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			outcome = known
		}
	}
	if err == nil {
		outcome = resp.StatusCode
	}
	fmt.Printf("%v: %v, %d read\n", fault, outcome, len(fake.Conversation(agentID)))
}

// The state changes at a call, which is then answered in the new state.
func ExampleChange() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.Change("the agent is gone", func() { fake.RemoveAgent(agent.ID) })).Nth(2)
	fake.Inject(fakeserver.Change("the key is revoked", func() { fake.RevokeKey(fake.Key()) })).Nth(3)
	for range 3 {
		say(fake, "hello")
	}
	fake.ReinstateKey(fake.Key())
	call(fake, "DELETE", "/v1/byok", "")
	// Output:
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000001"}
	// 404 {"error":"not_found","trace_id":"trace_000002","reason":"no agent of this API key has this identifier"}
	// 401 {"error":"unauthorized","trace_id":"trace_000003","reason":"the API key is unknown or revoked"}
	// 200 {"ok":true,"trace_id":"trace_000004"}
}
