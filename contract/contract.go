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
// What the document leaves open, package observe finds out.
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

	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// Target is a service to check.
type Target struct {
	// BaseURL is the address before /v1; a slash at its end does not matter.
	BaseURL string
	// Key is a dashboard-issued API key on an active plan. The cases set and
	// clear its BYOK configuration, so on the live service use a key that
	// nothing else depends on.
	Key string
	// SecondKey is another such key, for cases that need two. "": one is issued
	// where Abilities can.
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
	// preview limits. On a shared target without Abilities, what is left of Wait
	// is waited where a limit refuses a call in the middle of a case; where it
	// does not reach, the case is skipped: a refusal breaks no rule. A thousand
	// requests of a day take {Requests: 1000, Creations: 50, BYOKSets: 5, WarmUps:
	// 3, Wait: time.Hour}.
	Budget Spend

	// Observed is what package observe found out of the target; nil: nothing.
	// On a shared target without Abilities the cases that fill limits run only
	// where it shows the limits of a preview key (interface 8.1), in windows that
	// are fixed or slide; each waits a minute first.
	Observed *observe.Observation
	// Progress is a file that keeps which cases passed, so that a run on the
	// next day, with the next day's limits, goes on with the others. "": none.
	Progress string

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

// Abilities are what a target lets a case arrange beyond calling it.
type Abilities = observe.Abilities

// Spend is what cases take of the limits in interface 8.1.
type Spend = observe.Spend
