package fakeserver_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// These are absolute figures: allocations and bytes are stable, times are those
// of the machine. Ratios to a floor are in bench_inside_test.go.

// What a fake costs that nobody calls.
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		watch := new(spy)
		fakeserver.New(watch)
		watch.finish()
	}
}

func BenchmarkSendMessage(b *testing.B) {
	for _, name := range []string{"direct", "wire"} {
		b.Run(name, func(b *testing.B) {
			fake, c := newFake(b, unlimited()...)
			c.wire = transports(b, fake)[name]
			path := "/v1/agents/" + c.agent(emptyBody) + "/messages"
			b.ReportAllocs()
			for b.Loop() {
				resp, err := c.wire.RoundTrip(c.request("POST", path, `{"text":"hello, how are you today?"}`))
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

func BenchmarkFreshFake(b *testing.B) {
	clients := map[string]func(*fakeserver.Server, fakeserver.TB) http.RoundTripper{
		"direct": func(s *fakeserver.Server, _ fakeserver.TB) http.RoundTripper { return s.Direct() },
		"wire":   func(s *fakeserver.Server, tb fakeserver.TB) http.RoundTripper { return s.HTTPClient(tb).Transport },
	}
	for name, client := range clients {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				watch := new(spy)
				fake := fakeserver.New(watch)
				c := caller{b, client(fake, watch), fake.Key()}
				if r := c.call("GET", "/v1/status", noBody); r.status != 200 {
					b.Fatal(fmt.Sprint(r))
				}
				watch.finish()
			}
		})
	}
}
