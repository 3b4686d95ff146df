package agentmessaging_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"reflect"
	"slices"
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
	t       *testing.T
	how     string
	armed   atomic.Bool
	client  *agentmessaging.Client
	service *stub // refuses the first request
	limiter *limiterStub
}

// happens misbehaves if it is time for that, as every part can do alike, and reports how
// for what needs the part's cooperation. While it blocks, other callers get through.
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

// The parts that misbehave.

func badTransport(m *mischief) http.RoundTripper {
	return tripper(func(req *http.Request) (*http.Response, error) {
		how := m.happens(req.Context())
		resp, err := m.service.RoundTrip(req)
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

// badObserver misbehaves at the events of one type.
func badObserver(event agentmessaging.Event) func(m *mischief) agentmessaging.Option {
	return func(m *mischief) agentmessaging.Option {
		return agentmessaging.WithObserver(agentmessaging.ObserverFunc(func(ctx context.Context, e agentmessaging.Event) context.Context {
			if reflect.TypeOf(e) == reflect.TypeOf(event) && m.happens(ctx) == "lies" {
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

// badLimiter misbehaves when it is asked, or when a permit is given back.
type badLimiter struct {
	*mischief
	late bool
}

func (l badLimiter) Acquire(ctx context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	how := ""
	if !l.late {
		how = l.happens(ctx)
	}
	switch how {
	case "returns nil":
		return nil, nil
	case "lies":
		return nil, &agentmessaging.Error{StatusCode: 429, RetryAfter: -time.Hour, Method: "GET"}
	}
	if _, err := l.limiter.Acquire(ctx, attempt); err != nil {
		return nil, err
	}
	if how == "returns both" {
		return l, io.ErrUnexpectedEOF
	}
	return l, nil
}

func (l badLimiter) Done(outcome agentmessaging.AttemptOutcome) {
	l.limiter.Done(outcome)
	if l.late {
		l.happens(l.t.Context())
	}
}

type badClock struct {
	*mischief
	quota.RealClock
}

func (c badClock) Now() time.Time {
	if c.how == "lies" { // it goes back
		return time.Unix(0, 0).Add(-time.Since(time.Unix(0, 0)))
	}
	return time.Now()
}

func (c badClock) Sleep(ctx context.Context, d time.Duration) error {
	how := c.happens(ctx)
	if how == "returns nil" { // at once
		return nil
	}
	err := c.RealClock.Sleep(ctx, d)
	if how == "returns both" {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (m *mischief) beforeSend(ctx context.Context, _ int) error {
	if m.happens(ctx) == "returns both" {
		return io.ErrUnexpectedEOF
	}
	return ctx.Err()
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
	const limited, panics = "error 429", "panic"
	hows := [...]string{"panics", "blocks", "returns nil", "returns both", "re-enters", "is late", "lies"}
	transport := func(f func(*mischief) http.RoundTripper) func(*mischief) agentmessaging.Option {
		return func(m *mischief) agentmessaging.Option { return through(f(m)) }
	}
	for _, tt := range []struct {
		part string
		bad  func(*mischief) agentmessaging.Option
		want [len(hows)]string // what becomes of the call; "": the part has no way to do that
	}{
		{"transport", transport(badTransport), [...]string{panics, unknown, unknown, unknown, success, success, success}},
		{"body of a 429", transport(badBody(429)), [...]string{panics, success, success, success, success, success, success}},
		{"body of a success", transport(badBody(200)), [...]string{panics, unknown, success, success, success, success, unknown}},
		{"observer of CallStart", badObserver(agentmessaging.CallStart{}), [...]string{panics, noAnswer, success, "", success, success, noAnswer}},
		{"observer of AttemptStart", badObserver(agentmessaging.AttemptStart{}), [...]string{panics, noAnswer, success, "", success, success, noAnswer}},
		{"observer of RequestStart", badObserver(agentmessaging.RequestStart{}), [...]string{panics, noAnswer, success, "", success, success, success}},
		{"observer of AttemptEnd", badObserver(agentmessaging.AttemptEnd{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of Retry", badObserver(agentmessaging.Retry{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of LimiterWait", badObserver(agentmessaging.LimiterWait{}), [...]string{panics, noAnswer, success, "", success, success, success}},
		{"observer of CoolDown", badObserver(agentmessaging.CoolDown{}), [...]string{panics, limited, success, "", success, success, success}},
		{"observer of CallEnd", badObserver(agentmessaging.CallEnd{}), [...]string{panics, success, success, "", success, success, success}},
		{"slog handler", badHandler, [...]string{panics, noAnswer, "", "", success, success, ""}},
		{"limiter", func(m *mischief) agentmessaging.Option { return agentmessaging.WithLimiter(badLimiter{m, false}) },
			[...]string{panics, noAnswer, noAnswer, noAnswer, success, success, limited}},
		{"permit", func(m *mischief) agentmessaging.Option { return agentmessaging.WithLimiter(badLimiter{m, true}) },
			[...]string{panics, "", "", "", success, success, success}},
		{"clock", func(m *mischief) agentmessaging.Option { return agentmessaging.WithClock(badClock{mischief: m}) },
			[...]string{noAnswer, success, success, noAnswer, success, success, success}},
		{"cookie jar", func(m *mischief) agentmessaging.Option {
			return agentmessaging.WithHTTPClient(&http.Client{Transport: m.service, Jar: badJar{m}})
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
	m := &mischief{t: t, how: how, service: answering(tooMany("1", "k"), okAnswer), limiter: &limiterStub{wait: time.Millisecond}}
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
	panicked, err := any(nil), error(nil)
	func() {
		defer func() { panicked = recover() }()
		err = post(agentmessaging.WithCallInfo(ctx, &info), m.client)
	}()
	if panicked != nil {
		assert.Equal(t, []any{"mischief", "panic"}, []any{panicked, want})
		sent := strings.HasPrefix(part, "transport") || strings.HasPrefix(part, "body")
		last := slices.Concat([]string{""}, observer.verdicts)[len(observer.verdicts)]
		assert.Equal(t, sent, last == string(agentmessaging.VerdictUnknown), "the last verdict is %q", last)
	} else {
		assert.Equal(t, want, outcome(err), "%v", err)
		holdsLaws(t, err, testKey)
	}
	assert.GreaterOrEqual(t, info.Waited, time.Duration(0))
	assert.False(t, m.armed.Load(), "it never did")
	time.Sleep(time.Minute) // for other callers, and sleeps that nobody waits for
	assert.Zero(t, m.limiter.out(), "permits are out")
	assert.Zero(t, m.service.open.Load(), "bodies are open")
	assert.NoError(t, post(t.Context(), m.client), "the next call")
}
