package agentmessaging_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
)

// mischief makes one part of a client misbehave, once.
type mischief struct {
	t      *testing.T
	how    string
	armed  atomic.Bool
	client *agentmessaging.Client

	requests, bodies, permits atomic.Int32 // that came; that are open; that are out
	verdict                   atomic.Value // of the last attempt
}

// happens reports whether the part has to misbehave as how says, in a way that
// needs its cooperation. What every part can do alike, it does itself. While it
// blocks, other callers get through.
func (m *mischief) happens(ctx context.Context) (how string) {
	if !m.armed.CompareAndSwap(true, false) {
		return ""
	}
	others := func() {
		done := make(chan error)
		go func() { done <- post(context.WithoutCancel(ctx), m.client) }()
		require.NoError(m.t, <-done, "another caller")
	}
	switch m.how {
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
	return m.how
}

// The service: it refuses the first request, and answers the others.
func (m *mischief) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	a := okAnswer
	if m.requests.Add(1) == 1 {
		a = tooMany("1", "k")
	}
	m.bodies.Add(1)
	resp := &http.Response{StatusCode: a.Status, Header: a.Header, ContentLength: int64(len(a.Body))}
	resp.Body = &trackedBody{Reader: strings.NewReader(a.Body), open: &m.bodies}
	return resp, nil
}

func (m *mischief) observe(_ context.Context, event agentmessaging.Event) context.Context {
	if end, ok := event.(agentmessaging.AttemptEnd); ok {
		m.verdict.Store(end.Verdict)
	}
	return nil
}

type trackedBody struct {
	io.Reader
	open *atomic.Int32
}

func (b *trackedBody) Close() error { b.open.Add(-1); return nil }

// limit is a limiter that takes long enough to decide for an event.
type limit struct{ *mischief }

func (l limit) Acquire(ctx context.Context, _ agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	time.Sleep(time.Millisecond)
	l.permits.Add(1)
	return l, ctx.Err()
}

func (l limit) Done(agentmessaging.AttemptOutcome) { l.permits.Add(-1) }

// The parts that misbehave.

func badTransport(m *mischief) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) {
		how := m.happens(req.Context())
		resp, err := m.RoundTrip(req)
		switch how {
		case "returns nil":
			resp.Body.Close()
			return nil, nil
		case "returns both":
			return resp, io.ErrUnexpectedEOF
		case "lies": // that there is no body
			resp.Body.Close()
			resp.Body = nil
		}
		return resp, err
	})
}

// badBody misbehaves in the body of an answer with the status.
func badBody(status int) func(m *mischief) http.RoundTripper {
	return func(m *mischief) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := m.RoundTrip(req)
			if err == nil && resp.StatusCode == status {
				resp.Body.(*trackedBody).Reader = &badReader{m, req.Context(), resp.Body.(*trackedBody).Reader}
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
	switch r.m.happens(r.ctx) {
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

// badObserver misbehaves at the events of one type, in an observer.
func badObserver(event agentmessaging.Event) func(m *mischief) agentmessaging.Option {
	return func(m *mischief) agentmessaging.Option {
		return agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(ctx context.Context, e agentmessaging.Event) context.Context {
			if strings.Split(lineOf(e), " ")[0] != strings.Split(lineOf(event), " ")[0] {
				return ctx
			}
			if m.happens(ctx) == "lies" {
				ended, cancel := context.WithCancel(ctx)
				cancel()
				return ended
			}
			return nil
		}))
	}
}

func badHandler(m *mischief) agentmessaging.Option {
	return agentmessaging.WithLogger(slog.New(contextHandler{slog.DiscardHandler, func(ctx context.Context, _ slog.Record) { m.happens(ctx) }}))
}

type badLimit struct{ limit }

func (l badLimit) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	switch l.happens(ctx) {
	case "blocks":
		return nil, ctx.Err()
	case "returns nil":
		return nil, nil
	case "returns both":
		permit, _ := l.limit.Acquire(ctx, attempt)
		return permit, io.ErrUnexpectedEOF
	case "lies":
		return nil, &agentmessaging.Error{StatusCode: 429, RetryAfter: -time.Hour, Method: "GET"}
	}
	return l.limit.Acquire(ctx, attempt)
}

// badPermit misbehaves when it is given back.
type badPermit struct{ limit }

func (l badPermit) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	_, err := l.limit.Acquire(ctx, attempt)
	return l, err
}

func (l badPermit) Done(outcome agentmessaging.AttemptOutcome) {
	l.limit.Done(outcome)
	l.happens(l.t.Context())
}

type badClock struct {
	*mischief
	quota.RealClock
}

func (c badClock) Now() time.Time {
	if c.how == "lies" { // it goes back
		return time.Now().Add(-2 * time.Since(bubbleEpoch))
	}
	return time.Now()
}

// bubbleEpoch is when time begins in a synctest bubble.
var bubbleEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (c badClock) Sleep(ctx context.Context, d time.Duration) error {
	switch c.happens(ctx) {
	case "blocks":
		return ctx.Err()
	case "returns nil": // at once
		return nil
	case "returns both":
		return errors.Join(io.ErrUnexpectedEOF, c.RealClock.Sleep(ctx, d))
	}
	return c.RealClock.Sleep(ctx, d)
}

func (m *mischief) beforeSend(ctx context.Context, _ int) error {
	switch m.happens(ctx) {
	case "blocks":
		return ctx.Err()
	case "returns both":
		return io.ErrUnexpectedEOF
	}
	return nil
}

type badJar struct{ *mischief }

func (j badJar) SetCookies(*url.URL, []*http.Cookie) {}

func (j badJar) Cookies(*url.URL) []*http.Cookie {
	if j.happens(j.t.Context()) == "lies" {
		return []*http.Cookie{{Name: "not a name", Value: "\n"}}
	}
	return nil
}

// TestPartsThatMisbehave: whatever a user plugs in and whatever it does, the call
// ends as documented, within its deadline; a panic reaches its caller; no permit, no
// open body and no goroutine is left; and other callers get through.
func TestPartsThatMisbehave(t *testing.T) {
	const success, unknown, noAnswer, limited, panics = success, unknown, noAnswer, "error 429", "panic"
	hows := [...]string{"panics", "blocks", "returns nil", "returns both", "re-enters", "is late", "lies"}
	through := func(f func(*mischief) http.RoundTripper) func(*mischief) agentmessaging.Option {
		return func(m *mischief) agentmessaging.Option { return through(f(m)) }
	}
	limiter := func(f func(limit) agentmessaging.Limiter) func(*mischief) agentmessaging.Option {
		return func(m *mischief) agentmessaging.Option { return agentmessaging.WithLimiter(f(limit{m})) }
	}
	for _, tt := range []struct {
		part string
		bad  func(*mischief) agentmessaging.Option
		want [len(hows)]string // "": the part has no way to do that
	}{
		{"transport", through(badTransport), [...]string{panics, unknown, unknown, unknown, success, success, success}},
		{"body of a 429", through(badBody(429)), [...]string{panics, success, success, success, success, success, success}},
		{"body of a success", through(badBody(200)), [...]string{panics, unknown, success, success, success, success, unknown}},
		{"observer of CallStart", badObserver(agentmessaging.CallStart{}), [...]string{panics, noAnswer, success, "", success, success, noAnswer}},
		{"observer of AttemptStart", badObserver(agentmessaging.AttemptStart{}), [...]string{panics, noAnswer, success, "", success, success, noAnswer}},
		{"observer of RequestStart", badObserver(agentmessaging.RequestStart{}), [...]string{panics, noAnswer, success, "", success, success, success}},
		{"observer of AttemptEnd", badObserver(agentmessaging.AttemptEnd{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of Retry", badObserver(agentmessaging.Retry{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of LimiterWait", badObserver(agentmessaging.LimiterWait{}), [...]string{panics, noAnswer, success, "", success, success, success}},
		{"observer of CoolDown", badObserver(agentmessaging.CoolDown{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of CallEnd", badObserver(agentmessaging.CallEnd{}), [...]string{panics, success, success, "", success, success, success}},
		{"slog handler", badHandler, [...]string{panics, noAnswer, "", "", success, success, ""}},
		{"limiter", limiter(func(l limit) agentmessaging.Limiter { return badLimit{l} }), [...]string{panics, noAnswer, noAnswer, noAnswer, success, success, limited}},
		{"permit", limiter(func(l limit) agentmessaging.Limiter { return badPermit{l} }), [...]string{panics, "", "", "", success, success, success}},
		{"clock", func(m *mischief) agentmessaging.Option { return agentmessaging.WithClock(badClock{mischief: m}) },
			[...]string{noAnswer, success, success, noAnswer, success, success, success}},
		{"cookie jar", func(m *mischief) agentmessaging.Option {
			return agentmessaging.WithHTTPClient(&http.Client{Transport: m, Jar: badJar{m}})
		}, [...]string{panics, "", "", "", success, success, success}},
		{"before send", nil, [...]string{panics, noAnswer, success, noAnswer, success, success, success}},
	} {
		for i, how := range hows {
			if tt.want[i] != "" {
				t.Run(tt.part+" "+how, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { misbehave(t, tt.part, how, tt.bad, tt.want[i]) })
				})
			}
		}
	}
}

// misbehave makes a call in which the part misbehaves, and one after it.
func misbehave(t *testing.T, part, how string, bad func(*mischief) agentmessaging.Option, want string) {
	m := &mischief{t: t, how: how}
	opts := []agentmessaging.Option{agentmessaging.WithLimiter(limit{m}), agentmessaging.WithObserver(agentmessaging.ObserverFunc(m.observe))}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if bad != nil {
		opts = append(opts, bad(m))
	} else {
		ctx = agentmessaging.WithBeforeSend(ctx, m.beforeSend)
	}
	m.client = newClient(t, m, opts...)
	m.armed.Store(true)
	var info agentmessaging.CallInfo
	panicked, err := calling(func() error { return post(agentmessaging.WithCallInfo(ctx, &info), m.client) })
	if panicked != nil {
		assert.Equal(t, []any{"mischief", "panic"}, []any{panicked, want})
		sent := strings.HasPrefix(part, "transport") || strings.HasPrefix(part, "body")
		assert.Equal(t, sent, m.verdict.Load() == agentmessaging.VerdictUnknown, "the last verdict is %q", m.verdict.Load())
	} else {
		assert.Equal(t, want, outcome(err), "%v", err)
		holdsLaws(t, err, testKey)
	}
	assert.GreaterOrEqual(t, info.Waited, time.Duration(0))
	assert.False(t, m.armed.Load(), "it never did")
	time.Sleep(time.Minute) // for other callers, and sleeps that nobody waits for
	assert.Zero(t, m.permits.Load(), "permits are out")
	assert.Zero(t, m.bodies.Load(), "bodies are open")
	assert.NoError(t, post(t.Context(), m.client), "the next call")
}

// calling returns what f returns, or panics with.
func calling(f func() error) (panicked any, err error) {
	defer func() { panicked = recover() }()
	return nil, f()
}
