package fakeserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// transports returns the two in-memory transports to a fake.
func transports(t testing.TB, fake *fakeserver.Server, opts ...fakeserver.FromIP) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"wire": fake.HTTPClient(t, opts...).Transport, "direct": fake.Direct(opts...)}
}

// ways returns the four transports to a fake: two in memory, two over a socket. Over
// HTTP/1.1 each call has a new connection: net/http repeats some requests by itself on one
// that was used before.
func ways(t testing.TB, fake *fakeserver.Server) map[string]http.RoundTripper {
	all, secure := transports(t, fake), overTLS(t, fake, false)
	secure.DisableKeepAlives = true
	all["wire"].(*http.Transport).DisableKeepAlives = true
	all["TLS"], all["HTTP/2"] = secure, overTLS(t, fake, true)
	return all
}

// overTLS returns a transport to a fake over TLS on a socket, with HTTP/2 or HTTP/1.1.
func overTLS(t testing.TB, fake *fakeserver.Server, http2 bool) *http.Transport {
	server := httptest.NewUnstartedServer(fake)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that leaves may not end its handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	transport := server.Client().Transport.(*http.Transport)
	transport.TLSClientConfig.ServerName = "example.com" // as the certificate says
	transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", server.Listener.Addr().String())
	}
	return transport
}

// requests change a POST with a body of 5 bytes.
var requests = map[string]func(*http.Request){
	"POST":   func(*http.Request) {},
	"escape": func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/v1/agents/a/b", "/v1/agents/a%2Fb" },
	"HEAD":   func(r *http.Request) { r.Method, r.Body, r.ContentLength = "HEAD", nil, 0 },
	"chunks": func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(io.MultiReader(r.Body)), -1 },

	"lower case":    func(r *http.Request) { r.Header = http.Header{"authorization": {" a \t"}} },
	"own encoding":  func(r *http.Request) { r.Header.Set("Accept-Encoding", "br") },
	"a range":       func(r *http.Request) { r.Header.Set("Range", "a") },
	"name: space":   func(r *http.Request) { r.Header["X A"] = []string{"a"} },
	"value: lines":  func(r *http.Request) { r.Header.Set("X-A", "b\nX-B: c") },
	"no URL":        func(r *http.Request) { r.URL = nil },
	"no header":     func(r *http.Request) { r.Header = nil },
	"no host":       func(r *http.Request) { r.URL.Host = "" },
	"method: line":  func(r *http.Request) { r.Method = "GET\n" },
	"query: space":  func(r *http.Request) { r.URL.RawQuery = "a b" },
	"close":         func(r *http.Request) { r.Close = true },
	"go away":       func(r *http.Request) { r.Header.Set("X-Fault", "a") },
	"ended context": func(r *http.Request) { ctx, end := context.WithCancel(r.Context()); end(); *r = *r.WithContext(ctx) },
}

// In memory, the handler and the client see the same as over a socket, except for times. This
// also holds for requests that net/http refuses to send.
func TestRequestsArriveAsOverASocket(t *testing.T) {
	fake, c := newFake(t, fakeserver.WithUnknownRoutes())
	overSocket := overTLS(t, fake, false)
	for name, change := range requests {
		outcome := func(wire http.RoundTripper) []string {
			fake.Reset()
			fake.Inject(fakeserver.GoAway(), fakeserver.Where(func(call fakeserver.Call) bool { return call.Header.Get("X-Fault") != "" }))
			req := c.request("POST", "/v1/agents/agent_000001", "hello")
			change(req)
			resp, err := wire.RoundTrip(req)
			if err != nil {
				return []string{class(err), fmt.Sprint("calls: ", fake.CallCount())}
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			resp.Header.Del("Date")
			_ = resp.Body.Close()
			_, closed := resp.Body.Read(make([]byte, 1))
			call := append(fake.Calls(), fakeserver.Call{Sent: fakeserver.Sent{Bytes: len(body)}})[0] // net/http refuses some requests by itself
			assert.Len(t, body, call.Sent.Bytes, name)
			return []string{
				fmt.Sprint(resp.Status, resp.Proto, resp.ProtoMajor, resp.ProtoMinor, resp.Header, resp.Trailer, resp.ContentLength, resp.TransferEncoding, resp.Uncompressed, resp.Close, string(body), err, closed != nil, resp.Request != nil),
				fmt.Sprint(call.Method, call.Path, call.AgentID, call.Header, call.Body, call.BodyBytes),
			}
		}
		want := outcome(overSocket)
		for way, wire := range transports(t, fake) {
			assert.Equal(t, want, outcome(wire), "%s over %s", name, way)
		}
	}
}

// If the caller's request body fails, the call fails with the body's error.
func TestBodiesThatFail(t *testing.T) {
	fake, c := newFake(t)
	all := ways(t, fake)
	delete(all, "HTTP/2") // over HTTP/2 the answer may come before the error
	for way, wire := range all {
		req := c.request("POST", "/v1/warmup", "hello")
		req.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		assert.Equal(t, "ErrUnexpectedEOF", seen(wire, req), way)
		req = c.request("POST", "/v1/warmup", "hello")
		req.ContentLength = 6
		assert.Regexp(t, "ody length 5|closed network connection", seen(wire, req), way) // over a socket, net/http may report first that it closed the connection
		body, sender := io.Pipe()
		req.Body, req.Method = body, "\n"
		_ = seen(wire, req)
		_, err := sender.Write(nil) // would wait forever if the body were not closed
		assert.ErrorIs(t, err, io.ErrClosedPipe, way)
	}
}

// A client learns from the hooks whether its request was sent. Direct shows a closed
// connection.
func TestHooks(t *testing.T) {
	fake, c := newFake(t)
	for way, wire := range transports(t, fake) {
		var ran []string
		var conn net.Conn
		wrote := make(chan bool, 1) // a Transport runs this hook on another goroutine, which may be late
		req := c.request("GET", "/v1/status", noBody)
		resp, err := wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GetConn: func(hostPort string) { ran = append(ran, hostPort) },
			GotConn: func(info httptrace.GotConnInfo) {
				ran = append(ran, info.Conn.LocalAddr().(*net.TCPAddr).IP.String(), info.Conn.RemoteAddr().String())
				conn = info.Conn
			},
			WroteHeaders: func() { wrote <- true },
		})))
		require.NoError(t, err, way)
		read(t, resp).wantOK(t)
		_ = conn.Close()
		_, err = conn.Write(nil)
		assert.ErrorIs(t, err, net.ErrClosed, way)
		assert.True(t, <-wrote, way)
		assert.Equal(t, []string{req.URL.Host + ":443", "192.0.2.1", "fake:443"}, ran, way)
	}
}

// A closed connection fails as over TCP, and an empty read or write returns at once.
func TestClosedConnection(t *testing.T) {
	fake, _ := newFake(t)
	dial := fake.HTTPClient(t).Transport.(*http.Transport).DialTLSContext
	conn, err := dial(t.Context(), "tcp", strings.TrimPrefix(fakeURL, "https://")+":443")
	require.NoError(t, err)
	for _, empty := range []func([]byte) (int, error){conn.Read, conn.Write} {
		_, err = empty(nil)
		require.NoError(t, err)
	}
	_, err = io.WriteString(conn, "GET /v1/status HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(conn)
	require.NoError(t, err)
	_, err = conn.Write([]byte("x"))
	assert.ErrorIs(t, err, syscall.EPIPE)
	assert.ErrorContains(t, err, "write tcp 192.0.2.1:", "a *net.OpError")
	assert.NoError(t, conn.Close())
	_, err = conn.Read(nil)
	assert.ErrorIs(t, err, net.ErrClosed)
	assert.ErrorIs(t, conn.Close(), net.ErrClosed)
}

// An in-memory client refuses every other host, and ignores the proxies of the environment.
func TestClientsReachNothingElse(t *testing.T) {
	fake, _ := newFake(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	for name, wire := range transports(t, fake) {
		for url, port := range map[string]string{"http://example.com": ":80", "https://example.com": ":443", strings.Replace(fakeURL, "https", "http", 1): ":80"} {
			_, err := (&http.Client{Transport: wire}).Get(url + "/v1/status") //nolint:bodyclose // there is none
			assert.ErrorContains(t, err, "reaches only the fake at "+fakeURL, name)
			assert.ErrorContains(t, err, url+port, name)
		}
	}
}

// One fake, made outside, serves HTTPClient and Direct in four bubbles and outside at once.
// Each bubble has its own time, and waits for its own calls.
func TestEveryWayInManyBubbles(t *testing.T) {
	fake := fakeserver.New(t, fakeserver.WithLimit("key_minute", 60))
	t.Run("group", func(t *testing.T) {
		for _, ip := range []fakeserver.FromIP{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"} {
			key := fake.IssueKey(fakeserver.KeyOptions{})
			t.Run(string(ip), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ways := transports(t, fake, ip)
					spendTogether(t, key, ways)
					var again sync.WaitGroup
					again.Go(func() { time.Sleep(time.Minute); spendTogether(t, key, ways) })
					_, err := fake.AwaitCalls(t.Context(), 2*(60+2), fakeserver.ByKey(key))
					assert.NoError(t, err)
					again.Wait() // a call is recorded before it has its answer
				})
			})
		}
		t.Run("outside", func(t *testing.T) {
			t.Parallel()
			spendTogether(t, fake.Key(), transports(t, fake))
			calls, err := fake.AwaitCalls(t.Context(), (4*2+1)*(60+2))
			assert.NoError(t, err, "calls of bubbles wake the outside")
			assert.Len(t, calls, fake.CallCount())
		})
	})
}

// spendTogether spends a limit of 60 over both transports at once: exactly 60 calls pass, and
// then a call over each transport is refused.
func spendTogether(t *testing.T, key string, ways map[string]http.RoundTripper) {
	t.Helper()
	var wait sync.WaitGroup
	for _, wire := range ways {
		wait.Go(func() { caller{t, wire, key}.times(60/len(ways), "GET", anAgent, noBody) })
	}
	wait.Wait()
	for _, wire := range ways {
		caller{t, wire, key}.call("GET", anAgent, noBody).wantLimited(t, "key_minute", "60")
	}
}

// The cleanup of a client closes its connections, and waits until its calls have ended.
func TestClientEndsWithItsTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, watch := fakeserver.New(t), new(spy)
		done := false
		fake.Inject(fakeserver.Change("wait", func() { time.Sleep(time.Hour); done = true }))
		c := caller{t, fake.HTTPClient(watch).Transport, fake.Key()}
		ended := make(chan string)
		go func() { ended <- seen(c.wire, c.request("POST", "/v1/agents", emptyBody)) }()
		synctest.Wait()
		watch.finish()
		assert.NotContains(t, <-ended, "200")
		assert.True(t, done, "the cleanup waits")
		_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// Close may be called outside the bubble of a client: it uses no channel of the bubble.
func TestCloseOutsideTheBubbleOfAClient(t *testing.T) {
	fake := fakeserver.New(t)
	next, closed := make(chan bool), make(chan bool)
	go func() {
		<-next
		_ = fake.Close()
		close(closed)
	}()
	synctest.Test(t, func(t *testing.T) {
		c := caller{t, fake.HTTPClient(t).Transport, fake.Key()}
		c.call("GET", "/v1/status", noBody).wantOK(t)
		close(next)
		<-closed
		_, err := c.wire.RoundTrip(c.request("GET", "/v1/status", noBody)) //nolint:bodyclose // there is none
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// After Close every in-memory client is refused, on open connections too. A second Close
// returns nil, and concurrent ones do not race.
func TestCloseRefusesAndIsIdempotent(t *testing.T) {
	fake, err := fakeserver.Open()
	require.NoError(t, err)
	client := fake.HTTPClient(nil)
	resp, err := client.Get(fake.BaseURL() + "/v1/status")
	require.NoError(t, err)
	read(t, resp)
	caller{t, fake.Direct(), ""}.call("GET", "/favicon.ico", noBody).wantError(t, 404, "not_found") // a fake of Open does not report unknown paths
	assert.NoError(t, fake.Close())
	assert.NoError(t, fake.Close())
	for _, refused := range []caller{{t, client.Transport, ""}, {t, fake.Direct(), ""}} {
		looked, got := false, false
		trace := &httptrace.ClientTrace{GetConn: func(string) { looked = true }, GotConn: func(httptrace.GotConnInfo) { got = true }}
		req := refused.request("POST", "/v1/agents", emptyBody)
		req.GetBody = nil                                                                               // so that net/http cannot send it again
		_, err = refused.wire.RoundTrip(req.WithContext(httptrace.WithClientTrace(t.Context(), trace))) //nolint:bodyclose // there is none
		assert.EqualError(t, err, "dial tcp fake:443: the fake is closed: connection refused", "%T", refused.wire)
		assert.True(t, looked && !got, "a client learns that nothing was sent")
	}
	fake, _ = newFake(t)
	concurrently(8, func() { fake.HTTPClient(nil); assert.NoError(t, fake.Close()) })
}

// Close returns the newest 100 errors. They name scripts by their texts and lines. A text that
// looks like a key is not shown.
func TestCloseReturnsTheNewest(t *testing.T) {
	fake, err := fakeserver.Open(fakeserver.WithMessageTexts())
	require.NoError(t, err)
	_, _, line, _ := runtime.Caller(0)
	for n := range 150 {
		fake.OnMessage(fakeserver.ByText(fmt.Sprint("text ", n))).Required()
	}
	fake.OnMessage(fakeserver.ByTextContaining("sk-1")).Required()
	problems := strings.Split(fake.Close().Error(), "\n")
	require.Len(t, problems, 100)
	const unused = " is required and was never used; calls that it matched: 0; no call came near"
	assert.Equal(t, fmt.Sprintf(`fakeserver: OnMessage(ByText("text 51")) at transport_test.go:%d`, line+2)+unused, problems[0])
	assert.Equal(t, fmt.Sprintf(`fakeserver: OnMessage(ByTextContaining(4 characters)) at transport_test.go:%d`, line+4)+unused, problems[99])
}

// A callback may close the fake: Close does not wait for the call that runs it. It ends the
// connections, as the end of the bubble shows.
func TestCloseInACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t)
		c.wire = fake.HTTPClient(nil).Transport
		c.call("GET", "/v1/status", noBody).wantOK(t)
		fake.OnCall(func(fakeserver.Call) { assert.NoError(t, fake.Close()) })
		_ = seen(c.wire, c.request("GET", "/v1/status", noBody))
	})
}

// After a Reset the fake is like a new one, except for its clock.
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
	assert.Contains(t, watch.errors[0], "is required and was never used")
	assert.Equal(t, want, used())
	c.setBYOK() // the store is available again
}

// A call that is under way during a Reset ends in the old state, and changes nothing in the new
// one.
func TestResetInsideACall(t *testing.T) {
	fake, c := newFake(t, frozen())
	agent := c.agent(emptyBody)
	wantNothing := func() {
		t.Helper()
		assert.Empty(t, fake.Calls())
		assert.Empty(t, fake.Agents())
		assert.Contains(t, spent(fake.Limits(c.key)), "key_minute 0/60")
	}
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply { // after the effect
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

// spy is a TB that records failures.
type spy struct {
	mu       sync.Mutex
	errors   []string
	logs     []string
	cleanups []func()
	skipped  bool
}

func (s *spy) Helper() {}

func (s *spy) Skipped() bool { return s.skipped }

func (s *spy) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *spy) Failed() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.errors) > 0 }

func (s *spy) Errorf(format string, args ...any) { s.add(&s.errors, fmt.Sprintf(format, args...)) }

func (s *spy) Logf(format string, args ...any) { s.add(&s.logs, fmt.Sprintf(format, args...)) }

func (s *spy) add(list *[]string, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, line)
}

func (s *spy) finish() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// newSpied returns a fake whose failures go to a spy.
func newSpied(t testing.TB, opts ...fakeserver.Option) (*spy, *fakeserver.Server, caller) {
	t.Helper()
	watch := new(spy)
	fake := fakeserver.New(watch, opts...)
	return watch, fake, caller{t, fake.Direct(), fake.Key()}
}

// Each sleeper wakes at its own time, whichever began first, and sleepers with the same
// wake time move the clock once. A poller sleeps again and again meanwhile.
func TestSleepersWakeAtTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, frozen())
		c.wire = fake.HTTPClient(t).Transport
		begun, real := fake.Now(), time.Now()
		sleep := func(d time.Duration, want time.Duration) {
			assert.NoError(t, fake.Sleep(t.Context(), d))
			assert.Equal(t, want, fake.Now().Sub(begun))
		}
		for _, minutes := range []time.Duration{30, 10, 50, 20, 50, 40, 10} {
			go sleep(minutes*time.Minute, minutes*time.Minute)
			synctest.Wait() // it sleeps
		}
		for i := range 6 {
			c.call("GET", "/v1/status", noBody).wantOK(t)
			sleep(11*time.Minute, time.Duration(i+1)*11*time.Minute)
		}
		assert.Less(t, time.Since(real), 100*time.Millisecond)
	})
}

// Sleep ends with its context, and a negative Sleep at once; neither moves the clock.
func TestSleepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, _ := newFake(t, frozen())
		begun := fake.Now()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Nanosecond, cancel)
		for _, d := range []time.Duration{time.Minute, time.Minute, 0} {
			assert.ErrorIs(t, fake.Sleep(ctx, d), context.Canceled, d)
		}
		assert.NoError(t, fake.Sleep(t.Context(), -time.Minute))
		assert.Equal(t, begun, fake.Now())
		assert.NoError(t, fake.Sleep(t.Context(), time.Second), "nobody is in the way")
	})
	// If the clock cannot move that far, Sleep returns an error, and does not sleep forever.
	fake, _ := newFake(t)
	assert.NoError(t, fake.Sleep(t.Context(), math.MaxInt64))
	assert.EqualError(t, fake.Sleep(t.Context(), time.Minute), "fakeserver: Sleep: the clock cannot move by another 1m0s")
	assert.Less(t, 200*365*24*time.Hour, time.Until(fake.Now()))
}

// A sleeper waits until no calls come, but endless calls delay it by half a second at most,
// from the time at which it is the next to wake.
func TestSleepAmongEndlessCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, c := newFake(t, unlimited()...)
		// Arrivals and answers both count: from one to the next it takes less than 2 ms, from
		// arrival to arrival more.
		fake.Inject(fakeserver.Latency(1250 * time.Microsecond))
		ended, begun := make(chan error), time.Now()
		go func() { ended <- fake.Sleep(t.Context(), time.Hour) }()
		go func() { ended <- fake.Sleep(t.Context(), 2*time.Hour) }()
		for want := 0.5; want < 1.5; {
			select {
			case err := <-ended:
				assert.NoError(t, err)
				assert.InDelta(t, want, time.Since(begun).Seconds(), 0.1)
				want += 0.5
			default:
				time.Sleep(1250 * time.Microsecond)
				c.call("GET", "/v1/status", noBody).wantOK(t)
			}
		}
	})
}

// The first ten calls to no endpoint fail the test, each with a short line that shows
// neither the key nor the query.
func TestUnknownRoutesFailTheTest(t *testing.T) {
	watch, fake, c := newSpied(t)
	c.call("GET", "/v1/agents", noBody).wantError(t, 405, "method_not_allowed")
	assert.Equal(t, []string{"fakeserver: no endpoint is at GET /v1/agents; the endpoints are " + spec.EndpointNames() + "; WithUnknownRoutes allows such calls"}, watch.errors)
	for range 100 {
		req := c.request("GET", "/", noBody)
		req.Method = "GET\n\x1b[2J" // which net/http would refuse to carry
		req.URL = &url.URL{Scheme: "http", Host: req.URL.Host, Path: "/\n\x1b[31m/" + c.key + strings.Repeat("/x", 5000), RawQuery: "api_key=canary"}
		fake.ServeHTTP(httptest.NewRecorder(), req)
	}
	require.Len(t, watch.errors, 10)
	assert.Regexp(t, `\?\[redacted\]$`, fake.Calls()[1].URL)
	for _, line := range watch.errors[1:] {
		assert.Less(t, len(line), 600)
		assert.NotContains(t, line, c.key)
		assert.NotContains(t, line, "canary")
		assert.NotRegexp(t, `[\x00-\x1f]`, line)
		assert.Contains(t, line, "/%0A%1B%5B31m/[redacted]/x/x")
	}
}

// unlimited lifts all limits.
func unlimited() []fakeserver.Option {
	var opts []fakeserver.Option
	for _, limit := range spec.Limits {
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit.Key), 1<<30))
	}
	return opts
}

const (
	one  = "body: must be one JSON document and nothing else, at most 10,000 levels deep"
	half = "must be valid Unicode, without lone surrogates"

	storeIsDown = "BYOK is not available, so no provider key can be used or stored"
)

// The reason names the member and its rule. Package contract has the statuses.
func TestReasonsOfBodies(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	fake.SetBYOKAvailable(false)
	c.agent(emptyBody)
	for call, rows := range map[string][]struct{ body, reason string }{
		"POST /v1/agents/agent_000001/messages": {
			{`{"text":"\ud800"}`, "text: " + half},
			{"", one},
			{"{\"text\":\"\xed\xa0\x80\"}", "body: must be valid UTF-8"},
			{`{"user_ref":"x"}`, "text: is required"},
			{`{"text":null}`, "text: must be a string"},
			{`{"text":"hello","a1b2c3d":1}`, `body: member "a1b2c3d" is not allowed`},
			{`{"text":"hello","a1b2c3d4":1}`, "body: member … is not allowed"}, // long enough to be a key
			{`{"text":"hello","` + strings.Repeat("é", 65) + `":1}`, `body: member "` + strings.Repeat("é", 30) + `..." is not allowed`},
			{`{"text":"hello","t\u0065xt":"hello"}`, "text: appears twice"},
		},
		"POST /v1/agents": {
			{`{"metadata":{"a":"\ud800"}}`, "metadata: " + half},
			{`{"llm":{"x":1}}`, `llm: member "x" is not allowed`},
			{`{"metadata":[]}`, "metadata: must be an object"},
			{`{"metadata":{"a":"` + strings.Repeat("x", 4096) + `"}}`, "metadata: at most 4096 characters of compact JSON"},
			{`{"metadata":{"x":[[{"a":1,"\u0061":2}]]}}`, `metadata: member "a" appears twice`},
			{`{"llm":{"mode":"byok"}}`, "llm.mode: byok needs a BYOK configuration, and none is set for this API key"},
			{`{"llm":{"api_key":"sk"}}`, "llm.provider: is required when llm.api_key is given"},
			{`{"llm":{"provider":"openai","api_key":"sk"}}`, "llm.api_key: " + storeIsDown},
		},
		"POST /v1/warmup": {{`{"mode":"byok"}`, "mode: " + storeIsDown}, {strings.Repeat(" ", 1<<20+1), "body: at most 1048576 bytes"}},
		"PUT /v1/byok":    {{`{"provider":"openai","api_key":"sk"}`, "api_key: " + storeIsDown}, {`{"provider":"openai","sk-live":1}`, "body: member … is not allowed"}},
	} {
		method, path, _ := strings.Cut(call, " ")
		for _, row := range rows {
			r := c.call(method, path, row.body)
			assert.Equal(t, row.reason, r.text("reason"), clipped(row.body))
			assert.Equal(t, row.reason == "", r.status == 200, clipped(row.body))
		}
	}
	coded := c.call("POST", "/v1/warmup", emptyBody, "Content-Encoding: gzip")
	assert.Equal(t, "Content-Encoding: only identity is accepted", coded.text("reason"))
}

// The service also answers requests that no client of net/http sends, and records the
// path as it was sent.
func TestOddRequests(t *testing.T) {
	own := []string{"Bearer amk_fake_000001"}
	for _, row := range []struct {
		method, target string
		authorization  []string
		body           io.Reader
		want           int
	}{
		{"GET", "/v1/agents/%61gent_000001", own, nil, 200},
		{"GET", "/v1/agents/%7Ba%7D", own, nil, 404},
		{"get", "/v1/status", own, nil, 405},
		{"GET", "http://evil.example/v1/status", own, nil, 200},
		{"GET", "/v1/status", append(own, own...), nil, 401},
		{"GET", "/v1/status", []string{"BEARER   amk_fake_000001"}, nil, 200},
		{"POST", "/v1/warmup", own, io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(io.ErrUnexpectedEOF)), 400},
	} {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes())
		c.agent(emptyBody)
		r, w := httptest.NewRequest(row.method, row.target, row.body), httptest.NewRecorder()
		r.Header["Authorization"] = row.authorization
		fake.ServeHTTP(w, r)
		assert.Equal(t, row.want, w.Code, row.target)
		wantDocumented(t, w.Code, w.Body.String())
		assert.Equal(t, strings.TrimPrefix(row.target, "http://evil.example"), fake.Calls()[1].Path, row.target)
	}
}

// Request.RemoteAddr is an address with a port, unless a middleware has set it.
func TestAddresses(t *testing.T) {
	fake, _ := newFake(t)
	for from, want := range map[string]string{
		"203.0.113.7:80": "203.0.113.7", "203.0.113.7": "203.0.113.7", "[::ffff:203.0.113.7%a]:80": "203.0.113.7", "2001:db8::1": "2001:db8::1", "@": "",
	} {
		fake.Reset()
		fake.Inject(fakeserver.ResetReply(1000)) // lets the handler return, as the answer is whole: a middleware may buffer it
		r := httptest.NewRequest("GET", "/v1/status", nil)
		r.RemoteAddr = from
		fake.ServeHTTP(httptest.NewRecorder(), r)
		assert.Equal(t, want, fake.Calls()[0].Address, from)
	}
}

// wantDocumented checks that an answer has one of the statuses of interface 7
// and the body that goes with it.
func wantDocumented(t *testing.T, status int, body string) {
	t.Helper()
	require.Contains(t, []int{200, 400, 401, 402, 403, 404, 405, 409, 429, 503}, status)
	var parsed map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &parsed), clipped(body))
	require.NotEmpty(t, parsed["trace_id"])
	require.Equal(t, status != 200, parsed["error"] != nil, clipped(body))
}

// FuzzCall sends any headers and any body to any path. KEY is replaced by the default key.
func FuzzCall(f *testing.F) {
	f.Add("Bearer KEY", "application/json", "identity", "/v1/warmup", `{"mode":"byok"}`)
	f.Add("Bearer KEY", "text/plain; KEY=\"KEY", "gzip", "/v1/agents/%41MK%5Ffake/KEY", "{}")
	f.Add("Basic KEY", "application/json;;", "br, gzip", "//v1/%2e%2e/status", "null")
	f.Add("Bearer KEY, Bearer KEY", "application/json", "\x00", "/v1/agents/agent_000001/channels/sms", `{"mode":"sandbox"}`)
	f.Fuzz(func(t *testing.T, auth, contentType, encoding, path, body string) {
		fake, c := newFake(t, fakeserver.WithUnknownRoutes(), fakeserver.WithMessageTexts())
		c.agent(emptyBody)
		fill := func(s string) string { return strings.ReplaceAll(s, "KEY", c.key) }
		u, err := url.Parse(fake.BaseURL() + fill(path))
		if err != nil || u.Scheme+"://"+u.Host != fake.BaseURL() {
			return
		}
		req := c.request("POST", "/", body)
		req.URL = u
		req.Header = http.Header{"Authorization": {fill(auth)}, "Content-Type": {fill(contentType)}, "Content-Encoding": {fill(encoding)}}
		resp, err := c.wire.RoundTrip(req)
		if err != nil { // net/http does not send it
			require.Contains(t, err.Error(), "invalid header field value")
			require.NotContains(t, err.Error(), c.key)
			require.Equal(t, 1, fake.CallCount())
			return
		}
		if resp.StatusCode == 400 && fake.CallCount() == 1 { // net/http cannot read it
			return
		}
		r := read(t, resp)
		wantDocumented(t, r.status, r.raw)
		require.True(t, r.status == 200 || len(r.raw) < 2000, "a reason is bounded: %d bytes for %d", len(r.raw), r.status)
		require.Equal(t, 2, fake.CallCount())
		call := fake.Calls()[1]
		require.LessOrEqual(t, len(call.Body), 64<<10)
		require.True(t, call.Status != 200 || call.Body == "" || len(call.Body) == 64<<10 || json.Valid([]byte(call.Body)), clipped(call.Body))
		scheme, token, _ := strings.Cut(strings.Trim(fill(auth), " \t"), " ")
		if strings.EqualFold(scheme, "Bearer") && strings.Trim(token, " ") == c.key {
			record, err := json.Marshal(call)
			require.NoError(t, err)
			require.NotContains(t, string(record)+r.raw, c.key)
			unescaped, _ := url.PathUnescape(call.Path) // "" where nothing can unescape it
			require.NotContains(t, unescaped, c.key)
		}
	})
}
