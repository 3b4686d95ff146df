package fakeserver_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// A key of another kind, which changes its plan and is revoked.
func ExampleServer_IssueKey() {
	fake := open()
	defer fake.Close()
	key := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanPro, NotDashboard: true})
	callAs(fake, key, "GET", "/v1/byok", "")
	fake.SetPlan(key, fakeserver.PlanBYOK)
	fake.RevokeKey(key)
	callAs(fake, key, "GET", "/v1/byok", "")
	// Output:
	// 403 {"error":"forbidden","trace_id":"trace_000001","reason":"BYOK requires a dashboard-issued API key"}
	// 401 {"error":"unauthorized","trace_id":"trace_000002","reason":"the API key is unknown or revoked"}
}

// A limit that is spent, without the calls that would spend it, and opens again.
func ExampleServer_Exhaust() {
	fake := open()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitWarmUpKeyHour)
	call(fake, "POST", "/v1/warmup", "")
	fake.Advance(time.Hour)
	call(fake, "POST", "/v1/warmup", "")
	for _, l := range fake.Limits(fake.Key()) {
		if l.Used > 0 {
			fmt.Println(l.Key, l.Used, "of", l.Max)
		}
	}
	fmt.Println(len(fake.Limits(fake.Key(), fakeserver.FromIP("192.0.2.1"))), "with the limits of the address")
	// Output:
	// 429 {"error":"rate_limited","trace_id":"trace_000001","limit_key":"warmup_key_hour"}
	// 200 {"ok":true,"warmed":true,"mode":"hosted","trace_id":"trace_000002"}
	// key_minute 1 of 60
	// key_day 1 of 1000
	// warmup_key_hour 1 of 3
	// 7 with the limits of the address
}

// A year passes, and then a caller waits for a day to end: the clock moves a
// day, and nobody waits.
func ExampleServer_Advance() {
	fake := open()
	defer fake.Close()
	fake.Advance(366 * 24 * time.Hour)
	fmt.Println(fake.Now())
	_ = fake.Sleep(context.Background(), 24*time.Hour)
	fmt.Println(fake.Now())
	// Output:
	// 2041-01-01 12:00:00 +0000 UTC
	// 2041-01-02 12:00:00 +0000 UTC
}

// An agent that has been there for a year, with its conversation, and what the
// service does to it in its own time.
func ExampleServer_AddAgent() {
	fake := open()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{
		CreatedAt: time.Date(2039, 1, 1, 0, 0, 0, 0, time.UTC),
		SMS:       &fakeserver.SMS{Mode: "managed"},
	})
	fake.AddExchanges(agent.ID, fakeserver.Exchange{Text: "hello", ReplyText: "Good morning."})
	fake.SetSMS(agent.ID, "active", "+12025550123")
	call(fake, "GET", "/v1/agents/agent_000001", "")

	agent, ok := fake.Agent("agent_000001")
	fmt.Println(ok, agent.LLM.Mode, agent.SMS.Mode, fake.Conversation(agent.ID)[0].ReplyText)
	fake.RemoveAgent(agent.ID)
	// Output:
	// 200 {"agent_id":"agent_000001","status":"active","created_at":"2039-01-01T00:00:00Z","updated_at":"2040-01-01T12:00:00Z","sms":{"status":"active","phone_number":"+12025550123"},"trace_id":"trace_000001"}
	// true hosted managed Good morning.
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
	call(fake, "POST", "/v1/warmup", `{"mode":"byok"}`)
	// Output:
	// true anthropic production
	// 503 {"error":"byok_unavailable","trace_id":"trace_000001","reason":"mode: BYOK is not available, so no provider key can be used or stored"}
}

// A state that outlives its fake.
func ExampleServer_WriteState() {
	fake, next := open(), open()
	defer fake.Close()
	defer next.Close()
	fake.AddAgent(fake.Key(), fakeserver.Agent{ID: "support"})
	var file bytes.Buffer
	if err := fake.WriteState(&file); err != nil {
		log.Fatal(err)
	}
	if err := next.ReadState(&file); err != nil {
		log.Fatal(err)
	}
	agent, ok := next.Agent("support")
	fmt.Println(agent.ID, ok)
	// Output: support true
}
