package contract

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/wholefile"
)

// Run runs every case that the target's abilities and budget allow, each as a
// subtest named by its id, and skips the others with the reason. If it skips some,
// it also writes one line to standard error: how many cases run, and which fields
// of Target would let the others run. go test shows that line with -v, when a case
// fails, or when it is run without package arguments. A Progress file that cannot
// be read or written fails t.
func Run(t *testing.T, target Target) {
	t.Helper()
	done, err := readProgress(target.Progress)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlan(allCases(), target.renew(t), done)
	if slices.ContainsFunc(p, func(c planned) bool { return c.leftOut != "" }) {
		fmt.Fprintln(os.Stderr, p)
	}
	all := &shared{wait: p.waitLeft(target)}
	for _, c := range p {
		t.Run(c.ID, func(t *testing.T) {
			if c.leftOut != "" {
				t.Skip("left out: " + c.leftOut)
			}
			t.Cleanup(func() {
				if err := done.pass(t, c.ID, target.Progress); err != nil {
					t.Error(err)
				}
			})
			c.start(t, target, all)
		})
	}
}

// waitLeft returns the part of the budget's wait that the planned cases leave.
func (p plan) waitLeft(target Target) time.Duration {
	wait := target.Budget.Wait
	for _, c := range p {
		if c.leftOut == "" {
			wait -= c.Spends.Wait
		}
	}
	return wait
}

// progress is the day on which each case passed.
type progress map[string]string

func readProgress(path string) (progress, error) {
	done := progress{}
	if path == "" {
		return done, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &done)
	}
	if err != nil {
		err = fmt.Errorf("contract: Target.Progress: %s: %w; remove the file to start with every case", path, err)
	}
	return done, err
}

// pass writes down that a case passed. Cases with a progress run one after the
// other.
func (done progress) pass(tb testing.TB, id, path string) error {
	if path == "" || tb.Failed() || tb.Skipped() {
		return nil
	}
	done[id] = time.Now().UTC().Format(time.DateOnly)
	text, err := json.MarshalIndent(done, "", " ")
	if err != nil {
		return err
	}
	return wholefile.Write(path, text)
}

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

// start runs the case as t: on the target that all share, or in parallel on a
// fresh one.
func (c testCase) start(t *testing.T, target Target, all *shared) {
	if target.Fresh != nil {
		all = new(shared)
		t.Parallel()
	}
	c.check(t, target.renew(t), all)
}

// defaultBudget is the budget of a shared target that states none.
var defaultBudget = Spend{Requests: 40, Creations: 5, BYOKSets: 1, WarmUps: 1}

// planned is a case. If it is left out, it says why and what would let it run.
type planned struct {
	testCase
	leftOut, wants string
}

type plan []planned

// core lists the cases that a small budget is spent on first: one for each
// endpoint, and the refusals that cost one request only.
var core = []string{
	"2.3/every-member", "2.3/no-other-member/top", "2.5/required/text", "4.1/shape", "4.2/body-absent", "4.2/mode-refused/unknown",
	"4.2/byok-not-configured", "4.4/set-read-clear", "4.4/required/api_key", "4.6/empty-object", "4.7/read", "4.8/reply",
	"4.9/mode/sandbox", "4.9/mode/none-refused", "5/credential-missing/*", "7/agent-unknown/*", "8.4/*/over", "8.4/text/max", "8.4/all/max",
}

// valuable lists the cases that a day's budget is spent on next: most wrong
// services that pass the core cases fail one of these.
var valuable = []string{
	"7/400-changes-no-byok", "7/400-creation-stores-no-byok", "7/status-without-429", "8.1/key_minute", "8.1/key_minute-counts/*",
	"7/endpoints-without-429", "8.1/agent_create_ip_minute", "4.7/created-at-stays", "2.4/fingerprint", "7/400-changes-no-sms",
}

func (c testCase) in(list []string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		matched, _ := path.Match(pattern, c.ID)
		return matched
	})
}

// newPlan decides which cases run on the target. On a shared target the core
// cases take from the budget first, then the cheapest; the order in which cases
// run stays.
func newPlan(cases []testCase, target Target, done progress) plan {
	p := make(plan, len(cases))
	planner := &planner{target: target, left: target.Budget, bounded: true, done: done}
	if target.Budget == (Spend{}) {
		planner.left, planner.bounded = defaultBudget, target.Fresh == nil
	}
	order, prices := make([]int, len(cases)), make([]int, len(cases))
	for i, c := range cases {
		order[i], prices[i] = i, c.price()
	}
	if target.Fresh == nil {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(prices[a], prices[b]) })
	}
	for _, i := range order {
		p[i] = planner.plan(cases[i])
	}
	return p
}

// price orders the cases for a budget, cheapest first: core cases, valuable cases,
// then the others by how much of a day's limits they take, in requests. An agent
// counts as 20 requests (50 a day), a provider key or a warm-up as 50 (few an hour).
func (c testCase) price() int {
	switch {
	case c.in(core):
		return 0
	case c.in(valuable):
		return 1
	}
	return c.Spends.Requests + 20*c.Spends.Creations + 50*(c.Spends.BYOKSets+c.Spends.WarmUps) + int(c.Spends.Wait/time.Second)
}

// planner keeps the rest of the budget while the plan is made. With Fresh each case
// has the whole budget for itself.
type planner struct {
	target   Target
	left     Spend
	bounded  bool
	hasAgent bool
	done     progress
}

// plan leaves the case out if the target lacks something that it needs, or if the
// rest of the budget is too small.
func (p *planner) plan(c testCase) planned {
	if lack := string(p.target.lacks(c.Needs)); lack != "" {
		return planned{c, "the target has no " + lack, "Target." + lack}
	}
	if day := p.done[c.ID]; day != "" {
		return planned{c, "it passed on " + day, "another Target.Progress"}
	}
	if unlike := p.target.countsOtherwise(); unlike != "" && c.refused {
		return planned{c, "it fills a limit: " + unlike, "Target.Observed of a target that counts like interface 8.1"}
	}
	if most := p.target.metadataCap(); most > 0 && most < 4096 && c.metadata {
		return planned{c, fmt.Sprintf("the target's cap on metadata is %d", most), "a target with a larger cap on metadata"}
	}
	price := c.Spends
	if p.target.observed("refused_operations_spend") == "true" {
		price.Creations = max(price.Creations, c.creations)
	}
	if p.target.Abilities != nil { // waits are free
		price.Wait = 0
	}
	agent := slices.Contains(c.Needs, needAgent) && !p.hasAgent
	if agent {
		price = price.Plus(Spend{Requests: 1, Creations: 1})
	}
	if over := price.Over(p.left); p.bounded && over != "" {
		return planned{c, "it takes more than the budget has: " + over, "a larger Target.Budget, or Target.Fresh"}
	}
	if p.target.Fresh == nil {
		p.left, p.hasAgent = p.left.Minus(price), p.hasAgent || agent
	}
	return planned{testCase: c}
}

// observed returns the answer to a question as JSON, and "" if none is known.
func (target Target) observed(id string) string {
	if target.Observed == nil {
		return ""
	}
	return string(target.Observed.Decisions[id].Answer)
}

// metadataCap returns the observed cap on metadata, or its upper bound; 0 if
// neither is known.
func (target Target) metadataCap() (most int) {
	if target.Observed != nil && json.Unmarshal([]byte(target.observed("metadata_cap")), &most) != nil {
		most = target.Observed.Decisions["metadata_cap"].AtMost
	}
	return most
}

// countsOtherwise says why the cases that fill limits cannot blame a live target;
// "" if it has the limits of a preview key, in fixed or sliding windows.
func (target Target) countsOtherwise() string {
	if !target.live() {
		return ""
	}
	if target.Observed == nil {
		return "it is not known how the target counts"
	}
	windows, n := target.observed("windows"), target.Observed.Limits["key_minute"]
	if n != 60 || windows != `"fixed"` && windows != `"sliding"` {
		return fmt.Sprintf("the target allows %d requests a minute and counts them by %s windows", n, cmp.Or(windows, "unknown"))
	}
	return ""
}

// lacks is the first of these needs that the target does not offer.
func (target Target) lacks(needs []need) need {
	offers := map[need]bool{
		needAgent:       true,
		needAbilities:   target.Abilities != nil,
		needSecondKey:   target.Abilities != nil || target.SecondKey != "",
		needClientFrom:  target.ClientFrom != nil,
		needDecisions:   target.Decisions,
		needFrozenClock: target.FrozenClock,
	}
	for _, need := range needs {
		if !offers[need] {
			return need
		}
	}
	return ""
}

// String says how many cases run, and what would let the others run.
func (p plan) String() string {
	wants := map[string]int{}
	for _, c := range p {
		wants[c.wants]++
	}
	text := fmt.Sprintf("contract: %d of %d cases run.", wants[""], len(p))
	delete(wants, "")
	for _, want := range slices.Sorted(maps.Keys(wants)) {
		text += fmt.Sprintf(" %d more would with %s.", wants[want], want)
	}
	return text
}
