package contract

import (
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

func (q *quietTB) Helper()                 {}
func (q *quietTB) Cleanup(f func())        { q.cleanups = append(q.cleanups, f) }
func (q *quietTB) Fail()                   { q.failed = true }
func (q *quietTB) Failed() bool            { return q.failed }
func (q *quietTB) FailNow()                { q.failed = true; runtime.Goexit() }
func (q *quietTB) Logf(f string, a ...any) { fmt.Fprintf(&q.log, f+"\n", a...) }
func (q *quietTB) Errorf(f string, a ...any) {
	q.failed = true
	q.Logf(f, a...)
}

// verdict runs the case on the target: whether it failed, and what it printed.
func verdict(t *testing.T, c Case, target Target) (failed bool, log string) {
	q := &quietTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.check(q, target, &sharedAgent{})
	}()
	<-done
	for _, f := range q.cleanups {
		f()
	}
	return q.failed, q.log.String()
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answering is a target that answers every call with the same.
func answering(status int, body string) Target {
	client := &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
	})}
	return Target{
		BaseURL: "http://service.example", Key: "key-1",
		HTTPClient: func(testing.TB) *http.Client { return client },
		Abilities: Abilities{
			IssueKey:         func(string, bool) string { return "key-2" },
			RevokeKey:        func(string) {},
			Advance:          func(time.Duration) {},
			SetBYOKAvailable: func(bool) {},
			ClientFrom:       func(testing.TB, string) *http.Client { return client },
		},
	}
}

// TestNoCasePassesOnNothing: a case that passes on a target without behaviour
// checks nothing.
func TestNoCasePassesOnNothing(t *testing.T) {
	for _, target := range []Target{
		answering(200, `{}`), answering(200, `{"ok":true,"trace_id":"t"}`), answering(204, ""),
		answering(500, `{"error":"internal"}`), answering(302, ""), answering(200, "<html>"),
		answering(401, `{"trace_id":"t"}`), answering(404, `{"error":""}`), answering(400, `["error"]`), answering(402, ``),
	} {
		for _, c := range Cases() {
			failed, _ := verdict(t, c, target)
			assert.True(t, failed, c.ID)
		}
	}
}

// TestFailurePrintsRule: the sentence that was broken is in the log.
func TestFailurePrintsRule(t *testing.T) {
	for _, c := range Cases() {
		_, log := verdict(t, c, answering(500, `{"error":"internal"}`))
		assert.Contains(t, log, c.String())
		if t.Failed() {
			return
		}
	}
}

// TestOverspendingFails: a case that spends other than it says does not pass.
func TestOverspendingFails(t *testing.T) {
	target := answering(401, `{"error":"unauthorized"}`)
	for _, tt := range []struct {
		says  int
		fails bool
	}{{1, true}, {2, false}, {3, true}} {
		c := Case{ID: "5/x", Rule: "x", Spends: Spend{Requests: tt.says}, run: func(s *session) {
			s.call(getStatus, "").is(401)
			s.call(getStatus, "").is(401)
		}}
		failed, log := verdict(t, c, target)
		assert.Equal(t, tt.fails, failed, log)
	}
}
