package contract

import (
	"flag"
	"net/http"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/observe"
)

// Collecting garbage took a fifth of a run's time.
func init() { debug.SetGCPercent(400) }

// TestFake runs every case, each on a new fake whose clock waits for the case, and
// without a connection in between: a day's calls take milliseconds.
func TestFake(t *testing.T) {
	budget := Spend{Requests: 2100, Creations: 60, BYOKSets: 10, WarmUps: 10} // all but the days of plans: TestDaysOfPlans
	if *all {
		budget = Spend{}
	}
	Run(t, Target{Budget: budget, Fresh: func(tb testing.TB) Target {
		return directly(newFake(tb, fakeserver.WithClock(still)))
	}})
}

// TestDaysOfPlans reads the numbers of interface 8.2 that take 10,000 and 50,000 calls to fill.
func TestDaysOfPlans(t *testing.T) {
	fake := newFake(t)
	for plan, want := range map[string]int{"pro": 10_000, "byok": 50_000} {
		for _, l := range fake.Limits(fake.IssueKeyOn(plan, true)) {
			assert.True(t, l.Key != "key_day" || l.Max == want, "%s: %+v", plan, l)
		}
	}
}

// TestFakeShared runs the cases as a live service would have them: one after
// the other on one target, within the default budget.
func TestFakeShared(t *testing.T) {
	target := directly(newFake(t))
	Run(t, Target{BaseURL: target.BaseURL, Key: target.Key, HTTPClient: target.HTTPClient})
}

// Flags of TestLive.
var (
	live = flag.Bool("contract.live", false,
		"run the contract against AGENT_MESSAGING_BASE_URL with AGENT_MESSAGING_API_KEY; overwrites the key's BYOK configuration")
	liveBudget   Spend
	liveProgress = flag.String("contract.progress", "", "a file that keeps which cases passed, for a run over several days")
	liveObserved = flag.String("contract.observed", "", "what agentmessaging-fake observe wrote of the service")
)

func init() {
	flag.Var(&liveBudget, "contract.budget", "such as requests=1000,creations=50,byok=5,warmups=3,wait=1h; 40 requests unless given")
}

// TestLive runs the cases that need nothing but a key, or two, one after the
// other and within the budget.
//
//	go test -v ./contract -run TestLive -contract.live
func TestLive(t *testing.T) {
	if !*live {
		t.Skip("needs -contract.live, AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY")
	}
	target := Target{
		BaseURL: os.Getenv("AGENT_MESSAGING_BASE_URL"), Key: os.Getenv("AGENT_MESSAGING_API_KEY"),
		SecondKey: os.Getenv("AGENT_MESSAGING_SECOND_API_KEY"), Budget: liveBudget, Progress: *liveProgress,
	}
	require.NotEmpty(t, target.BaseURL, "AGENT_MESSAGING_BASE_URL is not set")
	require.NotEmpty(t, target.Key, "AGENT_MESSAGING_API_KEY is not set")
	if *liveObserved != "" {
		var err error
		target.Observed, err = observe.ReadFile(*liveObserved)
		require.NoError(t, err)
	}
	Run(t, target)
}

func directly(fake *fakeserver.Server) Target {
	return targetOf(fake, func(ip string) http.RoundTripper { return fake.Direct(fakeserver.FromIP(ip)) })
}

// targetOf is the fake with all its abilities, reached by the transport of an
// address.
func targetOf(fake *fakeserver.Server, transport func(ip string) http.RoundTripper) Target {
	client := func(ip string) *http.Client { return &http.Client{Transport: transport(ip)} }
	return Target{
		BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client("192.0.2.1"), ClientFrom: client, Abilities: fake, FrozenClock: true, Decisions: true,
	}
}

// newFake makes a fake that does not list its calls when a case fails: the
// case shows the one that matters.
func newFake(tb testing.TB, opts ...fakeserver.Option) *fakeserver.Server {
	return fakeserver.New(quiet{tb}, append(opts, fakeserver.WithUnknownRoutes())...)
}

// still is the clock of a fake that waits for Advance.
func still() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

type quiet struct{ testing.TB }

func (quiet) Failed() bool { return false }
