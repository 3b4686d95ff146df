package fakeserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
