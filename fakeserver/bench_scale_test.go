package fakeserver_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Throughput over loopback under 64 connections, with recording on: the
// fraction of what the floor gets through, as of-floor. At least 0.85 is wanted.
func BenchmarkThroughput(b *testing.B) {
	fake, c := newFake(b, unlimited()...)
	path := messagesPath(fake, c.key)
	round := func(h http.Handler) func() {
		wire, base := benchWays[2].open(b, h)
		return func() { concurrently(64, 10, func() { post(wire, base+path, c.key, message) }) }
	}
	ratio, _ := measure(b, 1, round(bareMessage), round(fake))
	b.ReportMetric(1/ratio, "of-floor")
	b.ReportMetric(0, "ns/op")
}

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
	fake, c := newFake(b)
	for b.Loop() {
		before := heap()
		for range n {
			fake.AddAgent(c.key, fakeserver.Agent{})
		}
		agents := heap()
		for range n {
			fake.IssueKey(fakeserver.KeyOptions{})
		}
		b.ReportMetric(float64(agents-before)/n, "B/agent")
		b.ReportMetric(float64(heap()-agents)/n, "B/key")
		fake.Reset()
	}
	b.ReportMetric(0, "ns/op")
}

// visitor makes a fake with agents and keys. Each call of visit makes one call:
// with one key to the next agent, else with the next key.
func visitor(b *testing.B, agents, keys int, path, body string) (visit func()) {
	fake, c := newFake(b, unlimited()...)
	all := []string{c.key}
	for len(all) < keys {
		all = append(all, fake.IssueKey(fakeserver.KeyOptions{}))
	}
	ids := make([]string, agents)
	for i := range ids {
		ids[i] = fake.AddAgent(c.key, fakeserver.Agent{}).ID
	}
	const stride = 7919 // to visit them in another order than that of memory
	// Each call has texts of its own, so that those of a small fake are as far
	// apart in memory as those of a big one.
	calls := make([]struct{ url, key string }, 100_000)
	for i := range calls {
		calls[i].url = strings.Clone(fakeURL + strings.ReplaceAll(path, "{agent_id}", ids[i*stride%agents]))
		calls[i].key = strings.Clone(all[i*stride%keys])
	}
	made := 0
	return func() {
		made++
		next := calls[made%len(calls)]
		post(c.wire, next.url, next.key, body)
	}
}
