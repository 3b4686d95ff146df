package fakeserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestLimitsShowWhatWasSpent(t *testing.T) {
	fake, c := newFake(t, frozen(), fakeserver.WithLimit("byok_set_key_hour", 2))
	start := time.Unix(year2040, 0).UTC()
	row := func(key fakeserver.Limit, maximum, used int, opens time.Duration) fakeserver.LimitState {
		state := fakeserver.LimitState{Key: key, Max: maximum, Used: used}
		if opens > 0 {
			state.Opens = start.Add(opens)
		}
		return state
	}
	assert.Equal(t, []fakeserver.LimitState{
		row("key_minute", fake.Limits(c.key)[0].Max, 0, 0), row("key_day", 1000, 0, 0), row("agent_create_key_day", 50, 0, 0),
		row("byok_set_key_hour", 2, 0, 0), row("warmup_key_hour", 3, 0, 0),
	}, fake.Limits(c.key))

	c.agent(emptyBody)
	c.setBYOK()
	c.setBYOK()
	c.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).wantLimited(t, "byok_set_key_hour", "3600")
	c.call("GET", "/v1/status", noBody)
	fake.Exhaust(c.key, "warmup_key_hour")
	fake.SetPlan(c.key, fakeserver.PlanPro)
	assert.Equal(t, []fakeserver.LimitState{
		row("key_minute", 300, 3, 0), row("key_day", 10_000, 3, 0), row("agent_create_key_day", 50, 1, 0),
		row("byok_set_key_hour", 2, 2, time.Hour), row("warmup_key_hour", 3, 0, time.Hour),
	}, fake.Limits(c.key))
	assert.Equal(t, 0, fake.Limits(fake.IssueKey(fakeserver.KeyOptions{}))[0].Used, "another account")

	fake.Advance(time.Hour)
	assert.Equal(t, []fakeserver.LimitState{
		row("key_minute", 300, 0, 0), row("key_day", 10_000, 3, 0), row("agent_create_key_day", 50, 1, 0),
		row("byok_set_key_hour", 2, 0, 0), row("warmup_key_hour", 3, 0, 0),
	}, fake.Limits(c.key))
}

// The constants stand in their own digits: they name the limits of interface 8.1.
func TestLimitConstants(t *testing.T) {
	var all []fakeserver.Limit
	fake, c := newFake(t)
	for _, state := range fake.Admin().LimitsFrom(c.key, "192.0.2.1") {
		all = append(all, state.Key)
	}
	assert.Equal(t, []fakeserver.Limit{
		fakeserver.LimitKeyMinute, fakeserver.LimitIPMinute, fakeserver.LimitKeyDay, fakeserver.LimitAgentCreateKeyDay,
		fakeserver.LimitAgentCreateIPMinute, fakeserver.LimitBYOKSetKeyHour, fakeserver.LimitWarmUpKeyHour,
	}, all)
}
