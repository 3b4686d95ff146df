package fakeserver

import (
	"fmt"
	"net/http"
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
			small := newPopulation(b, 1, 1, size.path, size.body)
			big := newPopulation(b, size.agents, size.keys, size.path, size.body)
			runtime.GC() // of what filling left
			versus(b, small.send, big.send)
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

// population is a fake with agents and keys, and a caller that goes through
// them: with one key through the agents, else through the keys.
type population struct {
	caller http.RoundTripper
	visits []visit
	calls  int
}

// visit is a call that can be made. Each has texts of its own, so that those
// of a small fake are as far apart in memory as those of a big one.
type visit struct{ url, key, body string }

const visits = 100_000

func newPopulation(b *testing.B, agents, keys int, path, body string) *population {
	s := unbounded(b)
	p := &population{caller: s.Direct()}
	all := []string{s.Key()}
	for len(all) < keys {
		all = append(all, s.IssueKey(KeyOptions{}))
	}
	ids := make([]string, agents)
	for i := range ids {
		ids[i] = agentFor(s, all[0])
	}
	for i := range visits {
		url := s.BaseURL() + strings.ReplaceAll(path, "{agent_id}", ids[i*stride%agents])
		p.visits = append(p.visits, visit{strings.Clone(url), strings.Clone(all[i*stride%keys]), body})
	}
	return p
}

// stride visits them in an order that is not that of memory.
const stride = 7919

func (p *population) send() {
	p.calls++
	v := p.visits[p.calls%visits]
	post(p.caller, v.url, v.key, v.body)
}
