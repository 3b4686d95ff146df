package fakeserver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestWithKey(t *testing.T) {
	a, ca := newFake(t, fakeserver.WithKey("mine"), fakeserver.WithPlan(fakeserver.PlanPro))
	b, cb := newFake(t, fakeserver.WithKey("yours"))
	issued := a.IssueKey(fakeserver.KeyOptions{})
	assert.Equal(t, []string{"mine", "mine_000002", "yours", "yours_000002"},
		[]string{a.Key(), issued, b.Key(), b.IssueKey(fakeserver.KeyOptions{})})
	ca.call("GET", "/v1/status", noBody).wantOK(t)
	ca.with(issued).call("GET", "/v1/status", noBody).wantOK(t)
	assert.Equal(t, 401, cb.with(a.Key()).call("GET", "/v1/status", noBody).status)
	assert.Equal(t, 401, cb.with("amk_fake_000001").call("GET", "/v1/status", noBody).status)
	assert.Equal(t, "key_000002", a.Calls()[1].Key)
	assert.Equal(t, fakeserver.PlanPro, a.Admin().Keys()[0].Plan)
	a.Reset()
	assert.Equal(t, "mine", a.Key())
	assert.Equal(t, fakeserver.PlanPro, a.Admin().Keys()[0].Plan, "Reset keeps it")
	ca.call("GET", "/v1/status", noBody).wantOK(t)
}

func TestKeys(t *testing.T) {
	fake, c := newFake(t, frozen())
	start := time.Unix(year2040, 0).UTC()
	fake.Advance(time.Hour)
	second := fake.IssueKey(fakeserver.KeyOptions{Plan: fakeserver.PlanFree, NotDashboard: true})
	for range 9 {
		fake.IssueKey(fakeserver.KeyOptions{})
	}
	fake.RevokeKey(second)
	c.from(fake, "203.0.113.7").call("GET", "/v1/status", noBody)
	keys := fake.Admin().Keys()
	require.Len(t, keys, 11)
	assert.Equal(t, fakeserver.KeyInfo{Label: "key_000001", Plan: fakeserver.PlanPreview, Dashboard: true, IssuedAt: start, Address: "203.0.113.7"}, keys[0])
	assert.Equal(t, fakeserver.KeyInfo{Label: "key_000002", Plan: fakeserver.PlanFree, Revoked: true, IssuedAt: start.Add(time.Hour)}, keys[1])
	assert.Equal(t, "key_000011", keys[10].Label, "in the order of issue")
	fake.Reset()
	assert.Equal(t, start.Add(time.Hour), fake.Admin().Keys()[0].IssuedAt)
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

func TestLimitsFrom(t *testing.T) {
	fake, c := newFake(t, frozen())
	here := c.from(fake, "203.0.113.7")
	here.agent(emptyBody)
	here.with(fake.IssueKey(fakeserver.KeyOptions{})).agent(emptyBody)
	used := func(address string) (n []int) {
		for _, l := range fake.Admin().LimitsFrom(c.key, address) {
			n = append(n, l.Used)
		}
		return n
	}
	assert.Equal(t, []int{1, 2, 1, 1, 2, 0, 0}, used("203.0.113.7"), "the address counts all keys")
	assert.Equal(t, []int{1, 2, 1, 1, 2, 0, 0}, used("::ffff:203.0.113.7"))
	assert.Equal(t, []int{1, 0, 1, 1, 0, 0, 0}, used("203.0.113.8"))
	fake.SetPlan(c.key, fakeserver.PlanBYOK)
	for range 8 {
		here.agent(emptyBody)
	}
	fake.Exhaust(c.key, "ip_minute")
	states := fake.Admin().LimitsFrom(c.key, "203.0.113.7")
	opens := time.Unix(year2040, 0).UTC().Add(time.Minute)
	assert.Equal(t, fakeserver.LimitState{Key: "ip_minute", Max: 1000, Used: 10, Opens: opens}, states[1], "shut")
	assert.Equal(t, fakeserver.LimitState{Key: "agent_create_ip_minute", Max: 10, Used: 10, Opens: opens}, states[4], "full")
	assert.Equal(t, fakeserver.LimitState{Key: "key_minute", Max: 600, Used: 9}, states[0])
}
