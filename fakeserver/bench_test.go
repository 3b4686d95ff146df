package fakeserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// post makes one call and reads the answer.
func (c caller) post(path, body string) {
	resp, err := c.wire.RoundTrip(c.request("POST", path, body))
	require.NoError(c.t, err)
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	require.True(c.t, err == nil && resp.StatusCode == http.StatusOK, string(raw))
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

// A fake for one call: made, called and closed. The base is a handler that a test's
// author would write by hand, over the same transport: it decodes the same JSON and
// encodes the same answer, and checks, counts and records nothing. At most twice its
// time is wanted.
func BenchmarkFresh(b *testing.B) {
	create := func(b *testing.B, wire http.RoundTripper, key string) {
		caller{b, wire, key}.post("/v1/agents", `{"system_prompt":"You answer questions about orders.","customer_ref":"customer-17"}`)
	}
	b.Run("of=base", func(b *testing.B) {
		for b.Loop() {
			host := &memnet.Host{
				Addr: strings.TrimPrefix(fakeURL, "https://") + ":443", Answer: bareCreation,
				Refuse: func(*http.Request, netip.Addr) error { return nil },
			}
			create(b, host.Direct(netip.IPv4Unspecified()), "key")
		}
	})
	b.Run("of=client", func(b *testing.B) {
		for b.Loop() {
			tb := new(spy)
			fake := fakeserver.New(tb)
			create(b, fake.Direct(), fake.Key())
			tb.finish()
		}
	})
}

// The cost of a call does not depend on how many agents the fake holds: the base has
// one. At most 1.3 times its time is wanted.
func BenchmarkScale(b *testing.B) {
	for name, agents := range map[string]int{"base": 1, "client": 1_000_000} {
		b.Run("of="+name, func(b *testing.B) {
			if testing.Short() && agents > 1 {
				b.Skip("fills half a gigabyte")
			}
			fake, c := newFake(b, unlimited()...)
			ids := make([]string, agents)
			for i := range ids {
				ids[i] = fake.AddAgent(c.key, fakeserver.Agent{}).ID
			}
			runtime.GC()        // of what filling left
			const stride = 7919 // visits them in another order than they have in memory
			for i := 0; b.Loop(); i += stride {
				c.post("/v1/agents/"+ids[i%agents]+"/channels/sms", `{"mode":"sandbox"}`)
			}
		})
	}
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

// heap is how much memory is in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
