// Package contract has the documented behaviour of the Agent Messaging Service as
// runnable test cases. The cases call any target over raw HTTP: the service itself, a
// fake of it, or a proxy in front of either.
//
//	func TestContract(t *testing.T) {
//		contract.Run(t, contract.Target{BaseURL: baseURL, Key: key})
//	}
//
// [Run] checks what the interface document of the service says ("interface 8.1" in these
// pages names a section of it). Each case is a subtest, named by the section of the
// document that states its rule and a short name, such as "4.8/reply"; go test -v lists all
// of them. A case is skipped if the target lacks an ability that it needs, or if the budget
// does not allow what it spends.
//
// A case that fails prints the broken rule and the exchange that broke it. The broken
// rule may be another rule than the case's own. Every answer must also follow the rules
// for all answers of its endpoint, and a call that prepares a case may go wrong. Such a
// failure also says which rule could not be checked. Further cases that meet the same
// failure are skipped, and name the case that reported it.
//
// Cases whose id starts with "fake/" check decisions of this project where the interface
// is silent. The service itself never has to pass them, so they run only with
// Target.Decisions. One rule of this project holds on every target: no answer shows an
// API key. Package observe finds out what a service does where the interface is silent.
//
// A proxy in front of a fake must pass every case. The fake arranges what the cases need,
// and each case has its own proxy and fake:
//
//	contract.Run(t, contract.Target{Fresh: func(tb testing.TB) contract.Target {
//		fake := fakeserver.New(tb, fakeserver.WithUnknownRoutes()) // some cases call unknown paths
//		client := &http.Client{Transport: gateway(fake.Direct())}
//		return contract.Target{BaseURL: fake.BaseURL(), Key: fake.Key(), HTTPClient: client, Abilities: fake, Decisions: true}
//	}})
//
// The package shares no table with the client or the fake: it states every number and
// every body itself, so that a wrong table in the client or the fake makes a case fail.
//
// The cases do not check how long an answer takes, or the words of replies and reasons.
// Nor do they check anything that the interface calls "not shown" and this project has
// not decided.
package contract

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/atomicfile"
)

// Run runs every case that the target's abilities and budget allow, each as a subtest named by
// its id, and skips the others with the reason. If it skips some, it also writes one line to
// standard error: how many cases run, and which fields of Target would let the others run. go
// test shows this line if it is called with -v or without package arguments, or if a case
// fails.
//
// Run fails t if the Progress file cannot be read or written, if Key is empty, if BaseURL is
// empty or ends in /v1, or if the Budget allows no case. If a shared target refuses Key from
// the start, gives no answer three times in a row, or begins with three answers that are not
// JSON, the case fails and the cases after it are skipped.
//
// Call it with go test -count=1. Without, go test may repeat an earlier "ok" and not ask the
// target, because it does not see that a service has changed.
func Run(t *testing.T, target Target) {
	t.Helper()
	done, err := readProgress(target.Progress)
	if err != nil {
		t.Fatal(err)
	}
	first := target.forCase(t)
	if first.BaseURL == "" || first.Key == "" || path.Base(first.BaseURL) == "v1" {
		t.Fatal("contract: the target needs a Target.BaseURL without /v1, and a Target.Key")
	}
	planned, left := newSchedule(cases(), first, done)
	if !planned.runsAny(done) {
		t.Fatal(planned)
	}
	if slices.ContainsFunc(planned, func(c scheduled) bool { return c.leftOut != "" }) {
		fmt.Fprintln(os.Stderr, planned)
	}
	state := newShared(left.Wait)
	for _, c := range planned {
		t.Run(c.ID, func(t *testing.T) { c.run(t, target, state, done) })
	}
}

// run runs a planned case as a subtest.
func (c scheduled) run(t *testing.T, target Target, state *shared, done progress) {
	if c.leftOut != "" {
		t.Skip("left out: " + c.leftOut)
	}
	if target.Fresh != nil {
		t.Parallel()
		state = &shared{reported: state.reported}
	}
	err := c.runOn(t.Context(), target.forCase(t), state)
	if errors.As(err, new(skipped)) {
		t.Skip(err)
	}
	if err == nil && target.Fresh == nil && target.Progress != "" {
		err = done.pass(c.ID, target.Progress)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cases lists every case, in the order of the interface's sections and the decisions
// last. The list is made once, because some bodies have a mebibyte.
var cases = sync.OnceValue(func() []testCase {
	var s suite
	for _, add := range []func(){
		s.agents, s.agentDecisions, s.sms, s.metadata, s.messages, s.byok, s.byokOfCreations, s.byokOfAnotherKey, s.secrets, s.warmUps,
		s.members, s.unknownMembers, s.bodies, s.contentTypes, s.routes, s.methods, s.credentials, s.order,
		s.limits, s.sharedLimits, s.plans, s.counted, s.uncounted, s.operations, s.exhausted, s.unchanged, s.unlisted,
	} {
		add()
	}
	slices.SortStableFunc(s, func(a, b testCase) int { return cmp.Compare(a.Rule.Section, b.Rule.Section) })
	return s
})

// progress maps the id of each case to the day on which it passed.
type progress map[string]string

// readProgress reads the file of Target.Progress. If there is no path or no file, no case
// has passed.
func readProgress(path string) (progress, error) {
	if path == "" {
		return progress{}, nil
	}
	if err := atomicfile.Writable(path); err != nil { // checked before the cases run, not after them
		return nil, fmt.Errorf("contract: Target.Progress: %w", err)
	}
	var done progress
	if err := atomicfile.ReadJSON(path, &done); err != nil {
		return nil, fmt.Errorf("contract: Target.Progress: %s: %w; remove the file to start with every case", path, err)
	}
	if done == nil { // there is no file, or it holds null
		done = progress{}
	}
	return done, nil
}

// pass writes to the file that a case passed. It needs no lock, because cases with a
// Progress file run one after the other.
func (done progress) pass(id, path string) error {
	done[id] = time.Now().UTC().Format(time.DateOnly)
	return atomicfile.WriteJSON(path, done)
}

// defaultBudget is the budget of a shared target without a Budget.
var defaultBudget = Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// scheduled is a case, and the decision whether the case runs.
type scheduled struct {
	testCase
	rank           int    // the budget is spent on the lowest rank first
	leftOut, needs string // why it does not run, and what would let it run; "" if it runs
}

// schedule has all cases, in the order in which they run.
type schedule []scheduled

// preferred has patterns of the cases on which a budget is spent first, in this order. The
// default budget is enough for the cases of the first 19 patterns: 34 cases, about each
// endpoint, and about refusals that cost one request. Most wrong services that pass these fail
// one of the others.
var preferred = []string{
	"2.3/every-member", "2.3/no-other-member/top", "2.5/required/text", "4.1/shape", "4.2/body-absent", "4.2/mode-refused/unknown",
	"4.2/byok-not-configured", "4.4/set-read-clear", "4.4/required/api_key", "4.6/empty-object", "4.7/read", "4.8/reply",
	"4.9/mode/sandbox", "4.9/mode/none-refused", "5/credential-missing/*", "7/agent-unknown/*", "8.4/*/over", "8.4/text/max", "8.4/all/max",
	"7/400-changes-no-byok", "7/400-creation-stores-no-byok", "7/status-without-429", "8.1/key_minute", "8.1/key_minute-counts/*",
	"7/endpoints-without-429", "8.1/agent_create_ip_minute", "4.7/created-at-stays", "2.4/fingerprint", "7/400-changes-no-sms",
	"1/ids-differ", "4.9/one-agent",
}

// newSchedule decides which cases run on the target, and returns the rest of the budget.
// On a shared target the budget goes to the cases by rank. The order in which cases run
// does not change. With Fresh each case has the whole budget.
func newSchedule(cases []testCase, target Target, done progress) (schedule, Spend) {
	left, bounded := target.Budget, target.Fresh == nil || target.Budget != Spend{}
	if left == (Spend{}) {
		left = defaultBudget
	}
	s, byRank := make(schedule, len(cases)), make([]*scheduled, len(cases))
	for i, c := range cases {
		s[i] = scheduled{testCase: c, rank: c.rank()}
		byRank[i] = &s[i]
	}
	slices.SortStableFunc(byRank, func(a, b *scheduled) int { return cmp.Compare(a.rank, b.rank) })
	hasAgent := false
	for _, c := range byRank {
		price := target.costOf(c.testCase)
		if c.agent && !hasAgent {
			price = price.Plus(Spend{Requests: 1, Creations: 1})
		}
		if c.leftOut, c.needs = target.lacks(c.testCase); c.leftOut != "" {
			continue
		}
		over := price.Over(left)
		switch day := done[c.ID]; {
		case day != "":
			c.leftOut, c.needs = "it passed on "+day, "another Target.Progress"
		case bounded && over != "":
			c.leftOut, c.needs = fmt.Sprintf("it takes %s, more than the budget has left", over), "a larger Target.Budget, or Target.Fresh"
		case target.Fresh == nil:
			left, hasAgent = left.Minus(price), hasAgent || c.agent
		}
	}
	return s, left
}

// runsAny reports whether any case runs, or has passed in an earlier run. If none does, a
// green test would be misleading.
func (s schedule) runsAny(done progress) bool {
	return slices.ContainsFunc(s, func(c scheduled) bool { return c.leftOut == "" || done[c.ID] != "" })
}

// rank orders the cases for a budget: the preferred cases, then the others by their price in
// requests. An agent counts as 20 requests, since a day allows 1,000 requests and 50 agents. A
// provider key or a warm-up counts as 50, since an hour allows only a few. A second of waiting
// counts as one.
func (c testCase) rank() int {
	for i, pattern := range preferred {
		if matched, _ := path.Match(pattern, c.ID); matched {
			return i
		}
	}
	return len(preferred) + c.Spends.Requests + 20*c.Spends.Creations + 50*(c.Spends.BYOKSets+c.Spends.WarmUps) + int(c.Spends.Wait/time.Second)
}

// lacks says why the case cannot run on the target, and what would let it run; "" if it
// can run.
func (target Target) lacks(c testCase) (why, wants string) {
	limitsDiffer := target.whyLimitsDiffer()
	switch {
	case c.abilities && target.Abilities == nil:
		wants = "Target.Abilities"
	case c.secondKey && target.Abilities == nil && target.SecondKey == "":
		wants = "Target.SecondKey"
	case c.clientFrom && target.ClientFrom == nil:
		wants = "Target.ClientFrom"
	case c.frozenClock && !target.FrozenClock:
		wants = "Target.FrozenClock"
	case target.Fresh != nil && target.Budget == (Spend{}) && target.costOf(c).Wait > 0: // some wait for a day, longer than go test runs
		wants = "Target.Abilities, or a Target.Budget with a Wait"
	case c.decision() && !target.Decisions:
		wants = "Target.Decisions, which only the fake of this project has to follow"
	case c.fillsLimit && limitsDiffer != "":
		return "it fills a limit: " + limitsDiffer, "Target.Observed of a target that counts like interface 8.1"
	default:
		return "", ""
	}
	return "it needs " + wants, wants
}

// costOf returns the most that the case spends on this target, without the shared agent.
func (target Target) costOf(c testCase) Spend {
	price := c.Spends
	if target.observed("refused_operations_spend") == "true" {
		price.Creations = max(price.Creations, c.creations)
	}
	if target.Abilities != nil { // with Abilities, waits cost nothing
		price.Wait = 0
	}
	return price
}

// String says how many cases run, and what would let the others run.
func (s schedule) String() string {
	wants := map[string]int{}
	for _, c := range s {
		wants[c.needs]++
	}
	text := fmt.Sprintf("contract: %d of %d cases run.", wants[""], len(s))
	for _, want := range slices.Sorted(maps.Keys(wants)) {
		if want != "" {
			text += fmt.Sprintf(" %d more would with %s.", wants[want], want)
		}
	}
	return text
}
