package fakeserver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The rulebook finds what asking every rule finds, in the same order, whatever
// rules were added and removed.
func TestRulebookFindsWhatAskingAllFinds(t *testing.T) {
	s := New(t)
	random := rand.New(rand.NewPCG(1, 2))
	var all []*Script
	for range 2000 {
		switch random.IntN(4) {
		case 0:
			all = append(all, s.OnMessage(randomMatchers(random)...))
		case 1:
			if len(all) > 0 {
				gone := all[random.IntN(len(all))]
				gone.Remove()
				all = without(all, gone)
			}
		default:
			rec := &record{hasText: true, text: fmt.Sprint(random.IntN(3)), hasKey: true, token: digestOf(fmt.Sprint(random.IntN(3))), call: Call{
				Endpoint: routes[random.IntN(3)].endpoint(), AgentID: fmt.Sprint(random.IntN(3)),
			}}
			want := slices.DeleteFunc(slices.Clone(all), func(sc *Script) bool { return !matchesAll(sc.matchers, rec) })
			slices.Reverse(want)
			got := candidates(s, s.world.scripts.about(rec), rec)
			if !slices.Equal(want, got) {
				t.Fatalf("%v finds %v, asking all finds %v", rec.call, got, want)
			}
		}
	}
	assert.Equal(t, all, s.world.scripts.all())
}

func randomMatchers(random *rand.Rand) (matchers []Matcher) {
	for _, m := range []Matcher{
		ByEndpoint(routes[random.IntN(3)].endpoint()), ByKey(fmt.Sprint(random.IntN(3))), ByAgent(fmt.Sprint(random.IntN(3))),
		ByText(fmt.Sprint(random.IntN(3))), ByTextContaining(fmt.Sprint(random.IntN(3))), Where(func(c Call) bool { return c.AgentID > "0" }),
	} {
		if random.IntN(3) == 0 {
			matchers = append(matchers, m)
		}
	}
	return matchers
}

// Of many rules that name another endpoint, agent, key or text none is asked.
func TestRulesThatNameSomethingElseAreNotAsked(t *testing.T) {
	for name, matcher := range map[string]Matcher{
		"endpoint": ByEndpoint(EndpointWarmUp),
		"key":      ByKey("another"),
		"agent":    ByAgent("agent_000002"),
		"text":     ByText("another"),
		"":         ByTextContaining("another"),
	} {
		s, asked := unbounded(t), 0
		path := "/v1/agents/" + agentFor(s, s.Key()) + "/messages"
		count := Where(func(Call) bool { asked++; return true })
		s.OnMessage(count, matcher).Reply("never")
		s.Inject(Hang(), count, matcher)
		post(s.Direct(), s.BaseURL()+path, s.Key(), `{"text":"hello"}`)
		assert.Equal(t, name == "", asked > 0, name)
	}
}
