package contract

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/rawcall"
)

// What the tests outside the package need of its inside.
type Case = testCase

// AllCases are made once: their bodies are ten mebibytes.
func AllCases() []Case { return slices.Clone(cases()) }

var cases = sync.OnceValue(allCases)

// Member is a member of a request that has a bound or a list of values.
type Member struct {
	rawcall.Endpoint
	ID, Path, Values string
	Max              int
}

// Members are those of the table.
func Members() (all []Member) {
	for _, m := range members {
		all = append(all, Member{m.e.Endpoint, stated[m.e.Name] + "/" + m.name, m.name, m.values, m.max})
	}
	return all
}

// quietTB runs a case that is expected to fail.
type quietTB struct {
	testing.TB
	failed bool
	log    strings.Builder
}

func (q *quietTB) Skip(a ...any) { q.Skipf("%v", a...) }
func (q *quietTB) Skipf(f string, a ...any) {
	q.Logf(f, a...)
	runtime.Goexit()
}
func (q *quietTB) Fatalf(f string, a ...any) {
	q.failed = true
	q.Logf(f, a...)
	runtime.Goexit()
}
func (q *quietTB) Logf(f string, a ...any) { fmt.Fprintf(&q.log, f+"\n", a...) }

// Verdict runs the case on the target: whether it failed, and what it printed.
func Verdict(t *testing.T, c Case, target Target) (failed bool, log string) {
	return run(t, c, target, new(shared))
}

func run(t *testing.T, c testCase, target Target, all *shared) (failed bool, log string) {
	q := &quietTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.check(q, target, all)
	}()
	<-done
	return q.failed, q.log.String()
}

// FirstLiveFailure runs the cases as Run does on a shared target, up to the
// first that fails, and returns its id and what it printed, and how many cases
// ran until then.
func FirstLiveFailure(t *testing.T, target Target) (failure string, ran int) {
	p := newPlan(AllCases(), target, nil)
	all := &shared{wait: p.waitLeft(target)}
	for _, c := range p {
		if c.leftOut != "" {
			continue
		}
		ran++
		if failed, log := run(t, c.testCase, target, all); failed {
			return c.ID + "\n" + log, ran
		}
	}
	return "", ran
}

// reached is a target behind the transport, and can arrange everything.
func reached(by http.RoundTripper) Target {
	client := &http.Client{Transport: by}
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
