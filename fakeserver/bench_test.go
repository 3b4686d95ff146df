package fakeserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Each benchmark runs the fake and a floor in turns inside one loop, so that
// the noise of the machine hits both, and reports the median of their ratios
// as x-floor: that figure can be compared between machines, ns/call cannot.
// The floor is a handler that a test's author would write by hand, over the same
// transport: it decodes the same JSON and encodes the same answer, and checks,
// counts and records nothing.

// versus runs both in turns, and reports how many times as long the fake takes as
// the floor.
func versus(b *testing.B, floor, fake func()) {
	const calls = 20
	took(calls, floor)
	took(calls, fake)
	var ratios, times []float64
	for b.Loop() {
		before := took(calls, floor)
		own := took(2*calls, fake)
		ratios = append(ratios, own/(before+took(calls, floor)))
		times = append(times, own/(2*calls))
	}
	b.ReportMetric(median(ratios), "x-floor")
	b.ReportMetric(median(times), "ns/call")
	b.ReportMetric(0, "ns/op") // of both together, and so of nothing
}

// took is how many nanoseconds n calls take.
func took(n int, call func()) float64 {
	begun := time.Now()
	for range n {
		call()
	}
	return float64(time.Since(begun))
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// bareDirect is Direct with any answers behind it.
func bareDirect(answer func(*http.Request) memnet.Answer) http.RoundTripper {
	host := &memnet.Host{Addr: strings.TrimPrefix(fakeURL, "https://") + ":443", Answer: answer}
	return host.Direct(netip.IPv4Unspecified())
}

// post makes one call and reads the answer.
func post(wire http.RoundTripper, url, key, body string) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := wire.RoundTrip(req)
	if err != nil {
		panic(err)
	}
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		panic(fmt.Sprint(err, resp.Status, string(raw)))
	}
}

// bareCreation decodes what is sent, and encodes an answer.
func bareCreation(r *http.Request) memnet.Answer {
	var sent struct {
		SystemPrompt string `json:"system_prompt"`
		CustomerRef  string `json:"customer_ref"`
	}
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		panic(err)
	}
	body, err := json.Marshal(&struct {
		AgentID string `json:"agent_id"`
		Status  string `json:"status"`
		TraceID string `json:"trace_id"`
	}{"agent_000001", "active", "trace_000001"})
	if err != nil {
		panic(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return memnet.Answer{Response: memnet.Response{Status: http.StatusOK, Header: header, Body: body}}
}

// A fake for one call: made, called and closed. The floor has its handler for
// nothing. At most 2.0 is wanted.
func BenchmarkFresh(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		create := func(wire http.RoundTripper, key string) {
			post(wire, fakeURL+"/v1/agents", key, `{"system_prompt":"You answer questions about orders.","customer_ref":"customer-17"}`)
		}
		versus(b,
			func() { create(bareDirect(bareCreation), "key") },
			func() {
				tb := new(spy)
				fake := fakeserver.New(tb)
				create(fake.Direct(), fake.Key())
				tb.finish()
			})
	})
}

// The cost of a call does not depend on how many agents the fake holds. The floor is
// a fake with one agent, in the same process: what the garbage collector does with a
// big heap it does to both, and shows in ns/call only. At most 1.3 is wanted.
func BenchmarkScale(b *testing.B) {
	b.Run("agents=1000000/keys=1", func(b *testing.B) {
		if testing.Short() {
			b.Skip("fills half a gigabyte")
		}
		small, big := visitor(b, 1), visitor(b, 1_000_000)
		runtime.GC() // of what filling left
		versus(b, small, big)
	})
}

// What one more agent without texts keeps in memory. Less than 1 KiB is wanted.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	fake, c := newFake(b)
	for b.Loop() {
		before := heap()
		for range n {
			fake.AddAgent(c.key, fakeserver.Agent{})
		}
		b.ReportMetric(float64(heap()-before)/n, "B/agent")
		fake.Reset()
	}
	b.ReportMetric(0, "ns/op")
}

// visitor makes a fake with agents. Each call of visit makes one call to the next.
func visitor(b *testing.B, agents int) (visit func()) {
	fake, c := newFake(b, unlimited()...)
	ids := make([]string, agents)
	for i := range ids {
		ids[i] = fake.AddAgent(c.key, fakeserver.Agent{}).ID
	}
	const stride = 7919 // visits them in another order than they have in memory
	// Each call has its own copies of URL and key. With shared copies a small fake
	// would find them closer together in memory than a big one does.
	calls := make([]struct{ url, key string }, 100_000)
	for i := range calls {
		calls[i].url = strings.Clone(fakeURL + "/v1/agents/" + ids[i*stride%agents] + "/channels/sms")
		calls[i].key = strings.Clone(c.key)
	}
	made := 0
	return func() {
		made++
		next := calls[made%len(calls)]
		post(c.wire, next.url, next.key, `{"mode":"sandbox"}`)
	}
}

// heap is how much memory is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
