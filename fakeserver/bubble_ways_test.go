package fakeserver_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// One fake, made outside, serves the wire and Direct in four bubbles and all
// three ways outside, at once.
func TestEveryWayInManyBubbles(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithLimit("key_minute", 60))
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	t.Run("group", func(t *testing.T) {
		for _, ip := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"} {
			key := fake.IssueKey(fakeserver.KeyOptions{})
			t.Run(ip, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ways := transports(t, fake, fakeserver.FromIP(ip))
					spendTogether(t, key, 60, ways["wire"], ways["direct"])
					begun := time.Now()
					time.Sleep(time.Minute)
					spendTogether(t, key, 60, ways["wire"], ways["direct"])
					assert.Equal(t, time.Minute, time.Since(begun))
				})
			})
		}
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			ways := transports(t, fake)
			spendTogether(t, fake.Key(), 60, ways["wire"], ways["direct"], redirected{server})
		})
	})
	assert.Equal(t, 4*2*(60+2)+60+3, fake.CallCount())
}

// spendTogether spends a limit over several ways at once: exactly maximum
// calls pass, and then each way is refused.
func spendTogether(t *testing.T, key string, maximum int, ways ...http.RoundTripper) {
	t.Helper()
	var wait sync.WaitGroup
	for i, wire := range ways {
		share := maximum / len(ways)
		if i == 0 {
			share += maximum % len(ways)
		}
		wait.Go(func() { caller{t, wire, key}.times(share, "GET", anAgent, noBody) })
	}
	wait.Wait()
	for _, wire := range ways {
		caller{t, wire, key}.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	}
}

// redirected sends calls to a server on a socket.
type redirected struct{ server *httptest.Server }

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req.URL.Scheme, req.URL.Host = "http", strings.TrimPrefix(r.server.URL, "http://")
	return r.server.Client().Transport.RoundTrip(req)
}

// timed opens a fake and says how its time passes.
type timed func(testing.TB, ...fakeserver.Option) (*fakeserver.Server, func(time.Duration))

// The three ways of moving time give the same answers.
func TestClocksAgree(t *testing.T) {
	want := observed{
		retryAfter: []string{"86400", "1", ""},
		date:       24 * time.Hour,
		created:    0,
		updated:    24 * time.Hour,
		called:     24 * time.Hour,
		coldStart:  3 * time.Second,
		warm:       0,
		latency:    5 * time.Second,
	}
	for name, open := range map[string]timed{
		"bubble": func(t testing.TB, opts ...fakeserver.Option) (*fakeserver.Server, func(time.Duration)) {
			return fakeserver.New(t, opts...), time.Sleep
		},
		"Advance": func(t testing.TB, opts ...fakeserver.Option) (*fakeserver.Server, func(time.Duration)) {
			fake := fakeserver.New(t, append(opts, frozen())...)
			return fake, fake.Advance
		},
		"WithClock": func(t testing.TB, opts ...fakeserver.Option) (*fakeserver.Server, func(time.Duration)) {
			var passed atomic.Int64
			clock := func() time.Time { return time.Unix(year2040, passed.Load()) }
			return fakeserver.New(t, append(opts, fakeserver.WithClock(clock))...), func(d time.Duration) { passed.Add(int64(d)) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			// All in a bubble, so that what waits costs nothing.
			synctest.Test(t, func(t *testing.T) { assert.Equal(t, want, observeTime(t, open)) })
		})
	}
}

// observed is what a test sees of time: durations since the first call.
type observed struct {
	retryAfter                     []string // at once, a nanosecond before the limit opens, and when it does
	date, created, updated, called time.Duration
	coldStart, warm, latency       time.Duration // what calls took
}

func observeTime(t *testing.T, open timed) (seen observed) {
	fake, pass := open(t, fakeserver.WithColdStart(3*time.Second), fakeserver.WithLimit("key_day", 3))
	fake.Inject(fakeserver.Latency(5*time.Second), fakeserver.ByEndpoint(fakeserver.EndpointStatus))
	c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
	agent := c.agent(emptyBody)
	begun := fake.Calls()[0].Time
	c.times(2, "GET", anAgent, noBody)
	for _, wait := range []time.Duration{0, 24*time.Hour - time.Nanosecond, time.Nanosecond} {
		pass(wait)
		r := c.call("POST", anAgent+"/channels/sms", `{"mode":"sandbox"}`)
		seen.retryAfter = append(seen.retryAfter, r.header.Get("Retry-After"))
		date, err := http.ParseTime(r.header.Get("Date"))
		require.NoError(t, err)
		seen.date = date.Sub(begun)
	}
	a, _ := fake.Agent(agent)
	seen.created, seen.updated = a.CreatedAt.Sub(begun), a.UpdatedAt.Sub(begun)
	seen.called = fake.Calls()[fake.CallCount()-1].Time.Sub(begun)
	seen.coldStart = elapsed(func() { c.send(agent, "hello").wantOK(t) })
	seen.warm = elapsed(func() { c.send(agent, "hello").wantOK(t) })
	seen.latency = elapsed(func() { c.call("GET", "/v1/status", noBody).wantOK(t) })
	return seen
}

func elapsed(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

// A fake has no goroutine and no socket, is called without either, and leaves
// none behind its clients.
func TestNoGoroutineAndNoSocket(t *testing.T) {
	wantNoConnections(t)
	sockets := openSockets(t) // those of other tests may still be closing, so there may be fewer later
	watch := new(spy)
	fake := fakeserver.New(watch)
	c := caller{t, fake.Direct(), fake.Key()}
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.Zero(t, connectionGoroutines(), "Direct")
	c.wire = fake.HTTPClient(watch).Transport
	assert.Zero(t, connectionGoroutines(), "nothing was dialled yet")
	c.call("GET", "/v1/status", noBody).wantOK(t)
	assert.NotZero(t, connectionGoroutines(), "the count sees them")
	assert.LessOrEqual(t, openSockets(t), sockets)
	watch.finish()
	wantNoConnections(t)
	assert.LessOrEqual(t, openSockets(t), sockets)
}

// wantNoConnections returns when the last goroutine of a connection has
// returned: hanging up has ended them.
func wantNoConnections(t testing.TB) {
	t.Helper()
	eventually(t, func() bool { return connectionGoroutines() == 0 })
}

// eventually waits for what happens by itself, and fails with all stacks where
// it does not. The limit is no measure: it is far beyond what anything takes.
func eventually(t testing.TB, happened func() bool) {
	t.Helper()
	for giveUp := time.Now().Add(20 * time.Second); !happened(); runtime.Gosched() {
		if time.Now().After(giveUp) {
			all := make([]byte, 1<<20)
			t.Fatalf("it did not happen; goroutines:\n%s", all[:runtime.Stack(all, true)])
		}
	}
}

// connectionGoroutines counts those that are inside an in-memory connection,
// where both ends wait for each other.
func connectionGoroutines() (n int) {
	all := make([]byte, 1<<20)
	all = all[:runtime.Stack(all, true)]
	for _, stack := range strings.Split(string(all), "\n\n") {
		if strings.Contains(stack, "memnet.(*stream)") || strings.Contains(stack, "memnet.(*conn)") {
			n++
		}
	}
	return n
}

// openSockets counts the sockets of the process, where the system shows them.
func openSockets(t *testing.T) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the system does not list open files")
	}
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
