package fakeserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
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

// hostOf is the network of the fake with another handler behind it.
func (s *Server) hostOf(h http.Handler) *memnet.Host {
	return &memnet.Host{Name: "the fake", Addr: host + ":443", Handler: h, Describe: callName, Now: s.now}
}

// ways are how a handler is reached. Each returns the client and what ends it.
var ways = []struct {
	name string
	open func(*Server, http.Handler) (caller http.RoundTripper, base string, end func())
}{
	{"direct", func(s *Server, h http.Handler) (http.RoundTripper, string, func()) {
		return s.hostOf(h).Direct(address("", nil)), s.BaseURL(), func() {}
	}},
	{"wire", func(s *Server, h http.Handler) (http.RoundTripper, string, func()) {
		var tb cleanups
		client := s.hostOf(h).Client(&tb, address("", nil))
		return client.Transport, s.BaseURL(), tb.run
	}},
	{"loopback", func(_ *Server, h http.Handler) (http.RoundTripper, string, func()) {
		server := httptest.NewServer(h)
		transport := &http.Transport{MaxIdleConnsPerHost: 1000}
		return transport, server.URL, func() { transport.CloseIdleConnections(); server.Close() }
	}},
}

// cleanups is a TB that never fails.
type cleanups struct{ fs []func() }

func (c *cleanups) Helper()               {}
func (c *cleanups) Cleanup(f func())      { c.fs = append(c.fs, f) }
func (c *cleanups) Errorf(string, ...any) {}
func (c *cleanups) Logf(string, ...any)   {}
func (c *cleanups) Failed() bool          { return false }

func (c *cleanups) run() {
	for _, f := range slices.Backward(c.fs) {
		f()
	}
}

// post makes one call and reads the answer.
func post(caller http.RoundTripper, url, key, body string) {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := caller.RoundTrip(req)
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

// bare is the floor of an endpoint: it decodes what is sent, and encodes what
// reply makes of it.
func bare(reply func(sent sentJSON) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var sent sentJSON
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply(sent))
	}
}

type sentJSON struct {
	SystemPrompt string `json:"system_prompt"`
	CustomerRef  string `json:"customer_ref"`
	Text         string `json:"text"`
	UserRef      string `json:"user_ref"`
}

var bareCreation = bare(func(sentJSON) any {
	return &createdReply{AgentID: "agent_000001", Status: "active", traced: traced{"trace_000001"}}
})

var bareMessage = bare(func(sent sentJSON) any {
	return &messageReply{ReplyText: "You wrote: " + sent.Text, traced: traced{"trace_000001"}}
})

// unbounded is a fake whose limits are out of the way.
func unbounded(b testing.TB, opts ...Option) *Server {
	for _, l := range spec.Limits {
		opts = append(opts, WithLimit(Limit(l.Key), 1<<30))
	}
	return New(b, opts...)
}

// A fake for one call: made, called and closed. The floor has its handler for
// nothing and pays for the same client. At most 2.0 direct, 1.3 on the wire and
// 1.15 over loopback are wanted.
func BenchmarkFresh(b *testing.B) {
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			once := func(s *Server, h http.Handler) {
				caller, base, end := way.open(s, h)
				post(caller, base+"/v1/agents", s.Key(), creation)
				end()
			}
			idle := New(b)
			versus(b,
				func() { once(idle, bareCreation) },
				func() {
					var tb cleanups
					s := New(&tb)
					once(s, s)
					tb.run()
				})
		})
	}
}

// One of many calls, with connections that are reused and the log full.
func BenchmarkMessage(b *testing.B) {
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			s := unbounded(b)
			var paths []string
			for range 1000 { // so that no conversation gets long
				paths = append(paths, "/v1/agents/"+agentFor(s, s.Key())+"/messages")
			}
			calls := 0
			path := func() string { calls++; return paths[calls%len(paths)] }
			caller, base, end := way.open(s, s)
			defer end()
			bareCaller, bareBase, bareEnd := way.open(s, bareMessage)
			defer bareEnd()
			versus(b,
				func() { post(bareCaller, bareBase+path(), s.Key(), message) },
				func() { post(caller, base+path(), s.Key(), message) })
		})
	}
}

// agentFor creates an agent as a call would, at the cost of its memory only.
func agentFor(s *Server, key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addAgent(&request{world: s.world, key: s.world.keys[digestOf(key)], now: s.now()}).ID
}

// Throughput over loopback under 64 connections, with recording on: the
// fraction of what the floor gets through, as of-floor. At least 0.85 is wanted.
func BenchmarkThroughput(b *testing.B) {
	const connections, calls = 64, 10
	s := unbounded(b)
	path := "/v1/agents/" + agentFor(s, s.Key()) + "/messages"
	round := func(h http.Handler) func() {
		server := httptest.NewServer(h)
		b.Cleanup(server.Close)
		transport := &http.Transport{MaxIdleConnsPerHost: connections}
		b.Cleanup(transport.CloseIdleConnections)
		return func() {
			var wait sync.WaitGroup
			for range connections {
				wait.Go(func() {
					for range calls {
						post(transport, server.URL+path, s.Key(), message)
					}
				})
			}
			wait.Wait()
		}
	}
	ratio, _ := measure(b, 1, round(bareMessage), round(s))
	b.ReportMetric(1/ratio, "of-floor")
	b.ReportMetric(0, "ns/op")
}
