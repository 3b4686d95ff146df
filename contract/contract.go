// Package contract is the documented behaviour of the Agent Messaging Service
// as runnable cases. They speak raw HTTP to any target: the service itself, a
// fake of it, a proxy before either.
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Target{BaseURL: baseURL, Key: key})
//	}
//
// Each [Case] names the sentence of the interface document that it checks and
// prints it when it fails, says what it spends of the limits, and what the
// target must be able to arrange for it. A case that the target's abilities
// or budget do not reach is left out, and [Run] says so.
//
// The package knows neither the client nor a fake: it states every number and
// every body in its own words, so that a wrong table or tag elsewhere shows.
// Cases whose id starts with "fake/" check decisions of this project where the
// interface is silent; the service itself never has to pass them.
//
// Not checked: how long an answer takes, the words of replies and reasons, and
// what the interface calls "not shown" and this project has not decided.
package contract

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Target is a service to check.
type Target struct {
	// BaseURL is the address before /v1; a slash at its end does not matter.
	BaseURL string
	// HTTPClient makes the client of a case. nil means one with a timeout of
	// two minutes. No redirect is followed, whatever the client says.
	HTTPClient func(tb testing.TB) *http.Client
	// Key is a dashboard-issued API key on an active plan. The cases set and
	// clear its BYOK configuration, so on the live service use a key that
	// nothing else depends on.
	Key string

	// Abilities are what the target lets a case arrange.
	Abilities Abilities
	// Budget is what the cases may spend: all of them together on a target
	// that they share, each of them with Fresh. The zero value means
	// [DefaultBudget] on a shared target and no bound with Fresh.
	Budget Spend
	// Fresh makes an untouched target for one case, and the cases then run in
	// parallel. What it returns replaces the whole Target but Budget, Bubble
	// and Fresh. nil: all cases share this target, one after the other.
	Fresh func(tb testing.TB) Target
	// Bubble runs each case in a testing/synctest bubble, in which time moves
	// only by waiting: waits cost nothing and are exact to the nanosecond.
	// For targets in memory that Fresh makes; a socket hangs in a bubble.
	Bubble bool
}

// Abilities are what a target lets a case arrange beyond calling it. Cases
// that need what is nil or false are left out.
type Abilities struct {
	// IssueKey makes an API key on one of the plans preview (the defaults of
	// interface 8.1), free, pro and byok (interface 8.2), dashboard-issued or
	// not.
	IssueKey func(plan string, dashboard bool) string
	// RevokeKey makes a key that IssueKey made invalid.
	RevokeKey func(key string)
	// Advance moves the target's clock. nil: waits are slept, and count
	// against Budget.Wait outside a bubble.
	Advance func(d time.Duration)
	// SetBYOKAvailable switches the store of provider keys off and on
	// (status 503 in interface 4.2 and 4.4).
	SetBYOKAvailable func(available bool)
	// ClientFrom makes a client whose calls come from the address ip.
	ClientFrom func(tb testing.TB, ip string) *http.Client
	// BulkClient makes the client of the cases that fill a daily limit with
	// thousands of calls. nil means HTTPClient.
	BulkClient func(tb testing.TB) *http.Client
	// Decisions claims this project's decisions where the interface is
	// silent: the cases "fake/...", and on every answer the values of error
	// and limit_key and a trace_id of its own.
	Decisions bool
}

// Run runs every case that the target's abilities and budget allow, each as a
// subtest named by its id, and skips the others with the reason.
func Run(t *testing.T, target Target) {
	t.Helper()
	plan := newPlan(Cases(), target.known(t))
	t.Log(plan)
	shared := &sharedAgent{}
	for _, p := range plan {
		t.Run(p.ID, func(t *testing.T) {
			if p.leftOut != "" {
				t.Skip("left out: " + p.leftOut)
			}
			p.start(t, target, shared)
		})
	}
}

// known is the target as the plan must see it: with the abilities that each
// fresh target will have.
func (target Target) known(tb testing.TB) Target {
	if target.Fresh == nil {
		return target
	}
	return target.renew(tb)
}

// renew makes the target of one case.
func (target Target) renew(tb testing.TB) Target {
	made := target.Fresh(tb)
	made.Budget, made.Bubble, made.Fresh = target.Budget, target.Bubble, target.Fresh
	return made
}

// start runs the case as t: on the target that all share, or in parallel on
// one of its own.
func (c Case) start(t *testing.T, target Target, shared *sharedAgent) {
	switch {
	case target.Fresh == nil:
		c.check(t, target, shared)
	case target.Bubble:
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { c.check(t, target.renew(t), &sharedAgent{}) })
	default:
		t.Parallel()
		c.check(t, target.renew(t), &sharedAgent{})
	}
}
