// Package contract is the documented behaviour of the Agent Messaging Service
// as runnable cases. They speak raw HTTP to any target: the service itself, a
// fake of it, a proxy before either.
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Target{BaseURL: baseURL, Key: key})
//	}
//
// [Run] checks what the interface document says. Each case prints the sentence
// that it checks when it fails, knows what it spends of the limits, and what
// the target must let it arrange. A case that the target's abilities or its
// budget do not reach is left out, and Run says so.
//
// [Observe] finds out what the document leaves open: how a target answers each
// open question, with the request and the answer that show it. A fake can then
// be made to answer likewise, and a later run shows what has changed.
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
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Target is a service to check.
type Target struct {
	// BaseURL is the address before /v1; a slash at its end does not matter.
	BaseURL string
	// Key is a dashboard-issued API key on an active plan. The cases set and
	// clear its BYOK configuration, so on the live service use a key that
	// nothing else depends on.
	Key string
	// SecondKey is another such key, for the questions of Observe that need
	// two. "": one is issued where Abilities can.
	SecondKey string
	// HTTPClient sends the calls. nil means one with a timeout of two
	// minutes. No redirect is followed, whatever the client says.
	HTTPClient *http.Client
	// ClientFrom makes a client whose calls come from the address ip. nil:
	// cases that need two addresses are left out.
	ClientFrom func(ip string) *http.Client

	// Abilities are what the target lets a case arrange beyond calling it.
	// nil: cases that need them are left out, and waits are slept.
	Abilities Abilities
	// Decisions claims this project's decisions where the interface is
	// silent: the cases "fake/...", and on every answer the values of error
	// and limit_key, a trace_id of its own and no undocumented member.
	Decisions bool
	// Budget bounds what the cases may spend: all of them together on a target
	// that they share, each of them with Fresh. The zero value means no bound
	// with Fresh. On a shared target it means 40 requests, 5 agent creations,
	// 1 BYOK set, 1 warm-up and no wait, which is within one minute of the
	// preview limits.
	Budget Spend

	// Fresh makes an untouched target for one case, and the cases then run in
	// parallel. What it returns replaces the whole Target but Budget, Bubble
	// and Fresh. nil: all cases share this target, one after the other.
	Fresh func(tb testing.TB) Target
	// Bubble runs each case in a testing/synctest bubble, in which time moves
	// only by waiting: waits are slept, cost nothing, and are exact to the
	// nanosecond. For targets in memory that Fresh makes; a socket hangs in a
	// bubble.
	Bubble bool
}

// Abilities are what a target lets a case arrange beyond calling it. A
// *fakeserver.Server has them by its methods, also where a proxy stands before
// it.
type Abilities interface {
	// IssueKeyOn makes an API key on one of the plans preview (the defaults
	// of interface 8.1), free, pro and byok (interface 8.2), dashboard-issued
	// or not.
	IssueKeyOn(plan string, dashboard bool) string
	// RevokeKey makes a key that IssueKeyOn made invalid.
	RevokeKey(key string)
	// SetBYOKAvailable switches the store of provider keys off and on
	// (status 503 in interface 4.2 and 4.4).
	SetBYOKAvailable(available bool)
	// Advance moves the target's clock. In a Bubble it is not used.
	Advance(d time.Duration)
}

// Run runs every case that the target's abilities and budget allow, each as a
// subtest named by its id, and skips the others with the reason. Where it left
// some out it says on standard error how many ran, and what would let the
// others run; go test shows that with -v, and without it in the folder of the
// package.
func Run(t *testing.T, target Target) {
	t.Helper()
	p := newPlan(allCases(), target.renew(t))
	if slices.ContainsFunc(p, func(c planned) bool { return c.leftOut != "" }) {
		fmt.Fprintln(os.Stderr, p)
	}
	if target.Fresh != nil {
		p = p.basesFirst()
	}
	shared := new(shared)
	for _, c := range p {
		t.Run(c.ID, func(t *testing.T) {
			if c.leftOut != "" {
				t.Skip("left out: " + c.leftOut)
			}
			c.start(t, target, shared)
		})
	}
}

// renew makes the target of one case, where each has its own.
func (target Target) renew(tb testing.TB) Target {
	if target.Fresh == nil {
		return target
	}
	made := target.Fresh(tb)
	made.Budget, made.Bubble, made.Fresh = target.Budget, target.Bubble, target.Fresh
	return made
}

// start runs the case as t: on the target that all share, or on one of its
// own. Others may build on a base, so it runs before them and not beside them.
func (c testCase) start(t *testing.T, target Target, all *shared) {
	if c.base {
		t.Cleanup(func() {
			if t.Failed() {
				all.broken = append(all.broken, c.ID)
			}
		})
	}
	own := all
	if target.Fresh != nil {
		own = &shared{broken: all.broken}
		if !c.base {
			t.Parallel()
		}
	}
	check := func(t *testing.T) { c.check(t, target.renew(t), own) }
	if target.Bubble && target.Fresh != nil {
		synctest.Test(t, check)
	} else {
		check(t)
	}
}
