package fakeserver_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// In a test the fake closes itself, and what goes wrong in it fails the test.
func ExampleNew() {
	test := func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithPlan(fakeserver.PlanPro))
		fake.OnMessage().Reply("We open at nine.").Required()
		client := fake.HTTPClient(t)
		// Give fake.BaseURL(), fake.Key() and client to what is tested.
		_ = client
	}
	_ = test
}

// say sends a text to agent_000001 and prints the status and the answer.
func say(client *http.Client, fake *fakeserver.Server, text string) {
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/agent_000001/messages", fmt.Sprintf(`{"text":%q}`, text))
}

// Scripts stack: the one that was made last answers, where it is its turn.
func ExampleScript() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := &http.Client{Transport: fake.Direct()}

	fake.OnMessage().Reply("Hello.").Required()
	third := fake.OnMessage().Reply("The third message.").Nth(3)
	help := fake.OnMessage(fakeserver.ByText("help")).Reply("Once only.").Times(1)
	never := fake.OnMessage().Reply("Never.").Chance(0, 7)
	for _, text := range []string{"help", "help", "hi"} {
		say(client, fake, text)
	}
	fmt.Println(third.Hits(), help.Hits(), never.Hits())
	third.Remove()
	// Output:
	// 200 {"reply_text":"Once only.","trace_id":"trace_000001"}
	// 200 {"reply_text":"Hello.","trace_id":"trace_000002"}
	// 200 {"reply_text":"The third message.","trace_id":"trace_000003"}
	// 1 1 0
}

// A script may answer with warnings, or with an error that the interface lists.
func ExampleScript_ReplyFunc() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := &http.Client{Transport: fake.Direct()}

	fake.OnMessage().
		ReplyFunc(func(m fakeserver.Message) fakeserver.Reply {
			return fakeserver.Reply{Text: strings.ToUpper(m.Text), Warnings: []string{"loud"}}
		}).
		ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
			return fakeserver.Reply{Status: 400, Code: "bad_request", Reason: "not that word"}
		})
	say(client, fake, "hello")
	say(client, fake, "hello")
	// Output:
	// 200 {"reply_text":"HELLO","warnings":["loud"],"trace_id":"trace_000001"}
	// 400 {"error":"bad_request","trace_id":"trace_000002","reason":"not that word"}
}

// A fault that has to be met, by every call (with 0.5: by half of them, which the
// seed 7 picks), until it is taken out again.
func ExampleInjection() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := &http.Client{Transport: fake.Direct()}

	down := fake.Inject(fakeserver.Answer(503, ""), fakeserver.ByAgent("agent_000001")).Chance(1, 7).Required()
	say(client, fake, "hello")
	fmt.Println(down.Hits())
	down.Remove()
	say(client, fake, "hello")
	// Output:
	// 503 {"error":"service_unavailable","trace_id":"trace_000001","reason":"injected by the test"}
	// 1
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000002"}
}

// A 429 with a Retry-After that few services send, and all may.
func ExampleRateLimited() {
	fake := open()
	defer fake.Close()
	fake.Inject(fakeserver.RateLimited("1.5")).Times(1)

	req, err := http.NewRequest("GET", fake.BaseURL()+"/v1/status", nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := fake.Direct().RoundTrip(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Header.Get("Retry-After"))
	// Output: 429 1.5
}

// Each way in which an answer can fail to arrive, and what the client sees.
// The agent has read all five messages.
func ExampleTruncateReply() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := fake.HTTPClient(nil)

	for _, fault := range []fakeserver.Fault{
		fakeserver.TruncateReply(10),
		fakeserver.ResetReply(10),
		fakeserver.LoseReply(fakeserver.CloseEarly()),
		fakeserver.DripReply(16, time.Millisecond),
		fakeserver.GoAway(),
	} {
		fake.Inject(fault).Times(1)
		req, err := http.NewRequest("POST", fake.BaseURL()+"/v1/agents/"+agent.ID+"/messages", strings.NewReader(`{"text":"hi"}`))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+fake.Key())
		resp, err := client.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		fmt.Println(fault, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF))
	}
	fmt.Println(fake.Admin().ExchangeCount(agent.ID), "exchanges")
	// Output:
	// TruncateReply(10) true false false
	// ResetReply(10) false true false
	// LoseReply(CloseEarly()) false false true
	// DripReply(16, 1ms) false false false
	// GoAway() false false false
	// 5 exchanges
}

// A service that is slow, and one that never answers.
func ExampleLatency() {
	fake, err := fakeserver.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := fake.HTTPClient(nil)
	client.Timeout = 30 * time.Millisecond

	for _, fault := range []fakeserver.Fault{fakeserver.Latency(time.Hour), fakeserver.Hang()} {
		fake.Inject(fault).Times(1)
		_, err := client.Get(fake.BaseURL() + "/v1/status")
		var timeout interface{ Timeout() bool }
		fmt.Println(fault, errors.As(err, &timeout) && timeout.Timeout())
	}
	// Output:
	// Latency(1h0m0s) true
	// Hang() true
}

// Matchers pick calls, for scripts, faults and records alike.
func ExampleMatcher() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{})
	client := &http.Client{Transport: fake.Direct()}
	other := fake.IssueKey(fakeserver.KeyOptions{})
	do(client, other, "GET", fake.BaseURL()+"/v1/agents/agent_000001", "")
	say(client, fake, "good morning")

	refused := func(c fakeserver.Call) bool { return c.Status >= 400 }
	fmt.Println(fake.CallCount(fakeserver.ByKey(other)),
		fake.CallCount(fakeserver.ByAgent("agent_000001")),
		fake.CallCount(fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)),
		fake.CallCount(fakeserver.ByText("good morning")),
		fake.CallCount(fakeserver.ByTextContaining("morning"), fakeserver.ByKey(other)),
		fake.CallCount(fakeserver.Where(refused)))
	// Output:
	// 404 {"error":"not_found","trace_id":"trace_000001","reason":"no agent of this API key has this identifier"}
	// 200 {"reply_text":"You wrote: good morning","trace_id":"trace_000002"}
	// 1 2 1 1 0 1
}

// A Server is an http.Handler: with a recorder, behind middleware, on a socket.
func ExampleServer_ServeHTTP() {
	fake := open()
	defer fake.Close()
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/byok", nil)
	r.Header.Set("Authorization", "Bearer "+fake.Key())
	fake.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)

	server := httptest.NewServer(fake)
	defer server.Close()
	do(server.Client(), fake.Key(), "DELETE", server.URL+"/v1/byok", "")
	// Output:
	// 200 {"ok":true,"byok":null,"trace_id":"trace_000001"}
	// 200 {"ok":true,"trace_id":"trace_000002"}
}

// The service is away from the third call on, and its answers change at a call.
func ExampleRefuseConnection() {
	fake := open()
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.Change("the agent is gone", func() { fake.RemoveAgent(agent.ID) })).Nth(2)
	fake.Inject(fakeserver.Change("the key is revoked", func() { fake.RevokeKey(fake.Key()) })).Nth(3)
	fake.Inject(fakeserver.RefuseConnection()).From(4)
	for range 3 {
		do(client, fake.Key(), "GET", fake.BaseURL()+"/v1/agents/"+agent.ID, "")
	}
	_, err := client.Get(fake.BaseURL() + "/v1/status")
	fmt.Println(errors.Is(err, syscall.ECONNREFUSED))
	fake.ReinstateKey(fake.Key())
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","created_at":"2040-01-01T12:00:00Z","updated_at":"2040-01-01T12:00:00Z","trace_id":"trace_000001"}
	// 404 {"error":"not_found","trace_id":"trace_000002","reason":"no agent of this API key has this identifier"}
	// 401 {"error":"unauthorized","trace_id":"trace_000003","reason":"the API key is unknown or revoked"}
	// true
}
