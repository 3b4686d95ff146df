package fakeserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
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
