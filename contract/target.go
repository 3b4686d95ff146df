package contract

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
	// SecondKey is another such key, for cases that need two keys. If it is empty, Abilities
	// issue one; without Abilities these cases are skipped.
	SecondKey string
	// HTTPClient sends the calls. nil means a client with a timeout of two
	// minutes. Redirects are never followed, even if the client would.
	HTTPClient *http.Client
	// ClientFrom makes a client whose calls come from the address ip, or from any other
	// address than HTTPClient's. If it is nil, cases that need two addresses are skipped.
	ClientFrom func(ip string) *http.Client

	// Abilities do things that a case cannot do with calls: they issue keys, switch the BYOK
	// store off or move the clock. If they are nil, cases that need them are skipped, and
	// cases that wait for a limit take real time, some of them a day: Budget.Wait bounds it.
	Abilities Abilities
	// FrozenClock says that the target's clock moves only when Abilities.Advance moves it.
	// Cases that are exact to the nanosecond need a frozen clock. The default is false.
	FrozenClock bool
	// Decisions says that the target follows this project's decisions where the interface is
	// silent. Run then includes the cases "fake/...". In all cases it checks the values of
	// error and limit_key, that no two answers of a case have the same trace_id, and that
	// successful answers have no undocumented member. The default is false: Run makes none
	// of these checks.
	Decisions bool
	// Budget bounds what the cases spend. With Fresh it holds for each case alone,
	// otherwise for all cases together. The zero value means
	//
	//   - with Fresh: no bound, but cases that would wait in real time are skipped,
	//   - otherwise: 40 requests, 5 agent creations, 1 BYOK set, 1 warm-up and no
	//     waiting, which a preview key allows within one minute.
	//
	// To spend the whole day of a preview key, set {Requests: 1000, Creations: 50,
	// BYOKSets: 5, WarmUps: 3, Wait: 2 * time.Hour}.
	//
	// Without Fresh, a limit may refuse a call in the middle of a case, for example because
	// of other calls with the key. That breaks no rule. The case then waits for Retry-After
	// if the rest of Wait allows it, and is skipped otherwise. With Abilities, waits cost
	// nothing, and each case first moves the clock by two days, so that all limits are
	// unused.
	Budget Spend

	// Observed is an observation of the target; nil means that there is none. Without Fresh
	// and Abilities, cases that fill a limit run only if Observed shows a limit of 60
	// requests a minute (interface 8.1), in fixed or sliding windows. Each of them first
	// waits a minute.
	Observed *observe.Observation
	// Progress is the path of a file in which Run keeps the cases that passed. A
	// later run, for example with the limits of the next day, skips these cases. If
	// it is empty, no file is kept.
	Progress string

	// Fresh makes a new target for one case. The cases then run in parallel. The Target that
	// Fresh returns replaces all fields but Budget and Fresh. If Fresh is nil, all cases
	// share this target and run one after the other.
	Fresh func(tb testing.TB) Target
}

// Abilities do things that a case cannot do with calls: IssueKeyOn, RevokeKey,
// SetBYOKAvailable and Advance. See [observe.Abilities]. A *fakeserver.Server has these
// methods.
type Abilities = observe.Abilities

// Spend is the part of the limits in interface 8.1 that cases take: Requests,
// Creations, BYOKSets, WarmUps and Wait. See [observe.Spend].
type Spend = observe.Spend

// live reports whether the target is a running service: all cases share it, and it has no
// Abilities, so its clock runs in real time.
func (target Target) live() bool { return target.Fresh == nil && target.Abilities == nil }

// forCase returns the target for one case: a fresh one if the target makes those.
func (target Target) forCase(tb testing.TB) Target {
	if target.Fresh == nil {
		return target
	}
	made := target.Fresh(tb)
	made.Budget, made.Fresh = target.Budget, target.Fresh
	return made
}

// observed returns the observed answer to a question as JSON; "" if there is none.
func (target Target) observed(id string) string {
	if target.Observed == nil {
		return ""
	}
	return string(target.Observed.Decisions[id].Answer)
}

// whyLimitsDiffer says why cases that fill limits would prove nothing on a live target; "" if
// the target is known to allow 60 requests a minute, in fixed or sliding windows.
func (target Target) whyLimitsDiffer() string {
	if !target.live() {
		return ""
	}
	if target.Observed == nil {
		return "it is not known how the target counts"
	}
	windows, n := target.observed("windows"), target.Observed.Limits["key_minute"]
	if n != minuteMax || windows != `"fixed"` && windows != `"sliding"` {
		return fmt.Sprintf("the target allows %d requests a minute and counts them by %s windows", n, cmp.Or(windows, "unknown"))
	}
	return ""
}

// minuteMax is the limit of a preview key per minute, the first number of interface 8.1. beyond
// is more calls than a preview key or its address may make in a minute.
const minuteMax, beyond = 60, 130

// windowOf returns the window of a limit, which the end of its name says; 0 for no name.
func windowOf(limitKey string) time.Duration {
	ends := limitKey[strings.LastIndexByte(limitKey, '_')+1:]
	return map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": day}[ends]
}
