package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// quietTB runs a case that is expected to fail.
type quietTB struct {
	testing.TB
	failed   bool
	log      strings.Builder
	cleanups []func()
}

func (q *quietTB) Helper()                  {}
func (q *quietTB) Cleanup(f func())         { q.cleanups = append(q.cleanups, f) }
func (q *quietTB) Failed() bool             { return q.failed }
func (q *quietTB) Context() context.Context { return q.TB.Context() }
func (q *quietTB) Skip(...any)              { runtime.Goexit() }
func (q *quietTB) Fatalf(f string, a ...any) {
	q.failed = true
	q.Logf(f, a...)
	runtime.Goexit()
}
func (q *quietTB) Logf(f string, a ...any) { fmt.Fprintf(&q.log, f+"\n", a...) }

// verdict runs the case on the target: whether it failed, and what it printed.
func verdict(t *testing.T, c testCase, target Target, broken ...string) (failed bool, log string) {
	q := &quietTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.check(q, target, &shared{broken: broken})
	}()
	<-done
	for _, f := range q.cleanups {
		f()
	}
	return q.failed, q.log.String()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func answering(status int, body string) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	}
}

// target is reached by the transport, and can arrange everything.
func (f roundTrip) target() Target {
	client := &http.Client{Transport: f}
	return Target{
		BaseURL: "http://service.example", Key: "key-1", HTTPClient: client, Abilities: nothing{},
		ClientFrom: func(string) *http.Client { return client },
	}
}

// nothing can arrange everything, and does nothing.
type nothing struct{}

func (nothing) IssueKeyOn(string, bool) string { return "key-2" }
func (nothing) RevokeKey(string)               {}
func (nothing) SetBYOKAvailable(bool)          {}
func (nothing) Advance(time.Duration)          {}

// TestFailurePrintsRule: a failure begins with the sentence that was broken,
// and is short whatever came back.
func TestFailurePrintsRule(t *testing.T) {
	for _, c := range AllCases() {
		_, log := verdict(t, c, answering(500, `{"error":"`+strings.Repeat("x", 10_000)+`"}`).target())
		assert.True(t, strings.HasPrefix(log, c.String()), log)
		assert.Less(t, len(log)-len(c.String()), 500, log)
		if t.Failed() {
			return
		}
	}
}

// TestBaseBroken: where a limit does not hold, the cases that fill it say
// nothing more.
func TestBaseBroken(t *testing.T) {
	c := newCase("8.2/x", "", getStatus.limited("key_minute"))
	for _, tt := range []struct {
		base   bool
		broken []string
		fails  bool
	}{{false, nil, true}, {false, []string{"8.1/key_minute"}, false}, {true, []string{"8.1/ip_minute"}, true}} {
		c.base = tt.base
		failed, log := verdict(t, c, answering(200, `{}`).target(), tt.broken...)
		assert.Equal(t, tt.fails, failed, log)
	}
}

// TestIrreversible: a fingerprint that shows the provider key in any of the
// usual ways is refused.
func TestIrreversible(t *testing.T) {
	for shown, fingerprint := range map[string]string{
		"the last five":       "sk-...~Jw4n~Jw4",
		"backwards":           "4wJ~nwo~",
		"moved by one":        "u\x7fpxo\x7fKx5",
		"one bit turned":      "unvo\x7fKv5",
		"rot13":               "fp_g~bja~Wj4",
		"hexadecimal":         "776e7e4a7734",
		"base64":              "c2stY29udHJhY3R+N2YzfmE5Y34yZTR+bm90fm93bn5KdzQ=",
		"a plain SHA-256":     "sha256:ea8098a234438a3d",
		"a plain SHA-512":     "fab63a921293d6ba",
		"a SHA-256 in base64": "6oCYojRDij33",
	} {
		assert.NotEmpty(t, irreversible(fingerprint), shown)
	}
	assert.Empty(t, irreversible("fp_8c1d0a4be1f2"))
}
