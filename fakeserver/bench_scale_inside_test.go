package fakeserver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The cost of a call does not depend on how much the fake holds. The floor is
// a fake with one agent and one key, in the same process: what the garbage
// collector does with a big heap it does to both, and shows in ns/call only. At
// most 1.3 is wanted.
func BenchmarkScale(b *testing.B) {
	const sms, warmUp = "/v1/agents/{agent_id}/channels/sms", "/v1/warmup"
	for _, size := range []struct {
		agents, keys int
		path, body   string
	}{
		{1, 1, sms, `{"mode":"sandbox"}`},
		{1_000, 1, sms, `{"mode":"sandbox"}`},
		{1_000_000, 1, sms, `{"mode":"sandbox"}`},
		{1, 100_000, warmUp, "{}"},
	} {
		b.Run(fmt.Sprintf("agents=%d/keys=%d", size.agents, size.keys), func(b *testing.B) {
			if testing.Short() && size.agents > 100_000 {
				b.Skip("fills half a gigabyte")
			}
			small := visitor(b, 1, 1, size.path, size.body)
			big := visitor(b, size.agents, size.keys, size.path, size.body)
			runtime.GC() // of what filling left
			versus(b, small, big)
		})
	}
}

// What one more agent without texts, and one more key, keep in memory. Less
// than 1 KiB for an agent is wanted.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	s := unbounded(b)
	for b.Loop() {
		before := heap()
		for range n {
			agentFor(s, s.Key())
		}
		agents := heap()
		for range n {
			s.IssueKey(KeyOptions{})
		}
		b.ReportMetric((agents-before)/n, "B/agent")
		b.ReportMetric((heap()-agents)/n, "B/key")
		s.Reset()
	}
	b.ReportMetric(0, "ns/op")
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// visitor makes a fake with agents and keys. Each call of visit makes one call:
// with one key to the next agent, else with the next key.
func visitor(b *testing.B, agents, keys int, path, body string) (visit func()) {
	s := unbounded(b)
	all := []string{s.Key()}
	for len(all) < keys {
		all = append(all, s.IssueKey(KeyOptions{}))
	}
	ids := make([]string, agents)
	for i := range ids {
		ids[i] = agentFor(s, all[0])
	}
	const stride = 7919 // to visit them in another order than that of memory
	// Each call has texts of its own, so that those of a small fake are as far
	// apart in memory as those of a big one.
	calls := make([]struct{ url, key string }, 100_000)
	for i := range calls {
		calls[i].url = strings.Clone(s.BaseURL() + strings.ReplaceAll(path, "{agent_id}", ids[i*stride%agents]))
		calls[i].key = strings.Clone(all[i*stride%keys])
	}
	caller, made := s.Direct(), 0
	return func() {
		made++
		next := calls[made%len(calls)]
		post(caller, next.url, next.key, body)
	}
}

// A thousand rules beside the one that a call meets. At most 1.1 is wanted
// where they name something else; asking each costs nanoseconds.
func BenchmarkRules(b *testing.B) {
	for _, name := range []string{"agent", "text", "unnamed"} {
		b.Run(name, func(b *testing.B) {
			one, many := unbounded(b), unbounded(b)
			for i := range 1000 {
				text := strings.Repeat("x", i+10)
				many.OnMessage(map[string]Matcher{"agent": ByAgent(text), "text": ByText(text), "unnamed": ByTextContaining(text)}[name])
			}
			send := func(s *Server) func() {
				agentFor(s, s.Key())
				caller, url := s.Direct(), s.BaseURL()+"/v1/agents/agent_000001/messages"
				return func() { post(caller, url, s.Key(), `{"text":"hello"}`) }
			}
			versus(b, send(one), send(many))
		})
	}
}
