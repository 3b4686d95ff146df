package fakeserver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestKeys(t *testing.T) {
	fake, c := newFake(t, frozen())
	start := time.Unix(year2040, 0).UTC()
	fake.Advance(time.Hour)
	fake.RevokeKey(fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree, NotDashboard: true}))
	for range 9 {
		fake.IssueKey(fakeserver.KeyOptions{})
	}
	c.from(fake, "203.0.113.7").call("GET", "/v1/status", noBody)
	keys := fake.Admin().Keys()
	assert.Equal(t, []fakeserver.KeyInfo{
		{Label: "key_000001", Plan: fakeserver.PlanPreview, Dashboard: true, IssuedAt: start, Address: "203.0.113.7"},
		{Label: "key_000002", Plan: fakeserver.PlanFree, Revoked: true, IssuedAt: start.Add(time.Hour)},
	}, keys[:2])
	assert.Equal(t, "key_000011", keys[10].Label, "in the order of issue")
}

func TestKeyWithLabel(t *testing.T) {
	fake, _ := newFake(t)
	issued := fake.IssueKey(fakeserver.KeyOptions{})
	for label, want := range map[string]string{
		"key_000001": fake.Key(), "key_000002": issued,
		"key_000003": "", "key_000000": "", "key_2": "", "key_0000002": "", "key_-00001": "", "000002": "", "": "", "missing": "",
	} {
		key, ok := fake.Admin().KeyWithLabel(label)
		assert.Equal(t, want, key, label)
		assert.Equal(t, want != "", ok, label)
	}
}

// spent is what a key and an address have spent, as of start.
func spent(states []fakeserver.LimitState) string {
	var lines []string
	for _, l := range states {
		line := fmt.Sprintf("%s %d/%d", l.Key, l.Used, l.Max)
		if !l.Opens.IsZero() {
			line += " +" + l.Opens.Sub(time.Unix(year2040, 0)).String()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func TestLimits(t *testing.T) {
	fake, c := newFake(t, frozen(), fakeserver.WithLimit("byok_set_key_hour", 2))
	const address = "203.0.113.7"
	here := c.from(fake, address)
	assert.Regexp(t, `^key_minute 0/\d+, key_day 0/1000, agent_create_key_day 0/50, byok_set_key_hour 0/2, warmup_key_hour 0/3$`, spent(fake.Limits(c.key)))
	here.agent(emptyBody)
	here.with(fake.IssueKey(fakeserver.KeyOptions{})).agent(emptyBody)
	here.setBYOK()
	here.setBYOK()
	here.call("PUT", "/v1/byok", `{"provider":"openai","api_key":"sk"}`).wantLimited(t, "byok_set_key_hour", "3600")
	fake.Exhaust(c.key, "ip_minute")
	fake.SetPlan(c.key, fakeserver.PlanPro)
	of := func(address string) string { return spent(fake.Admin().LimitsFrom(c.key, address)) }
	assert.Equal(t, "key_minute 3/300, ip_minute 4/500 +1m0s, key_day 3/10000, agent_create_key_day 1/50, agent_create_ip_minute 2/10, "+
		"byok_set_key_hour 2/2 +1h0m0s, warmup_key_hour 0/3", of(address), "the address counts all keys")
	assert.Equal(t, of(address), of("::ffff:"+address))
	assert.Contains(t, of("203.0.113.8"), "ip_minute 0/500 +1m0s, ")
	assert.Regexp(t, `^key_minute 0/\d+, `, spent(fake.Limits(fake.IssueKey(fakeserver.KeyOptions{}))), "another account")
	fake.Advance(time.Minute)
	for range 10 {
		here.agent(emptyBody)
	}
	assert.Contains(t, of(address), "agent_create_ip_minute 10/10 +2m0s", "full")
	fake.Advance(time.Hour)
	assert.Equal(t, "key_minute 0/300, ip_minute 0/500, key_day 13/10000, agent_create_key_day 11/50, agent_create_ip_minute 0/10, "+
		"byok_set_key_hour 0/2, warmup_key_hour 0/3", of(address))
}

func seqs(calls []fakeserver.Call) []int {
	numbers := []int{}
	for _, c := range calls {
		numbers = append(numbers, c.Seq)
	}
	return numbers
}

func TestCallsAfter(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithCallLimit(5))
	assert.Empty(t, fake.Admin().CallsAfter(0, 1))
	assert.Zero(t, fake.Admin().LastSeq())
	for range 7 {
		c.call("GET", "/v1/status", noBody)
		c.call("GET", "/v1/byok", noBody)
	}
	assert.Equal(t, 14, fake.Admin().LastSeq())
	assert.Equal(t, []int{10, 11, 12, 13, 14}, seqs(fake.Admin().CallsAfter(0, 9)), "the ring has turned, and what was dropped is missing")
	assert.Equal(t, []int{12, 13}, seqs(fake.Admin().CallsAfter(11, 2)))
	assert.Equal(t, []int{12, 14}, seqs(fake.Admin().CallsAfter(11, 2, fakeserver.ByEndpoint(fakeserver.EndpointGetBYOK))))
	assert.Empty(t, fake.Admin().CallsAfter(14, 1))
	fake.Reset()
	assert.Empty(t, fake.Admin().CallsAfter(0, 9))
	c.call("GET", "/v1/status", noBody)
	assert.Equal(t, []int{15}, seqs(fake.Admin().CallsAfter(0, 9)), "numbers go on")
}
