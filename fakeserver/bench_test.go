package fakeserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
// The floor is what a test's author would write by hand, over the same
// transport: a handler that decodes the same JSON and encodes the same answer,
// and checks, counts and records nothing.

// versus reports how many times as long the fake takes as the floor.
func versus(b *testing.B, floor, fake func()) {
	ratio, each := measure(b, 20, floor, fake)
	b.ReportMetric(ratio, "x-floor")
	b.ReportMetric(each, "ns/call")
	b.ReportMetric(0, "ns/op") // of both together, and so of nothing
}

// measure runs both in turns of so many calls. It returns how many times as
// long the fake takes, and how long one of its calls takes.
func measure(b *testing.B, calls int, floor, fake func()) (ratio, each float64) {
	took(calls, floor)
	took(calls, fake)
	var ratios, times []float64
	for b.Loop() {
		before := took(calls, floor)
		own := took(2*calls, fake)
		ratios = append(ratios, own/(before+took(calls, floor)))
		times = append(times, own/float64(2*calls))
	}
	return median(ratios), median(times)
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

// benchWays are how a handler is reached, the fake's or the floor's. Each returns
// the transport and the address, and a cleanup of tb ends it.
var benchWays = []struct {
	name string
	open func(tb memnet.TB, h http.Handler) (wire http.RoundTripper, base string)
}{
	{"direct", func(_ memnet.TB, h http.Handler) (http.RoundTripper, string) {
		return hostOf(h).Direct(netip.IPv4Unspecified()), fakeURL
	}},
	{"wire", func(tb memnet.TB, h http.Handler) (http.RoundTripper, string) {
		return hostOf(h).Client(tb, netip.IPv4Unspecified()).Transport, fakeURL
	}},
	{"loopback", func(tb memnet.TB, h http.Handler) (http.RoundTripper, string) {
		server := httptest.NewServer(h)
		transport := &http.Transport{MaxIdleConnsPerHost: 1000}
		tb.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
		return transport, server.URL
	}},
}

// hostOf is the network of a fake, with any handler behind it.
func hostOf(h http.Handler) *memnet.Host {
	return &memnet.Host{
		Name: "the fake", Addr: strings.TrimPrefix(fakeURL, "https://") + ":443", Handler: h,
		Describe: func(r *http.Request) string { return r.Method },
	}
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

const (
	creation = `{"system_prompt":"You answer questions about orders.","customer_ref":"customer-17"}`
	message  = `{"text":"Hello, where is the order that I made last week?","user_ref":"user-4"}`
)

// bare is the floor of an endpoint: it decodes what is sent, and encodes reply.
func bare(reply any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var sent sentJSON
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	}
}

type sentJSON struct {
	SystemPrompt string `json:"system_prompt"`
	CustomerRef  string `json:"customer_ref"`
	Text         string `json:"text"`
	UserRef      string `json:"user_ref"`
}

var bareCreation = bare(&struct {
	AgentID string `json:"agent_id"`
	Status  string `json:"status"`
	TraceID string `json:"trace_id"`
}{"agent_000001", "active", "trace_000001"})

var bareMessage = bare(&struct {
	ReplyText string `json:"reply_text"`
	TraceID   string `json:"trace_id"`
}{"You wrote: Hello, where is the order that I made last week?", "trace_000001"})

// messagesPath adds an agent, and is where messages to it go.
func messagesPath(fake *fakeserver.Server, key string) string {
	return "/v1/agents/" + fake.AddAgent(key, fakeserver.Agent{}).ID + "/messages"
}

// A fake for one call: made, called and closed. The floor has its handler for
// nothing and pays for the same client. At most 2.0 direct, 1.3 on the wire and
// 1.15 over loopback are wanted.
func BenchmarkFresh(b *testing.B) {
	for _, way := range benchWays {
		b.Run(way.name, func(b *testing.B) {
			once := func(tb *spy, h http.Handler, key string) {
				wire, base := way.open(tb, h)
				post(wire, base+"/v1/agents", key, creation)
				tb.finish()
			}
			versus(b,
				func() { once(new(spy), bareCreation, "key") },
				func() {
					tb := new(spy)
					fake := fakeserver.New(tb)
					once(tb, fake, fake.Key())
				})
		})
	}
}

// One of many calls, with connections that are reused and the log full.
func BenchmarkMessage(b *testing.B) {
	for _, way := range benchWays {
		b.Run(way.name, func(b *testing.B) {
			fake, c := newFake(b, unlimited()...)
			var paths []string
			for range 1000 { // so that no conversation gets long
				paths = append(paths, messagesPath(fake, c.key))
			}
			calls := 0
			send := func(h http.Handler) func() {
				wire, base := way.open(b, h)
				return func() { calls++; post(wire, base+paths[calls%len(paths)], c.key, message) }
			}
			versus(b, send(bareMessage), send(fake))
		})
	}
}
