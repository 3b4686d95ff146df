// Package contract is the documented behaviour of the Agent Messaging Service
// as runnable test cases. They speak raw HTTP to any target: the service itself,
// a fake of it, or a proxy in front of either.
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Target{BaseURL: baseURL, Key: key})
//	}
//
// [Run] checks what the interface document of the service says ("interface 8.1" in
// these pages names a section of it). Each case is a
// subtest, named by the section of the document that states its rule and a short
// name, such as "4.8/reply"; go test -v lists all of them. A case that fails prints
// the rule and the exchange that broke it. A case is skipped if the target lacks
// an ability that it needs, or if the budget does not allow what it spends.
//
// Cases whose id starts with "fake/" check decisions of this project where the
// interface is silent. The service itself never has to pass them, so they run only
// with Target.Decisions. What a service does where the interface is silent, package
// observe finds out.
//
// A proxy before a fake is held to every case. The fake arranges what the cases need, and
// each case has its own proxy and fake:
//
//	contract.Run(t, contract.Target{Fresh: func(tb testing.TB) contract.Target {
//		fake := fakeserver.New(tb)
//		client := &http.Client{Transport: gateway(fake.Direct())}
//		return contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client, Abilities: fake, Decisions: true}
//	}})
//
// The package shares no table with the client or the fake: it states every number
// and every body itself, so that a wrong table there makes a case fail.
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
	// SecondKey is another such key, for cases that need two. If it is empty,
	// Abilities issue one; without Abilities these cases are skipped.
	SecondKey string
	// HTTPClient sends the calls. nil means a client with a timeout of two
	// minutes. Redirects are never followed, even if the client would.
	HTTPClient *http.Client
	// ClientFrom makes a client whose calls come from the address ip. If it is
	// nil, cases that need two addresses are skipped.
	ClientFrom func(ip string) *http.Client

	// Abilities arrange what a case cannot do by calling the target: they issue
	// keys, switch the BYOK store off or move the clock. If they are nil, cases
	// that need them are skipped, and other cases wait in real time.
	Abilities Abilities
	// FrozenClock says that the target's clock moves only when Abilities.Advance moves
	// it. Cases that are exact to the nanosecond need that. The default is false.
	FrozenClock bool
	// Decisions says that the target follows this project's decisions where the
	// interface is silent. Run then includes the cases "fake/...". In all cases it
	// checks the values of error and limit_key, that no two answers of a case have
	// the same trace_id, and that successful answers have no undocumented member.
	// The default is false: none of that is checked.
	Decisions bool
	// Budget bounds what the cases spend. With Fresh it holds for each case alone,
	// otherwise for all cases together. The zero value means
	//
	//   - with Fresh: no bound,
	//   - otherwise: 40 requests, 5 agent creations, 1 BYOK set, 1 warm-up and no
	//     waiting, which a preview key allows within one minute.
	//
	// To spend the whole day of a preview key, set {Requests: 1000, Creations: 50,
	// BYOKSets: 5, WarmUps: 3, Wait: time.Hour}.
	//
	// Without Fresh and Abilities, a limit may refuse a call in the middle of a
	// case, for example because of other calls with the key. That breaks no rule:
	// the case waits as long as Retry-After says if the Wait that is left allows it,
	// and is skipped otherwise.
	Budget Spend

	// Observed is an observation of the target; nil means that nothing is known of
	// it. Without Fresh and Abilities, cases that fill a limit run only if Observed
	// shows a limit of 60 requests a minute (interface 8.1), in fixed or sliding
	// windows. Each of them first waits a minute.
	Observed *observe.Observation
	// Progress is the path of a file in which Run keeps the cases that passed. A
	// later run, for example with the limits of the next day, skips these cases. If
	// it is empty, no file is kept.
	Progress string

	// Fresh makes a new target for one case. The cases then run in parallel. The
	// Target that it returns replaces all fields but Budget and Fresh. If it
	// is nil, all cases share this target and run one after the other.
	Fresh func(tb testing.TB) Target
}

// Abilities arrange what a case cannot do by calling the target: IssueKeyOn,
// RevokeKey, SetBYOKAvailable and Advance. See [observe.Abilities]. A
// *fakeserver.Server has these methods.
type Abilities = observe.Abilities

// Spend is the part of the limits in interface 8.1 that cases take: Requests,
// Creations, BYOKSets, WarmUps and Wait. See [observe.Spend].
type Spend = observe.Spend

// live reports whether the target is a running service: all cases share it, and
// nothing can be arranged, so its clock runs in real time.
func (target Target) live() bool { return target.Fresh == nil && target.Abilities == nil }

// renew makes a fresh target for one case, if the target can.
func (target Target) renew(tb testing.TB) Target {
	if target.Fresh == nil {
		return target
	}
	made := target.Fresh(tb)
	made.Budget, made.Fresh = target.Budget, target.Fresh
	return made
}
