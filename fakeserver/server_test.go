package fakeserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

func TestCloseRefusesAndIsIdempotent(t *testing.T) {
	fake, err := fakeserver.Open()
	require.NoError(t, err)
	client := fake.HTTPClient(nil)
	resp, err := client.Get(fake.BaseURL() + "/v1/status")
	require.NoError(t, err)
	read(t, resp)
	caller{t, fake.Direct(), ""}.call("GET", "/favicon.ico", noBody).wantError(t, 404, "not_found") // foreign traffic is no error
	fake.OnMessage().Required()
	assert.EqualError(t, fake.Close(), "fakeserver: OnMessage() is required and was never used; calls that it matched: 0; no call came near")
	assert.NoError(t, fake.Close())
	for _, refused := range []caller{{t, client.Transport, ""}, {t, fake.Direct(), ""}} {
		_, err = refused.wire.RoundTrip(refused.request("POST", "/v1/warmup", noBody)) //nolint:bodyclose // there is none
		assert.ErrorContains(t, err, "the fake is closed")
	}
	fake, err = fakeserver.Open()
	require.NoError(t, err)
	concurrently(8, 1, func() { fake.HTTPClient(nil); assert.NoError(t, fake.Close()) })
}

// A panic of the fake's own fails the test, whatever becomes of the answer.
func TestOwnPanicsAreReported(t *testing.T) {
	watch, fake, c := newSpied(t)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() {
		fake.ServeHTTP(struct{ http.ResponseWriter }{}, c.request("GET", "/v1/status", noBody))
	})
	assert.Contains(t, strings.Join(watch.errors, "\n"), "the fake itself panicked")
}

// After a Reset the fake is as a new one is, but for its clock.
func TestReset(t *testing.T) {
	watch, fake, c := newSpied(t, frozen(), fakeserver.WithKey("mine"), fakeserver.WithPlan(fakeserver.PlanPro))
	used := func() string {
		here := c.from(fake, "203.0.113.7")
		said := here.send(here.agent(emptyBody), "hello").raw
		unknown := c.with("mine_000002").call("GET", "/v1/status", noBody).raw
		_, set := fake.BYOK(c.key)
		limits := fake.Limits(c.key, fakeserver.FromIP("203.0.113.7"))
		return fmt.Sprint(said, unknown, set, fake.Agents(), limits, fake.Calls(), fake.IssueKey(fakeserver.KeyOptions{}))
	}
	want := used()
	fake.Reset()
	fake.IssueKey(fakeserver.KeyOptions{})
	c.setBYOK()
	c.send(c.agent(emptyBody), "hello").wantOK(t)
	fake.SetBYOKAvailable(false)
	fake.SetPlan(fake.Key(), fakeserver.PlanFree)
	fake.Exhaust(fake.Key(), "key_day")
	fake.RevokeKey(fake.Key())
	fake.OnMessage().Reply("scripted").Required()
	fake.Inject(fakeserver.Hang())

	fake.Reset()
	require.Len(t, watch.errors, 1)
	assert.Contains(t, watch.errors[0], "fakeserver: OnMessage() is required and was never used")
	assert.Equal(t, want, used())
	c.setBYOK() // the store is there again
}

// A call that is under way at a Reset ends in the world that it began in, and
// leaves nothing in the new one.
func TestResetInsideACall(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	wantNothing := func() {
		t.Helper()
		assert.Empty(t, fake.Calls())
		assert.Empty(t, fake.Agents())
		assert.Zero(t, fake.Limits(c.key)[0].Used)
	}
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { // behind the effect
		fake.Reset()
		return fakeserver.Reply{Text: "from before"}
	})
	assert.Equal(t, "from before", c.send(agent, "x").text("reply_text"))
	wantNothing()
	fake.Inject(fakeserver.Latency(1), fakeserver.Where(func(fakeserver.Call) bool { fake.Reset(); return true })) // before it
	second := fake.IssueKey(fakeserver.KeyOptions{})
	c.with(second).call("POST", "/v1/agents", emptyBody).wantOK(t)
	wantNothing()
	assert.Equal(t, "trace_000001", c.call("GET", "/v1/status", noBody).text("trace_id"))
}

// spy is a TB whose failures are looked at.
type spy struct {
	mu       sync.Mutex
	errors   []string
	logs     []string
	cleanups []func()
}

func (s *spy) Helper() {}

func (s *spy) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *spy) Failed() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.errors) > 0 }

func (s *spy) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}

func (s *spy) Logf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, fmt.Sprintf(format, args...))
}

func (s *spy) finish() {
	for i := len(s.cleanups) - 1; i >= 0; i-- {
		s.cleanups[i]()
	}
}

// newSpied returns a fake whose failures go to a spy.
func newSpied(t testing.TB, opts ...fakeserver.Option) (*spy, *fakeserver.Server, caller) {
	t.Helper()
	watch := new(spy)
	fake := fakeserver.New(watch, opts...)
	return watch, fake, caller{t, fake.Direct(), fake.Key()}
}
