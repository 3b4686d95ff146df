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

// faultyPart is one part of a client (a transport, an observer, a limiter, a clock) with a fault
// that happens once.
type faultyPart struct {
	t       *testing.T
	fault   string
	armed   atomic.Bool
	client  *agentmessaging.Client
	service *stub // refuses the first request
	limiter *limiterStub
}

// applyFault applies the fault at its first call, and does nothing later. It returns the fault
// that it has applied, or that the part itself has to apply, and "" at later calls. While it
// blocks, it checks that other callers get through.
func (p *faultyPart) applyFault(ctx context.Context) (fault string) {
	if !p.armed.CompareAndSwap(true, false) {
		return ""
	}
	others := func() {
		done := make(chan error)
		go func() { done <- post(context.WithoutCancel(ctx), p.client) }()
		require.NoError(p.t, <-done, "another caller")
	}
	switch p.fault {
	case "panics":
		panic("faulty part")
	case "blocks":
		others()
		<-ctx.Done()
	case "calls the client":
		require.NoError(p.t, post(context.WithoutCancel(ctx), p.client))
	case "returns 20 s late":
		others()
		time.Sleep(20 * time.Second)
	}
	return p.fault
}

// The faulty parts.

func faultyTransport(p *faultyPart) http.RoundTripper {
	return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
		fault := p.applyFault(req.Context())
		resp, err := p.service.RoundTrip(req)
		switch fault {
		case "returns nil":
			resp.Body.Close()
			return nil, nil
		case "returns an error too":
			return resp, io.ErrUnexpectedEOF
		case "returns a wrong value": // no body
			resp.Body.Close()
			resp.Body = nil
		}
		return resp, err
	})
}

// faultyBody has the fault in the body of an answer with the status.
func faultyBody(status int) func(p *faultyPart) http.RoundTripper {
	return func(p *faultyPart) http.RoundTripper {
		return roundtrip.Func(func(req *http.Request) (*http.Response, error) {
			resp, err := p.service.RoundTrip(req)
			if err == nil && resp.StatusCode == status {
				body := resp.Body.(*stubBody)
				body.Reader = &faultyReader{p, req.Context(), body.Reader}
			}
			return resp, err
		})
	}
}

type faultyReader struct {
	part *faultyPart
	ctx  context.Context
	io.Reader
}

func (r *faultyReader) Read(p []byte) (int, error) {
	switch r.part.applyFault(r.ctx) {
	case "blocks":
		return 0, r.ctx.Err()
	case "returns nil":
		return 0, nil
	case "returns an error too":
		n, _ := r.Reader.Read(p)
		return n, io.EOF
	case "returns a wrong value":
		r.Reader = strings.NewReader("{")
	}
	return r.Reader.Read(p)
}

// faultyObserver has the fault at events of one type.
func faultyObserver(event string) func(p *faultyPart) agentmessaging.Option {
	return func(p *faultyPart) agentmessaging.Option {
		return at(event, func(ctx context.Context) context.Context {
			if p.applyFault(ctx) != "returns a wrong value" {
				return nil
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return ended
		})
	}
}

// faultyLimiter has the fault when it is asked, or when a permit is given back.
type faultyLimiter struct {
	*faultyPart
	atDone bool
}

func (l faultyLimiter) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	fault := ""
	if !l.atDone {
		fault = l.applyFault(ctx)
	}
	switch fault {
	case "returns nil":
		return nil, nil
	case "returns a wrong value":
		return nil, &agentmessaging.Error{StatusCode: 429, RetryAfter: -time.Hour, Method: "GET"}
	}
	if _, err := l.limiter.Acquire(ctx, attempt); err != nil {
		return nil, err
	}
	if fault == "returns an error too" {
		return l, io.ErrUnexpectedEOF
	}
	return l, nil
}

func (l faultyLimiter) Done(outcome agentmessaging.AttemptOutcome) {
	l.limiter.Done(outcome)
	if l.atDone {
		l.applyFault(l.t.Context())
	}
}

type faultyClock struct {
	*faultyPart
	quota.RealClock
}

func (c faultyClock) Now() time.Time {
	if c.fault == "returns a wrong value" { // the clock goes back
		return time.Unix(0, 0).Add(-time.Since(time.Unix(0, 0)))
	}
	return time.Now()
}

func (c faultyClock) Sleep(ctx context.Context, d time.Duration) error {
	fault := c.applyFault(ctx)
	if fault == "returns nil" { // at once
		return nil
	}
	err := c.RealClock.Sleep(ctx, d)
	if fault == "returns an error too" {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// backward is a clock that goes backwards.
var backward = agentmessaging.WithClock(faultyClock{faultyPart: &faultyPart{fault: "returns a wrong value"}})

// brokenClock is a clock that does not wait.
type brokenClock struct{ quota.RealClock }

func (brokenClock) Sleep(context.Context, time.Duration) error { return io.ErrUnexpectedEOF }

// lateClock is a clock whose Sleep returns a minute late, on a full second, as if the
// program had been frozen.
type lateClock struct{ quota.RealClock }

func (c lateClock) Sleep(ctx context.Context, d time.Duration) error {
	return c.RealClock.Sleep(ctx, (d + time.Minute).Round(time.Second))
}

func (p *faultyPart) beforeSend(ctx context.Context, _ int) error {
	if p.applyFault(ctx) == "returns an error too" {
		return io.ErrUnexpectedEOF
	}
	return ctx.Err()
}

// The outcomes of a call with a faulty part. impossible: the part cannot have this fault.
const refused429, panics, impossible = "error 429", "panic", ""

type outcomes map[string]string // of the call, by the fault

var usual = outcomes{"panics": panics, "blocks": noAnswer, "returns nil": success, "calls the client": success, "returns 20 s late": success, "returns a wrong value": success}

var faultyParts = []struct {
	part string
	with func(*faultyPart) agentmessaging.Option
	but  outcomes // where they differ from usual
}{
	{"transport", transportOf(faultyTransport), outcomes{"blocks": noAnswer, "returns nil": unknown, "returns an error too": unknown}},
	{"body of a 429", transportOf(faultyBody(429)), outcomes{"blocks": success, "returns an error too": success}},
	{"body of a success", transportOf(faultyBody(200)), outcomes{"blocks": unknown, "returns an error too": success, "returns a wrong value": unknown}},
	{"observer of CallStart", faultyObserver("CallStart"), outcomes{"returns a wrong value": noAnswer}},
	{"observer of AttemptStart", faultyObserver("AttemptStart"), outcomes{"returns a wrong value": noAnswer}},
	{"observer of RequestStart", faultyObserver("RequestStart"), nil},
	{"observer of AttemptEnd", faultyObserver("AttemptEnd"), outcomes{"blocks": refused429}},
	{"observer of Retry", faultyObserver("Retry"), outcomes{"blocks": refused429}},
	{"observer of LimiterWait", faultyObserver("LimiterWait"), nil},
	{"observer of CoolDown", faultyObserver("CoolDown"), outcomes{"blocks": refused429}},
	{"observer of CallEnd", faultyObserver("CallEnd"), outcomes{"blocks": success}},
	{"slog handler", func(p *faultyPart) agentmessaging.Option {
		handle := func(ctx context.Context, _ slog.Record) { p.applyFault(ctx) }
		return agentmessaging.WithLogger(slog.New(contextHandler{slog.DiscardHandler, handle}))
	}, outcomes{"returns nil": impossible, "returns a wrong value": impossible}},
	{"limiter", func(p *faultyPart) agentmessaging.Option { return agentmessaging.WithLimiter(faultyLimiter{p, false}) },
		outcomes{"blocks": refused429, "returns nil": noAnswer, "returns an error too": noAnswer, "returns a wrong value": refused429}},
	{"permit", func(p *faultyPart) agentmessaging.Option { return agentmessaging.WithLimiter(faultyLimiter{p, true}) },
		outcomes{"blocks": impossible, "returns nil": impossible}},
	{"clock", func(p *faultyPart) agentmessaging.Option { return agentmessaging.WithClock(faultyClock{faultyPart: p}) },
		outcomes{"panics": noAnswer, "blocks": success, "returns an error too": noAnswer}},
	{"before send", nil, outcomes{"returns an error too": noAnswer}},
}

func transportOf(f func(*faultyPart) http.RoundTripper) func(*faultyPart) agentmessaging.Option {
	return func(p *faultyPart) agentmessaging.Option { return through(f(p)) }
}

// TestFaultyParts checks that, whatever a user's part does, the call ends as documented and
// within its deadline, a panic reaches the caller, no permit, open body or goroutine is left, and
// other callers get through. A panic of a clock is an error: other calls wait by it too.
func TestFaultyParts(t *testing.T) {
	for _, tt := range faultyParts {
		wants := maps.Clone(usual)
		maps.Copy(wants, tt.but)
		for fault, want := range wants {
			if want != impossible {
				t.Run(tt.part+" "+fault, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { callWithFaultyPart(t, tt.part, fault, tt.with, want) })
				})
			}
		}
	}
}

// callWithFaultyPart makes a call in which the part has its fault, and one after it.
func callWithFaultyPart(t *testing.T, part, fault string, with func(*faultyPart) agentmessaging.Option, want string) {
	p := &faultyPart{t: t, fault: fault, service: answering(tooMany("1", "k"), okAnswer), limiter: &limiterStub{wait: time.Millisecond}}
	observer := &reporter{t: t, reports: new(strings.Builder)}
	opts := []agentmessaging.Option{agentmessaging.WithLimiter(p.limiter), agentmessaging.WithObserver(observer)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if with != nil {
		opts = append(opts, with(p))
	} else {
		ctx = agentmessaging.WithBeforeSend(ctx, p.beforeSend)
	}
	p.client = newClient(t, p.service, opts...)
	p.armed.Store(true)
	var info agentmessaging.CallInfo
	var err error
	call := func() { err = post(agentmessaging.WithCallInfo(ctx, &info), p.client) }
	if want == panics {
		assert.PanicsWithValue(t, "faulty part", call)
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
	assert.False(t, p.armed.Load(), "the fault did not happen")
	time.Sleep(time.Minute) // lets other callers, and sleeps that were given up, end
	synctest.Wait()
	assert.Len(t, p.limiter.done, len(p.limiter.asked), "a permit is out")
	assert.Zero(t, p.service.open.Load(), "bodies are open")
	events := observer.reports.String()
	assert.Equal(t, strings.Count(events, "CallStart"), strings.Count(events, "call: CallEnd"), "each call that begins ends, with the context of its begin")
	assert.NoError(t, post(t.Context(), p.client), "the next call")
}

// The engine learns of a 429 before the user's permit, whose Done may panic: the next call
// waits.
func TestPermitThatPanicsAtA429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &faultyPart{t: t, fault: "panics", limiter: new(limiterStub)}
		client := newClient(t, answering(tooMany("10", ""), okAnswer), agentmessaging.WithLimiter(faultyLimiter{p, true}))
		p.armed.Store(true)
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

// If a limit closes while a limiter makes a call wait, the call gives its turn back. When the limit
// opens, it goes before the calls that came later.
func TestSlowLimiterCostsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := answering(slow(3*time.Second, refused), okAnswer, okAnswer, okAnswer) // refused at 5 s, until 25 s; then one goes each second
		client, began := newClient(t, service, jitter(0), agentmessaging.WithLimiter(&limiterStub{wait: 2 * time.Second})), time.Now()
		var calls sync.WaitGroup
		for begins, ends := range map[time.Duration]time.Duration{0: 27 * time.Second, 4 * time.Second: 26 * time.Second, 5500 * time.Millisecond: 28 * time.Second} {
			calls.Go(func() {
				time.Sleep(begins)
				assert.NoError(t, get(t.Context(), client))
				assert.Equal(t, ends, time.Since(began), "when the call ends that begins after %s", begins)
			})
		}
		calls.Wait()
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

// lookedAt is a clock and an error. It counts the looks at either, and panics at one of them.
type lookedAt struct {
	quota.RealClock
	error
	looks, panicsAt int // panicsAt is the number of a look, from 1; 0: never
}

func (c *lookedAt) look() {
	if c.looks++; c.looks == c.panicsAt {
		panic("faulty part")
	}
}

func (c *lookedAt) Now() time.Time {
	c.look()
	return c.RealClock.Now()
}

func (c *lookedAt) Unwrap() error {
	c.look()
	return nil
}

// TestPanicAtAnyMoment checks that a permit comes back at whatever moment a clock panics, that
// observers get the end of each call and attempt, and that no event shows a transport's error
// before its secrets are taken out, even if the program panics at that moment. A first call
// without a panic counts the moments.
func TestPanicAtAnyMoment(t *testing.T) {
	for moment, moments := 0, 0; moment <= moments; moment++ {
		synctest.Test(t, func(t *testing.T) {
			broken, limiter := &lookedAt{error: errors.New("sent " + testKey), panicsAt: moment}, new(limiterStub)
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
				moments = max(moments, broken.looks)
				assert.Len(t, limiter.done, len(limiter.asked), "moment %d: a permit is out", moment)
				assert.Zero(t, begun, "moment %d: calls and attempts without an end", moment)
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
