package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/bench/peers/service"
)

// script answers in turns, from memory.
type script struct {
	answers []scripted
	next    int
}

type scripted struct {
	status     int
	retryAfter string
	body       string
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	answer := s.answers[s.next%len(s.answers)]
	s.next++
	header := http.Header{"Content-Type": {"application/json"}}
	if answer.retryAfter != "" {
		header["Retry-After"] = []string{answer.retryAfter}
	}
	return &http.Response{
		StatusCode: answer.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(strings.NewReader(answer.body)), ContentLength: int64(len(answer.body)), Request: req,
	}, nil
}

var (
	read    = scripted{status: 200, body: service.Answers[service.AgentPath]}
	refused = scripted{
		status: 429, retryAfter: "0",
		body: `{"error":"rate_limited","limit_key":"requests_per_minute","trace_id":"trace_01jb2m7vqk8rs4d1"}`,
	}
	missing  = scripted{status: 404, body: `{"error":"agent_not_found","trace_id":"trace_01jb2m7vqk8rs4d1"}`}
	escaped  = strings.Repeat("\u0001", 4000)
	repeated = scripted{status: 200, body: `{"reply_text":"` + strings.Repeat(`\u0001`, 4000) + `","trace_id":"trace_01jb2m7vqk8rs4d1"}`}
)

// paths are what a call can meet. The metadata have more than 1 MiB in ten
// thousand members; every character of the escaped text takes six bytes of JSON,
// in the message and in its reply.
var paths = []struct {
	name    string
	answers []scripted
	want    []int // the statuses that a call meets, one for each request
	call    func(user, context.Context) error
	fails   bool
}{
	{"429", []scripted{refused, read}, []int{429, 200}, user.read, false},
	{"error", []scripted{missing}, []int{404}, user.read, true},
	{"error-long-text", []scripted{missing}, []int{404}, func(u user, ctx context.Context) error { return u.send(ctx, strings.Repeat("text", 1000)) }, true},
	{"metadata", []scripted{read}, []int{200}, func(u user, ctx context.Context) error { return u.create(ctx, metadata) }, false},
	{"escaped", []scripted{repeated}, []int{200}, func(u user, ctx context.Context) error { return u.send(ctx, escaped) }, false},
}

var metadata = func() json.RawMessage {
	members := map[string]string{}
	for i := range 10_000 {
		members[fmt.Sprintf("member-%05d", i)] = strings.Repeat("v", 88)
	}
	raw, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return raw
}()

// BenchmarkPath is what is not the usual call.
func BenchmarkPath(b *testing.B) {
	for _, path := range paths {
		for _, user := range users {
			b.Run("case="+path.name+"/subject="+user.subject, func(b *testing.B) {
				client := user.new(b, &script{answers: path.answers}, "https://service.example")
				repeat(b, func(ctx context.Context) error {
					if err := path.call(client, ctx); (err != nil) != path.fails {
						return fmt.Errorf("it fails: %t, and should: %t: %w", err != nil, path.fails, err)
					}
					return nil
				})
			})
		}
	}
}

// TestPaths: each call meets what its path is named after, in as many requests.
func TestPaths(t *testing.T) {
	require.Greater(t, len(metadata), 1<<20)
	for _, path := range paths {
		for _, user := range users {
			var met []int
			transport := watched{&script{answers: path.answers}, func(_ *http.Request, resp *http.Response) {
				met = append(met, resp.StatusCode)
			}}
			err := path.call(user.new(t, transport, "https://service.example"), t.Context())
			require.Equal(t, path.fails, err != nil, "%s %s: %v", path.name, user.subject, err)
			require.Equal(t, path.want, met, "%s %s", path.name, user.subject)
		}
	}
}
