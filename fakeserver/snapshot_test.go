package fakeserver_test

import (
	"fmt"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// churn changes everything that a snapshot of a furnished fake keeps.
func churn(fake *fakeserver.Server, c caller) {
	const provider = `{"provider":"openai","api_key":"sk-new","model":"new"}`
	fake.SetBYOKAvailable(true)
	c.call("PUT", "/v1/byok", provider).wantOK(c.t)
	c.send("agent_000001", "hello again").wantOK(c.t)
	c.call("POST", anAgent+"/channels/sms", `{"mode":"managed"}`).wantOK(c.t)
	c.from(fake, "198.51.100.7").agent(`{"metadata":{"a":1},"llm":{"mode":"byok","provider":"openai","api_key":"sk-x"}}`)
	c.call("POST", "/v1/warmup", noBody).wantOK(c.t)
	c.call("DELETE", "/v1/byok", noBody).wantOK(c.t)
	for _, a := range fake.Agents() {
		fake.AddExchanges(a.ID, fakeserver.Exchange{Text: "hi", Warnings: []string{"w"}})
		fake.SetSMS(a.ID, "active", "+1")
	}
	fake.RemoveAgent("agent_000002")
	fake.AddAgent(c.key, fakeserver.Agent{SMS: &fakeserver.SMS{Mode: "managed"}})
	fake.StoreBYOK(c.key, "sk-z", fakeserver.BYOK{Provider: "openai"})
	fake.SetPlan(c.key, fakeserver.PlanPro)
	fake.Exhaust(c.key, fakeserver.LimitKeyDay)
	fake.Exhaust("amk_fake_000002", fakeserver.LimitWarmUpKeyHour)
	fake.ReinstateKey("amk_fake_000003")
	fake.RevokeKey("amk_fake_000002")
	fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
}

// Restore leads back to exactly the state of the snapshot, however often, and
// nothing that happens reaches the snapshot. Only the identifiers of calls go on.
func TestSnapshotAndRestore(t *testing.T) {
	traces := regexp.MustCompile(`"traces":\d+`)
	for name, opts := range map[string][]fakeserver.Option{
		"fixed": nil, "sliding": {fakeserver.WithDecision("windows", "sliding")},
	} {
		t.Run(name, func(t *testing.T) {
			fake, c := furnished(t, opts...)
			state := func() string { return traces.ReplaceAllString(written(t, fake), "") }
			snapshot, before := fake.Snapshot(), state()
			for range 3 {
				churn(fake, c)
				require.NotEqual(t, before, state())
				fake.Restore(snapshot)
				require.Equal(t, before, state())
			}
			assert.Equal(t, "agent_000003", c.agent(emptyBody), "the key is the agent's again, and numbers are as before")
		})
	}
}

func TestSnapshotLeavesTheTestsOwnAlone(t *testing.T) {
	fake, c := newFake(t)
	agent := seeded(fake, c)
	snapshot := fake.Snapshot()
	script := fake.OnMessage().Reply("scripted")
	c.send(agent, "hello").wantOK(t)
	fake.Restore(snapshot)
	assert.Empty(t, fake.Conversation(agent))
	assert.Equal(t, "scripted", c.send(agent, "hello").text("reply_text"))
	assert.Equal(t, 2, script.Hits())
	assert.Equal(t, []string{"trace_000001", "trace_000002"}, traces(fake.Calls()), "an identifier names one call")
}

func TestSnapshotMisuseAndPrinting(t *testing.T) {
	fake, _ := newFake(t)
	other, _ := newFake(t)
	snapshot := fake.Snapshot()
	const misuse = "fakeserver: Restore: the snapshot is not one that this fake made"
	assert.Equal(t, misuse, panicOf(func() { other.Restore(snapshot) }))
	assert.Equal(t, misuse, panicOf(func() { fake.Restore(nil) }))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		assert.Equal(t, "fakeserver.Snapshot fakeserver.Snapshot", fmt.Sprintf(verb+" "+verb, snapshot, *snapshot))
	}
}

// Snapshots and restores among concurrent calls: under the race detector, and
// without a call that sees half of a state.
func TestRestoreAmongCalls(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	agent := seeded(fake, c)
	snapshot := fake.Snapshot()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				c.send(agent, "hello").wantOK(t)
				fake.Restore(snapshot)
				fake.Restore(fake.Snapshot())
			}
		})
	}
	all.Wait()
	assert.Len(t, fake.Calls(), 400)
}
