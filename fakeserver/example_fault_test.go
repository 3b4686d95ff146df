package fakeserver_test

import (
	"fmt"

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
