package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
)

// script gives its answers in turns.
type script struct {
	answers []answer
	next    atomic.Int64
}

func (s *script) turn() answer { return s.answers[int(s.next.Add(1)-1)%len(s.answers)] }

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) { return respond(req, s.turn()) }

var (
	found   = answer{200, serviceAnswers[agentPath]}
	refused = answer{429, `{"error":"rate_limited","limit_key":"requests_per_minute","trace_id":"trace_01jb2m7vqk8rs4d1"}`}
	missing = answer{404, `{"error":"agent_not_found","trace_id":"trace_01jb2m7vqk8rs4d1"}`}
)

// metadata is more than 1 MiB in ten thousand members.
var metadata = func() json.RawMessage {
	members := map[string]string{}
	for i := range 10_000 {
		members[fmt.Sprintf("member-%05d", i)] = strings.Repeat("v", 88)
	}
	raw, _ := json.Marshal(members) // of strings
	return raw
}()

// paths are what a call can meet beside its usual answer.
var paths = []struct {
	name    string
	answers []answer
	call    func(service, context.Context) error
	fails   bool
}{
	{"429", []answer{refused, found}, service.read, false},
	{"error", []answer{missing}, service.read, true},
	{"metadata", []answer{found}, func(s service, ctx context.Context) error { return s.(creator).create(ctx, metadata) }, false},
}

// BenchmarkPath is what is not the usual call.
func BenchmarkPath(b *testing.B) {
	for _, path := range paths {
		for _, p := range trio {
			b.Run("case="+path.name+"/subject="+p.name, func(b *testing.B) {
				open := p.open
				if path.name == "429" && p.name == "agentmessaging" {
					open = func(t http.RoundTripper, url string) service {
						return ownWith(t, url, agentmessaging.WithClock(new(skipping)))
					}
				}
				client := open(&script{answers: path.answers}, memory)
				repeat(b, func(ctx context.Context) error {
					if err := path.call(client, ctx); (err != nil) != path.fails {
						return fmt.Errorf("fails: %t; want %t: %w", err != nil, path.fails, err)
					}
					return nil
				})
			})
		}
	}
}

// skipping is a clock that jumps over waits, such as the jitter behind a 429.
type skipping struct{ ahead time.Duration }

func (s *skipping) Now() time.Time { return time.Now().Add(s.ahead) }

func (s *skipping) Sleep(_ context.Context, d time.Duration) error { s.ahead += d; return nil }
