package agentmessaging_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/roundtrip"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// mischief makes one part of a client (a transport, an observer, a limiter, a clock) misbehave
// once.
type mischief struct {
	t       *testing.T
	way     string
	armed   atomic.Bool
	client  *agentmessaging.Client
	service *stub // refuses the first request
	limiter *limiterStub
}

// misbehave misbehaves at its first call, if it can. It returns the way in which to
// misbehave, for the ways that only the part itself can do, and "" at later calls. While it
// blocks, it checks that other callers get through.
func (m *mischief) misbehave(ctx context.Context) (way string) {
	if !m.armed.CompareAndSwap(true, false) {
		return ""
	}
	others := func() {
		done := make(chan error)
		go func() { done <- post(context.WithoutCancel(ctx), m.client) }()
		require.NoError(m.t, <-done, "another caller")
	}
	switch m.way {
	case "panics":
		panic("mischief")
	case "blocks":
		others()
		<-ctx.Done()
	case "re-enters":
		require.NoError(m.t, post(context.WithoutCancel(ctx), m.client))
	case "is late":
		others()
		time.Sleep(20 * time.Second)
	}
	return m.way
}

// The parts that misbehave.

func badTransport(m *mischief) http.RoundTripper {
	return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		way := m.misbehave(req.Context())
		resp, err := m.service.RoundTrip(req)
		switch way {
		case "returns nil":
			resp.Body.Close()
			return nil, nil
		case "returns both":
			return resp, io.ErrUnexpectedEOF
		case "lies": // it says that there is no body
			resp.Body.Close()
			resp.Body = nil
		}
		return resp, err
	})
}

// badBody misbehaves in the body of an answer with the status.
func badBody(status int) func(m *mischief) http.RoundTripper {
	return func(m *mischief) http.RoundTripper {
		return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			resp, err := m.service.RoundTrip(req)
			if err == nil && resp.StatusCode == status {
				body := resp.Body.(*stubBody)
				body.Reader = &badReader{m, req.Context(), body.Reader}
			}
			return resp, err
		})
	}
}

type badReader struct {
	m   *mischief
	ctx context.Context
	io.Reader
}

func (r *badReader) Read(p []byte) (int, error) {
	switch r.m.misbehave(r.ctx) {
	case "blocks":
		return 0, r.ctx.Err()
	case "returns nil":
		return 0, nil
	case "returns both":
		n, _ := r.Reader.Read(p)
		return n, io.EOF
	case "lies":
		r.Reader = strings.NewReader("{")
	}
	return r.Reader.Read(p)
}

// badObserver misbehaves at events of one type.
func badObserver(event string) func(m *mischief) agentmessaging.Option {
	return func(m *mischief) agentmessaging.Option {
		return at(event, func(ctx context.Context) context.Context {
			if m.misbehave(ctx) != "lies" {
				return nil
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return ended
		})
	}
}

// badLimiter misbehaves when it is asked, or when a permit is given back.
type badLimiter struct {
	*mischief
	late bool
}

func (l badLimiter) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	way := ""
	if !l.late {
		way = l.misbehave(ctx)
	}
	switch way {
	case "returns nil":
		return nil, nil
	case "lies":
		return nil, &agentmessaging.Error{StatusCode: 429, RetryAfter: -time.Hour, Method: "GET"}
	}
	if _, err := l.limiter.Acquire(ctx, attempt); err != nil {
		return nil, err
	}
	if way == "returns both" {
		return l, io.ErrUnexpectedEOF
	}
	return l, nil
}

func (l badLimiter) Done(outcome agentmessaging.AttemptOutcome) {
	l.limiter.Done(outcome)
	if l.late {
		l.misbehave(l.t.Context())
	}
}

type badClock struct {
	*mischief
	quota.RealClock
}

func (c badClock) Now() time.Time {
	if c.way == "lies" { // the clock goes back
		return time.Unix(0, 0).Add(-time.Since(time.Unix(0, 0)))
	}
	return time.Now()
}

func (c badClock) Sleep(ctx context.Context, d time.Duration) error {
	way := c.misbehave(ctx)
	if way == "returns nil" { // at once
		return nil
	}
	err := c.RealClock.Sleep(ctx, d)
	if way == "returns both" {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// backward is a clock that goes backwards.
var backward = agentmessaging.WithClock(badClock{mischief: &mischief{way: "lies"}})

// brokenClock is a clock that does not wait.
type brokenClock struct{ quota.RealClock }

func (brokenClock) Sleep(context.Context, time.Duration) error { return io.ErrUnexpectedEOF }

// lateClock is a clock whose Sleep returns a minute late, on a full second, as if the
// program had been frozen.
type lateClock struct{ quota.RealClock }

func (c lateClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.RealClock.Sleep(ctx, (d + time.Minute).Round(time.Second))
}

func (m *mischief) beforeSend(ctx context.Context, _ int) error {
	if m.misbehave(ctx) == "returns both" {
		return io.ErrUnexpectedEOF
	}
	return ctx.Err()
}

// The outcomes of a call in which a part misbehaves. cannot: the part cannot misbehave in
// this way.
const refused429, panics, cannot = "error 429", "panic", ""

type ways map[string]string // from what the part does to the outcome of the call

var usual = ways{"panics": panics, "blocks": noAnswer, "returns nil": success, "re-enters": success, "is late": success, "lies": success}

var badParts = []struct {
	part string
	bad  func(*mischief) agentmessaging.Option
	but  ways // where it differs from usual
}{
	{"transport", transportOf(badTransport), ways{"blocks": noAnswer, "returns nil": unknown, "returns both": unknown}},
	{"body of a 429", transportOf(badBody(429)), ways{"blocks": success, "returns both": success}},
	{"body of a success", transportOf(badBody(200)), ways{"blocks": unknown, "returns both": success, "lies": unknown}},
	{"observer of CallStart", badObserver("CallStart"), ways{"lies": noAnswer}},
	{"observer of AttemptStart", badObserver("AttemptStart"), ways{"lies": noAnswer}},
	{"observer of RequestStart", badObserver("RequestStart"), nil},
	{"observer of AttemptEnd", badObserver("AttemptEnd"), ways{"blocks": refused429}},
	{"observer of Retry", badObserver("Retry"), ways{"blocks": refused429}},
	{"observer of LimiterWait", badObserver("LimiterWait"), nil},
	{"observer of CoolDown", badObserver("CoolDown"), ways{"blocks": refused429}},
	{"observer of CallEnd", badObserver("CallEnd"), ways{"blocks": success}},
	{"slog handler", func(m *mischief) agentmessaging.Option {
		handle := func(ctx context.Context, _ slog.Record) { m.misbehave(ctx) }
		return agentmessaging.WithLogger(slog.New(contextHandler{slog.DiscardHandler, handle}))
	}, ways{"returns nil": cannot, "lies": cannot}},
	{"limiter", func(m *mischief) agentmessaging.Option { return agentmessaging.WithLimiter(badLimiter{m, false}) },
		ways{"blocks": refused429, "returns nil": noAnswer, "returns both": noAnswer, "lies": refused429}},
	{"permit", func(m *mischief) agentmessaging.Option { return agentmessaging.WithLimiter(badLimiter{m, true}) },
		ways{"blocks": cannot, "returns nil": cannot}},
	{"clock", func(m *mischief) agentmessaging.Option { return agentmessaging.WithClock(badClock{mischief: m}) },
		ways{"panics": noAnswer, "blocks": success, "returns both": noAnswer}},
	{"before send", nil, ways{"returns both": noAnswer}},
}

func transportOf(f func(*mischief) http.RoundTripper) func(*mischief) agentmessaging.Option {
	return func(m *mischief) agentmessaging.Option { return through(f(m)) }
}

// TestPartsThatMisbehave checks that, whatever a user's part does, the call ends as
// documented and within its deadline, a panic reaches the caller, no permit, open body or
// goroutine is left, and other callers get through. A panic of a clock is an error: other
// calls wait by it too.
func TestPartsThatMisbehave(t *testing.T) {
	for _, tt := range badParts {
		wants := maps.Clone(usual)
		maps.Copy(wants, tt.but)
		for way, want := range wants {
			if want != cannot {
				t.Run(tt.part+" "+way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { callWithBadPart(t, tt.part, way, tt.bad, want) })
				})
			}
		}
	}
}

// callWithBadPart makes a call in which the part misbehaves, and one after it.
func callWithBadPart(t *testing.T, part, way string, bad func(*mischief) agentmessaging.Option, want string) {
	m := &mischief{t: t, way: way, service: answering(tooMany("1", "k"), okAnswer), limiter: &limiterStub{wait: time.Millisecond}}
	observer := &reporter{t: t, reports: new(strings.Builder)}
	opts := []agentmessaging.Option{agentmessaging.WithLimiter(m.limiter), agentmessaging.WithObserver(observer)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if bad != nil {
		opts = append(opts, bad(m))
	} else {
		ctx = agentmessaging.WithBeforeSend(ctx, m.beforeSend)
	}
	m.client = newClient(t, m.service, opts...)
	m.armed.Store(true)
	var info agentmessaging.CallInfo
	var err error
	call := func() { err = post(agentmessaging.WithCallInfo(ctx, &info), m.client) }
	if want == panics {
		assert.PanicsWithValue(t, "mischief", call)
		sent := strings.HasPrefix(part, "transport") || strings.HasPrefix(part, "body")
		last := slices.Concat([]string{"none"}, observer.verdicts)[len(observer.verdicts)]
		assert.Equal(t, sent, last == string(agentmessaging.VerdictUnknown), "the last verdict is %q", last)
		assert.NotEmpty(t, last)
	} else {
		call()
		assert.Equal(t, want, outcome(err), "%v", err)
		holdsLaws(t, err, testKey)
	}
	assert.GreaterOrEqual(t, info.Waited, time.Duration(0))
	assert.False(t, m.armed.Load(), "it never did")
	time.Sleep(time.Minute) // lets other callers, and sleeps that were given up, end
	assert.Zero(t, m.limiter.out(), "permits are out")
	assert.Zero(t, m.service.open.Load(), "bodies are open")
	events := observer.reports.String()
	assert.Equal(t, strings.Count(events, "CallStart"), strings.Count(events, "call: CallEnd"), "each call that begins ends, with the context of its begin")
	assert.NoError(t, post(t.Context(), m.client), "the next call")
}

// The engine learns of a 429 before the user's permit, whose Done may panic: the next call
// waits.
func TestPermitThatPanicsAtA429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &mischief{t: t, way: "panics", limiter: new(limiterStub)}
		client := newClient(t, answering(tooMany("10", ""), okAnswer), agentmessaging.WithLimiter(badLimiter{m, true}))
		m.armed.Store(true)
		assert.Panics(t, func() { _ = get(t.Context(), client) })
		began := time.Now()
		assert.NoError(t, get(t.Context(), client))
		assert.GreaterOrEqual(t, time.Since(began), 10*time.Second)
	})
}

// limiterStub is a limiter that waits, and records the attempts and their outcomes. If it
// has a refusal, it refuses every attempt.
type limiterStub struct {
	wait    time.Duration
	refusal error
	mu      sync.Mutex
	asked   []agentmessaging.LimitedAttempt
	done    []agentmessaging.AttemptOutcome
}

func (l *limiterStub) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if err := (quota.RealClock{}).Sleep(ctx, l.wait); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, attempt)
	if l.refusal != nil {
		return nil, l.refusal
	}
	return l, nil
}

func (l *limiterStub) Done(outcome agentmessaging.AttemptOutcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, outcome)
}

// out returns how many permits were not returned.
func (l *limiterStub) out() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked) - len(l.done)
}

// The limiter also learns whether the call sets a provider key, as SetBYOK does, and
// CreateAgent with a key.
func TestLimiterIsAskedForEveryAttempt(t *testing.T) {
	limiter := new(limiterStub)
	service := answering(notDialed, tooMany("3", "key_minute"), okAnswer)
	synctest.Test(t, func(t *testing.T) {
		storing := create{LLM: llm{Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary"}}
		require.NoError(t, sending(storing)(t.Context(), newClient(t, service, agentmessaging.WithLimiter(limiter))))
	})
	attempt := agentmessaging.LimitedAttempt{
		Method: "POST", Path: "/v1/agents", Number: 1, SetsBYOK: true, MaxWait: 90 * time.Second, Clock: quota.RealClock{},
	}
	second, third := attempt, attempt
	second.Number, third.Number = 2, 3
	assert.Equal(t, []agentmessaging.LimitedAttempt{attempt, second, third}, limiter.asked)
	assert.Equal(t, []agentmessaging.AttemptOutcome{
		{},
		{StatusCode: 429, Sent: true, LimitKey: "key_minute", RetryAfter: 3 * time.Second},
		{StatusCode: 200, Sent: true},
	}, limiter.done)
	for _, call := range endpoints {
		require.NoError(t, call.call(t.Context(), newClient(t, service, agentmessaging.WithLimiter(limiter))), call.name)
		assert.Equal(t, call.name == "SetBYOK", limiter.asked[len(limiter.asked)-1].SetsBYOK, call.name)
	}
}

// TestSlowLimiterCostsNoPlace checks that the call that was refused first goes first when the
// limit opens, even if a limiter delays it.
func TestSlowLimiterCostsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t, fakeserver.WithKey(testKey), fakeserver.WithLimit(fakeserver.LimitKeyMinute, 2))
		fake.AddAgent(testKey, fakeserver.Agent{ID: "agent_1"})
		client, begin := clientAt(fake.BaseURL(), through(fake.Direct())), time.Now()
		_, _ = get(t.Context(), client), get(t.Context(), client) // all that this minute allows
		for _, limiter := range []*limiterStub{{wait: 2 * time.Millisecond}, {}, {}, {}, {}, {}} {
			go func() {
				assert.NoError(t, by(agentmessaging.WithLimiter(limiter), get)(t.Context(), client), "a limiter that takes %s", limiter.wait)
				assert.True(t, limiter.wait == 0 || time.Since(begin) < 70*time.Second, "the first call went after %s", time.Since(begin))
			}()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Hour)
	})
}

// If the limiter makes the call wait, the client asks the cool-down again. If the cool-down
// then refuses, the limiter's permit is given back.
func TestLimiterIsAskedAfterTheCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := &limiterStub{wait: time.Minute}
		service := answering(tooMany("30", "k"), okAnswer, tooMany("3540", "k"))
		client := newClient(t, service, jitter(0), once, agentmessaging.WithLimiter(limiter))
		refusedAfterAMinute := func() { assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited) }
		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		var info agentmessaging.CallInfo
		begin := time.Now()
		require.NoError(t, get(agentmessaging.WithCallInfo(t.Context(), &info), client))
		assert.Equal(t, 80*time.Second, time.Since(begin), "to the end of the cool-down, not only of the limiter's minute")
		assert.Equal(t, 80*time.Second, info.Waited, "Waited has both waits")

		go refusedAfterAMinute()
		time.Sleep(10 * time.Second)
		for range 2 { // the second one without asking the limiter
			assert.ErrorIs(t, get(t.Context(), client), agentmessaging.ErrRateLimited)
		}
		synctest.Wait()
		assert.Equal(t, []agentmessaging.AttemptOutcome{
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 30 * time.Second}, {StatusCode: 200, Sent: true},
			{StatusCode: 429, Sent: true, LimitKey: "k", RetryAfter: 59 * time.Minute}, {},
		}, limiter.done)
	})
}

func TestObserverOfWithGetsOnlyThatClientsCalls(t *testing.T) {
	called := ""
	noting := func(name string) agentmessaging.Option {
		return at("CallStart", func(ctx context.Context) context.Context { called += name; return ctx })
	}
	client := newClient(t, answering(okAnswer), noting("a"), noting("b"), noting("c ")) // with three, append leaves room for a fourth
	other := must(client.With(noting("other ")))
	must(client.With(noting("third "))) // must not overwrite other's observer
	require.NoError(t, post(t.Context(), other))
	require.NoError(t, post(t.Context(), client))
	assert.Equal(t, "abc other abc ", called)
}

// A client with another limiter leaves the Pacer, and gets a new cool-down.
func TestWithAnotherLimiterLeavesThePacer(t *testing.T) {
	p := must(pacer.New([]pacer.Limit{{Max: 1, Window: time.Hour}}))
	paced := newClient(t, answering(okAnswer), agentmessaging.WithLimiter(p))
	require.NoError(t, by(agentmessaging.WithLimiter(new(limiterStub)), get)(t.Context(), paced))
	assert.Zero(t, p.State().Limits[0].Used)
}

// Waits, and a Retry-After that is a date, go by the client's clock too.
func TestEventsGoByTheClientsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := fakeserver.New(t)
		clock.Advance(10 * time.Hour)
		due, reports := clock.Now().Add(30*time.Second).UTC().Format(http.TimeFormat), new(strings.Builder)
		client := newClient(t, answering(tooMany(due, "k"), okAnswer), jitter(0),
			agentmessaging.WithClock(clock), agentmessaging.WithObserver(&reporter{t: t, reports: reports}))
		require.NoError(t, get(t.Context(), client))
		assert.Regexp(t, `(?s) Wait=30.*AttemptEnd .* Elapsed=30.*CallEnd .* Waited=30.* Elapsed=30`, reports.String())
	})
}

// watched is a context that never ends, and counts those derived from it that have not ended.
type watched struct {
	context.Context
	done chan struct{}
	open *int
}

func (w watched) Done() <-chan struct{} { return w.done }

// AfterFunc is what package context calls to end a derived context with this one.
func (w watched) AfterFunc(func()) (stop func() bool) {
	*w.open++
	return func() bool { *w.open--; return true }
}

// An observer may drop the caller's end, and keep the context.
func TestContextOfACallAnAttemptOrARequestEndsWithIt(t *testing.T) {
	for _, start := range []string{"CallStart", "AttemptStart", "RequestStart"} {
		began, left := 0, 0
		var info agentmessaging.CallInfo
		watch := at(start, func(ctx context.Context) context.Context {
			began++
			return watched{context.WithoutCancel(ctx), make(chan struct{}), &left}
		})
		ctx, cancel := context.WithTimeout(agentmessaging.WithCallInfo(t.Context(), &info), time.Minute)
		defer cancel()
		open := at("CallEnd", func(ctx context.Context) context.Context {
			assert.Equal(t, "error 404", outcome(get(ctx, newClient(t, answering(answer{Status: 404})))), "the report can use the context")
			return ctx
		})
		require.NoError(t, post(ctx, newClient(t, answering(okAnswer), watch, open)), start)
		assert.Equal(t, 1, began, start)
		assert.Equal(t, 200, info.StatusCode, "not that of the observer's call")
		assert.Zero(t, left, "%s: derived contexts that have not ended", start)
	}
}

// countdown is a clock and an error. It panics once, at the n-th look at either.
type countdown struct {
	quota.RealClock
	error
	looks int // until then
}

func (c *countdown) look() {
	if c.looks--; c.looks == 0 {
		panic("mischief")
	}
}

func (c *countdown) Now() time.Time {
	c.look()
	return c.RealClock.Now()
}

func (c *countdown) Unwrap() error {
	c.look()
	return nil
}

// TestPanicAtAnyMoment checks that a permit comes back at whatever moment a clock panics, that
// observers get the end of each call and attempt, and that no event shows a transport's error
// before its secrets are taken out, even if the program panics at that moment.
func TestPanicAtAnyMoment(t *testing.T) {
	for moment := range 60 {
		synctest.Test(t, func(t *testing.T) {
			broken, limiter := &countdown{error: errors.New("sent " + testKey), looks: moment}, new(limiterStub)
			observer := &reporter{t: t, reports: new(strings.Builder)} // which looks for the key
			begun := 0                                                 // calls and attempts
			count := func(event string, n int) agentmessaging.Option {
				return at(event, func(context.Context) context.Context { begun += n; return nil })
			}
			client := newClient(t, answering(refused, answer{Err: broken}),
				count("CallStart", 1), count("AttemptStart", 1), count("AttemptEnd", -1), count("CallEnd", -1),
				agentmessaging.WithLimiter(limiter), agentmessaging.WithClock(broken), agentmessaging.WithObserver(observer))
			defer func() {
				_ = recover()
				assert.Zero(t, limiter.out(), "moment %d", moment)
				assert.Zero(t, begun, "moment %d", moment)
			}()
			_ = get(t.Context(), client)
		})
	}
}

// The limiter has let the attempt pass, so it gets its permit back. ExampleWithBeforeSend shows
// when the function is called.
func TestErrorOfBeforeSendEndsTheCall(t *testing.T) {
	limiter, full := &limiterStub{}, errors.New("the journal is full of "+testKey)
	client := newClient(t, answering(okAnswer), agentmessaging.WithLimiter(limiter))
	refuse := agentmessaging.WithBeforeSend(t.Context(), func(ctx context.Context, _ int) error {
		return cmp.Or(post(ctx, newClient(t, answering(okAnswer))), full) // this call does not call the function again
	})
	err := post(refuse, client)
	assert.ErrorIs(t, err, full)
	assert.ErrorContains(t, err, "the journal is full of [redacted] (refused here by the function of WithBeforeSend)")
	assert.Equal(t, []agentmessaging.AttemptOutcome{{}}, limiter.done, "not sent")
	assert.NoError(t, post(agentmessaging.WithBeforeSend(refuse, nil), client), "the last one counts")
}

// A function that declares *Error in place of error returns a nil pointer by mistake. The client
// takes it for no error, also as the cause of a context and inside another error.
func TestNilErrors(t *testing.T) {
	for _, none := range []error{(*agentmessaging.Error)(nil), (*agentmessaging.OutcomeUnknownError)(nil)} {
		allow := agentmessaging.WithBeforeSend(t.Context(), func(context.Context, int) error { return none })
		assert.NoError(t, post(allow, newClient(t, roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			resp, _ := answering(okAnswer).RoundTrip(req)
			return resp, none
		}))))
		ctx, cancel := context.WithCancelCause(t.Context())
		wrapped := fmt.Errorf("wrapped: %w", none)
		refused := post(ctx, newClient(t, answering(), agentmessaging.WithLimiter(&limiterStub{refusal: wrapped})))
		cancel(none)
		for _, err := range []error{none, wrapped, refused, post(ctx, newClient(t, answering()))} {
			assert.NotErrorIs(t, err, agentmessaging.ErrNotFound)
			_, asked := agentmessaging.RetryAfter(err)
			assert.False(t, asked, "%T", err)
		}
	}
}

// contextHandler passes each record and its context to a function.
type contextHandler struct {
	slog.Handler
	see func(context.Context, slog.Record)
}

func (contextHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	h.see(ctx, r)
	return nil
}
