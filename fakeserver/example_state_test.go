package fakeserver_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Keys of other kinds, what can be seen of them, and a key that changes its plan
// and is revoked.
func ExampleServer_IssueKey() {
	fake := open()
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}

	key := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanPro, NotDashboard: true})
	do(client, key, "GET", fake.BaseURL()+"/v1/byok", "")
	fake.SetPlan(key, fakeserver.PlanBYOK)
	fake.RevokeKey(key)
	do(client, key, "GET", fake.BaseURL()+"/v1/byok", "")
	for _, info := range fake.Admin().Keys() {
		fmt.Println(info.Label, info.Plan, info.Dashboard, info.Revoked)
	}
	text, ok := fake.Admin().KeyWithLabel("key_000002")
	fmt.Println(text == key, ok)
	// Output:
	// 403 {"error":"forbidden","trace_id":"trace_000001","reason":"BYOK requires a dashboard-issued API key"}
	// 401 {"error":"unauthorized","trace_id":"trace_000002","reason":"the API key is unknown or revoked"}
	// key_000001 preview true false
	// key_000002 byok false true
	// true true
}

// What a key and an address have spent.
func ExampleServer_Limits() {
	fake := open()
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct(fakeserver.FromIP("203.0.113.7"))}
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/warmup", "")
	fake.Exhaust(fake.Key(), fakeserver.LimitAgentCreateKeyDay)

	for _, l := range fake.Limits(fake.Key()) {
		if wait := l.Opens.Sub(fake.Now()); wait > 0 {
			fmt.Println(l.Key, "opens in", wait)
		} else if l.Used > 0 {
			fmt.Println(l.Key, l.Used, "of", l.Max)
		}
	}
	of := fake.Admin().LimitsFrom(fake.Key(), "203.0.113.7")
	fmt.Println(len(of), of[1].Key, of[1].Used)
	// Output:
	// 200 {"ok":true,"warmed":true,"mode":"hosted","trace_id":"trace_000001"}
	// key_minute 1 of 60
	// key_day 1 of 1000
	// agent_create_key_day opens in 24h0m0s
	// warmup_key_hour 1 of 3
	// 7 ip_minute 1
}

// What the service knows of agents, whichever key asks.
func ExampleServer_Agents() {
	fake := open()
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", `{"customer_ref":"42","sms":{"mode":"managed"}}`)

	fake.SetSMS("agent_000001", "active", "+12025550123") // as the service does in its own time
	do(client, fake.Key(), "GET", fake.BaseURL()+"/v1/agents/agent_000001", "")
	agent, ok := fake.Agent("agent_000001")
	fmt.Println(fake.Admin().AgentCount(), len(fake.Agents()), ok, agent.CustomerRef, agent.LLM.Mode, agent.LLM.Tier, agent.SMS.Mode)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","sms":{"status":"needs_compliance"},"trace_id":"trace_000001"}
	// 200 {"agent_id":"agent_000001","status":"active","created_at":"2040-01-01T12:00:00Z","updated_at":"2040-01-01T12:00:00Z","sms":{"status":"active","phone_number":"+12025550123"},"trace_id":"trace_000002"}
	// 1 1 true 42 hosted fast managed
}

// A provider key that is stored before the test begins, and a store that is
// down.
func ExampleServer_StoreBYOK() {
	fake := open()
	defer fake.Close()
	fake.StoreBYOK(fake.Key(), "sk-example", fakeserver.BYOK{Provider: "anthropic", Label: "production"})
	config, set := fake.BYOK(fake.Key())
	fmt.Println(set, config.Provider, config.Label)

	fake.SetBYOKAvailable(false)
	fmt.Println(fake.Admin().BYOKAvailable())
	do(&http.Client{Transport: fake.Direct()}, fake.Key(), "POST", fake.BaseURL()+"/v1/warmup", `{"mode":"byok"}`)
	// Output:
	// true anthropic production
	// false
	// 503 {"error":"byok_unavailable","trace_id":"trace_000001","reason":"mode: BYOK is not available, so no provider key can be used or stored"}
}

// A year passes.
func ExampleServer_Advance() {
	fake := open()
	defer fake.Close()
	fake.Advance(366 * 24 * time.Hour)
	fmt.Println(fake.Now(), fake.Admin().Advanced())
	// Output: 2041-01-01 12:00:00 +0000 UTC 8784h0m0s
}

// A caller waits for a day to end: the clock moves a day, and nobody waits.
func ExampleServer_Sleep() {
	fake := open()
	defer fake.Close()
	begun := fake.Now()
	_ = fake.Sleep(context.Background(), 24*time.Hour)
	fmt.Println(fake.Now().Sub(begun).Round(time.Hour))
	// Output: 24h0m0s
}

// Back to what New left, in a loop over cases for example.
func ExampleServer_Reset() {
	fake := open()
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	for range 2 {
		do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
		fake.Reset()
	}
	fmt.Println(len(fake.Agents()), fake.CallCount())
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000001"}
	// 0 0
}

// A state that outlives its fake.
func ExampleServer_WriteState() {
	fake := open()
	defer fake.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "support"})
	var file bytes.Buffer
	if err := fake.WriteState(&file); err != nil {
		log.Fatal(err)
	}

	next := open()
	defer next.Close()
	if err := next.ReadState(&file); err != nil {
		log.Fatal(err)
	}
	agent, ok := next.Agent("support")
	fmt.Println(agent.ID, ok)
	// Output: support true
}

// What is new since the last look, and what is no longer kept.
func ExampleAdmin_CallsAfter() {
	fake, err := fakeserver.Open(fakeserver.WithCallLimit(3))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	call := func() { _, _ = fake.Direct().RoundTrip(get(fake, "/v1/status")) }
	call()
	call()
	seen := fake.Admin().LastSeq()
	call()
	call()
	for _, c := range fake.Admin().CallsAfter(seen, 10) {
		fmt.Println(c.Seq, c)
	}
	fmt.Println(fake.CallCount(), "kept,", fake.Admin().DroppedCalls(), "dropped, of", fake.Admin().TotalCalls())
	// Output:
	// 3 trace_000003 GET /v1/status key_000001: 200
	// 4 trace_000004 GET /v1/status key_000001: 200
	// 3 kept, 1 dropped, of 4
}

// get is a request with the default key.
func get(fake *fakeserver.Server, path string) *http.Request {
	req, err := http.NewRequest("GET", fake.BaseURL()+path, nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+fake.Key())
	return req
}

// A call is shown when it has been answered, before its client has the answer.
func ExampleServer_OnCall() {
	fake := open()
	defer fake.Close()
	stop := fake.OnCall(func(c fakeserver.Call) { fmt.Println("seen:", c) }, fakeserver.ByEndpoint(fakeserver.EndpointStatus))
	for range 2 {
		resp, err := fake.Direct().RoundTrip(get(fake, "/v1/status"))
		fmt.Println(resp.StatusCode, err)
		stop()
	}
	// Output:
	// seen: trace_000001 GET /v1/status key_000001: 200
	// 200 <nil>
	// 200 <nil>
}

// For the developer tools of a browser.
func ExampleServer_WriteHAR() {
	fake := open()
	defer fake.Close()
	_, _ = fake.Direct().RoundTrip(get(fake, "/v1/status"))
	var archive strings.Builder
	if err := fake.WriteHAR(&archive); err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(archive.String(), `"version": "1.2"`), strings.Contains(archive.String(), fake.Key()))
	// Output: true false
}

// Every option, with what it is for.
func ExampleOption() {
	noon := time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)
	fake, err := fakeserver.Open(
		fakeserver.WithClock(func() time.Time { return noon }),  // a clock that stands still
		fakeserver.WithKey("key-of-the-configuration"),          // what the program under test is configured with
		fakeserver.WithPlan(fakeserver.PlanPro),                 // its plan
		fakeserver.WithLimit(fakeserver.LimitKeyMinute, 10_000), // a limit out of the way
		fakeserver.WithDecision("windows", "sliding"),           // the other way to count
		fakeserver.WithColdStart(time.Millisecond),              // a first message that takes longer
		fakeserver.WithDecision("metadata_cap", 100),            // a bound that the interface leaves open
		fakeserver.WithCallLimit(math.MaxInt),                   // keep all calls
		fakeserver.WithMessageTexts(),                           // with readable texts
		fakeserver.WithUnknownRoutes(),                          // calls to no endpoint are meant
	)
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	client := &http.Client{Transport: fake.Direct()}
	do(client, fake.Key(), "GET", fake.BaseURL()+"/v2/status", "")
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", `{"metadata":{"note":"`+strings.Repeat("x", 100)+`"}}`)
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents", "{}")
	do(client, fake.Key(), "POST", fake.BaseURL()+"/v1/agents/agent_000001/messages", `{"text":"hello"}`)
	fmt.Println(fake.Key(), fake.Calls()[3].Body)
	// Output:
	// 404 {"error":"not_found","trace_id":"trace_000001","reason":"no endpoint has this path"}
	// 400 {"error":"bad_request","trace_id":"trace_000002","reason":"metadata: at most 100 characters of compact JSON"}
	// 200 {"agent_id":"agent_000001","status":"active","trace_id":"trace_000003"}
	// 200 {"reply_text":"You wrote: hello","trace_id":"trace_000004"}
	// key-of-the-configuration {"text":"hello"}
}

// A fake that answers as another service was seen to, and what it decided itself.
func ExampleLike() {
	observed := []byte(`{"format":1,"decisions":{"metadata_cap":{"answer":8192}}}`) // from agentmessaging-fake observe
	fake, err := fakeserver.Open(fakeserver.Like(observed))
	if err != nil {
		log.Fatal(err)
	}
	defer fake.Close()
	for _, d := range fake.Decisions() {
		if d.Observed || d.ID == "windows" {
			fmt.Println(d.Question, d.Answer, d.Observed)
		}
	}
	// Output:
	// How many characters of compact JSON may metadata have? 8192 true
	// Is the window of a limit fixed, or does it slide? "fixed" false
}
