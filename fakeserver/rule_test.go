package fakeserver_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// pattern makes n calls and says which a fault acted on.
func pattern(c caller, n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(map[int]string{200: ".", 500: "A", 502: "B"}[c.call("GET", "/v1/status", noBody).status])
	}
	return b.String()
}

func TestTurns(t *testing.T) {
	a, b := fakeserver.Answer(500, ""), fakeserver.Answer(502, "")
	for want, inject := range map[string]func(*fakeserver.Server){
		"AAAAAA": func(f *fakeserver.Server) { f.Inject(a) },
		"A.....": func(f *fakeserver.Server) { f.Inject(a).Times(1) },
		"AAA...": func(f *fakeserver.Server) { f.Inject(a).Times(3) },
		".A....": func(f *fakeserver.Server) { f.Inject(a).Nth(2) },
		"..A...": func(f *fakeserver.Server) { f.Inject(a).Nth(3).Times(2) },
		"..AA..": func(f *fakeserver.Server) { f.Inject(a).From(3).Times(2) },
		"......": func(f *fakeserver.Server) { f.Inject(a).Chance(0, 1) },
		"AAAA..": func(f *fakeserver.Server) { f.Inject(a).Chance(1, 1).Times(4) },
		"BBBBBB": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b) },
		"BAAAAA": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b).Times(1) },
		"BA....": func(f *fakeserver.Server) { f.Inject(a).Times(1); f.Inject(b).Times(1) },
		"BABAAA": func(f *fakeserver.Server) { f.Inject(a); f.Inject(b).Nth(1); f.Inject(b).Nth(3) },
		// The second call counts as the second, whoever acted on the first.
		"BA.B..": func(f *fakeserver.Server) { f.Inject(a).Nth(2); f.Inject(b).Nth(1); f.Inject(b).Nth(4) },
		// Nor is a turn put off that another fault had taken.
		"B.....": func(f *fakeserver.Server) { f.Inject(a).Nth(1); f.Inject(b).Nth(1) },
		// A latency takes no turn away.
		"A....A": func(f *fakeserver.Server) {
			f.Inject(a).Nth(1)
			f.Inject(a).Nth(6)
			f.Inject(fakeserver.Latency(0))
		},
	} {
		fake, c := newFake(t)
		inject(fake)
		assert.Equal(t, want, pattern(c, 6))
	}
}

// The same seed makes the same decisions, whatever else goes on.
func TestChanceIsSeeded(t *testing.T) {
	run := func(seed uint64, others ...fakeserver.Fault) string {
		fake, c := newFake(t)
		fake.Inject(fakeserver.Answer(500, "")).Chance(0.25, seed)
		for _, other := range others {
			fake.Inject(other).Times(10)
		}
		return pattern(c, 200)
	}
	first := run(7)
	assert.Equal(t, "..AA..A.......A..A.A", first[:20], "in every version")
	assert.InDelta(t, 50, strings.Count(first, "A"), 20)
	assert.NotEqual(t, first, run(8))
	shadowed := run(7, fakeserver.Answer(502, ""))
	assert.Equal(t, strings.Repeat("B", 10)+first[10:], shadowed, "the n-th decision belongs to the n-th call")
	fake, c := newFake(t)
	fake.Inject(fakeserver.Answer(500, "")).Chance(0.25, 7).From(3)
	assert.Equal(t, "..AA", pattern(c, 4), "also to one that has no other turn")
}

// concurrently makes calls on many goroutines at once.
func concurrently(goroutines, each int, call func()) {
	var wait sync.WaitGroup
	for range goroutines {
		wait.Go(func() {
			for range each {
				call()
			}
		})
	}
	wait.Wait()
}

// Each step of a script and each turn of a fault comes exactly as often as it
// should.
func TestTurnsUnderConcurrency(t *testing.T) {
	const each = 20
	fake, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	old := fake.OnMessage().Reply("old").Times(100)
	fake.OnMessage().Reply("one", "two", "three", "four").Times(64*each - 203)
	nth, some := fake.Inject(fakeserver.Answer(500, "")).Nth(50), fake.Inject(fakeserver.Answer(500, "")).From(100).Times(2)
	var mu sync.Mutex
	served := map[string]int{}
	concurrently(64, each, func() {
		text := c.send(agent, "x").text("reply_text")
		mu.Lock()
		defer mu.Unlock()
		served[text]++
	})
	assert.Equal(t, map[string]int{"": 3, "one": 1, "two": 1, "three": 1, "four": 64*each - 206, "old": 100, "You wrote: x": 100}, served)
	assert.Equal(t, []int{100, 1, 2}, []int{old.Hits(), nth.Hits(), some.Hits()})
}

// A call for which some rules do not match changes nothing for the next.
func TestCandidatesLeaveTheRulesAlone(t *testing.T) {
	fake, c := newFake(t)
	agent := c.agent(emptyBody)
	fake.OnMessage().Reply("any")
	fake.OnMessage(fakeserver.ByText("b")).Reply("b")
	fake.OnMessage(fakeserver.ByText("a")).Reply("a")
	for _, text := range []string{"a", "b", "a"} {
		assert.Equal(t, text, c.send(agent, text).text("reply_text"))
	}
}

func TestFunctionsShareNoCall(t *testing.T) {
	fake, c := newFake(t)
	var seen []string
	for range 2 {
		fake.Inject(fakeserver.Latency(0), fakeserver.Where(func(call fakeserver.Call) bool {
			seen = append(seen, call.Header.Get("X-Seen"))
			call.Header.Set("X-Seen", "yes")
			return true
		}))
	}
	c.call("GET", "/v1/status", noBody)
	assert.Equal(t, []string{"", ""}, seen)
	assert.Empty(t, fake.Calls()[0].Header.Get("X-Seen"))
}
