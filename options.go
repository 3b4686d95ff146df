package agentmessaging

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
)

// Version is the version of this module, sent in User-Agent. Before a release
// it is already the version of that release.
const Version = "0.2.0"

// An Option changes how a [Client] works. NewClient refuses a nil option, an
// option given nil, a nil pointer inside an interface, and a slog.Logger or an
// http.Client that holds one.
type Option func(*settings) error

// WithHTTPClient sends calls through hc: its Transport, Jar and Timeout (which bounds a
// single attempt if it is more than 0) are used. A nil Transport is
// http.DefaultTransport, as net/http has it. hc is copied and never changed, its
// CheckRedirect is not used because no redirect is followed, and its idle connections
// are never closed. A transport that reads of a request's body before it runs the hooks
// of net/http/httptrace for a connection counts as having sent the request, whatever it
// does then. One that returns an error, has run no hooks and has not read the body,
// such as an open circuit breaker, has not sent it, and cannot read the body later.
// Without a body, a POST counts as sent then; any other request does too, unless the
// error is that of a dial.
//
// The default is a transport of the client's own: up to 256 idle connections, for
// 50 s, and pings on HTTP/2 connections that are silent, so that calls do not hang where
// the path has gone dead. It goes through the proxy that HTTPS_PROXY and NO_PROXY name.
// Behind a front end that closes idle HTTP/1.1 connections after N seconds, N below 50,
// use an http.Transport with an IdleConnTimeout below N. Else a POST may meet the close,
// and have an unknown outcome.
func WithHTTPClient(hc *http.Client) Option {
	return func(s *settings) error {
		if hc == nil || hc.Transport != nil && isNil(hc.Transport) || hc.Jar != nil && isNil(hc.Jar) {
			return nilOption("WithHTTPClient")
		}
		clone := *hc
		s.httpClient = &clone
		return nil
	}
}

// WithRetry sets how often and how long a call tries; see [RetryPolicy]. The
// default is the zero RetryPolicy.
func WithRetry(policy RetryPolicy) Option {
	return func(s *settings) error {
		s.retry = policy.withDefaults()
		return policy.validate()
	}
}

// WithLimiter makes every attempt of every call, retries included, ask limiter
// too, after the cool-down has let it pass. A Pacer of package pacer takes the place
// of the cool-down. The default is none.
func WithLimiter(limiter Limiter) Option {
	return plugIn("WithLimiter", limiter, func(s *settings) {
		if s.limiter, s.pacer = limiter, quota.EngineOf(limiter); s.pacer != nil {
			s.limiter = nil
		}
	})
}

// WithoutCoolDown turns the cool-down off (see [Limiter]). A call that is
// refused still waits for Retry-After before it tries again, and longer and longer
// where that is short, but alone: other calls are sent, and refused, meanwhile. By
// default a client has a cool-down.
func WithoutCoolDown() Option {
	return func(s *settings) error {
		s.noCoolDown = true
		return nil
	}
}

// WithClock makes the client read the time from clock, and wait by it: between
// attempts, in the cool-down and in the [Limiter]. It is for tests: under
// WithClock(fake), with a *fakeserver.Server, no test waits, and the client
// notices what Advance does. Timeouts and deadlines of contexts go by the clock
// of this machine all the same.
//
// The default is the clock of this machine.
func WithClock(clock Clock) Option {
	return plugIn("WithClock", clock, func(s *settings) { s.clock, s.newClock = clock, true })
}

// WithLogger writes records of calls to logger: at Debug one for each attempt and
// retry, and one when a wait for a limit begins and ends; at Info one when a 429
// begins a cool-down or prolongs it by a second at least; at Warn one for a call
// that gave up, that is, failed otherwise than by a 4xx answer (429 aside) or a
// cancellation, or whose outcome is unknown. Each has the number of the call, its
// endpoint and agent and, if the service sent them, trace_id and limit_key. The
// handler gets the caller's context, or what an [Observer] has made of it. Keys,
// texts and bodies are never logged. The default is to log nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil || isNil(logger.Handler()) { // new(slog.Logger) has no handler
			return nilOption("WithLogger")
		}
		s.handlers = append(s.handlers, handler{
			wants: func(ctx context.Context, level slog.Level) bool { return level != silent && logger.Enabled(ctx, level) },
			handle: func(ctx context.Context, e Event) context.Context {
				write(ctx, logger, e)
				return nil
			},
		})
		return nil
	}
}

// WithObserver reports what happens inside calls to observer; see [Event].
// Given more than once, it adds an observer, and each event goes to all in order.
// The default is none.
func WithObserver(observer Observer) Option {
	return plugIn("WithObserver", observer, func(s *settings) {
		all := func(context.Context, slog.Level) bool { return true }
		s.handlers = append(s.handlers, handler{wants: all, handle: observer.Observe})
	})
}

// WithUserAgent puts product, such as "shop/1.4", in front of the User-Agent
// that names this module, its version and the Go version. It is printable ASCII.
// By default nothing is in front.
func WithUserAgent(product string) Option {
	return func(s *settings) error {
		switch {
		case product == "":
			return &ValidationError{Field: "WithUserAgent", Reason: `is empty; give a product such as "shop/1.4"`}
		case strings.ContainsFunc(product, func(r rune) bool { return r < ' ' || r > '~' }):
			return &ValidationError{Field: "WithUserAgent", Reason: "must be printable ASCII"}
		}
		s.userAgent = product + " " + s.userAgent
		return nil
	}
}

// WithTimeout bounds a call whose context has no deadline: its attempts and the
// waits between them. Time in line for the cool-down or a [Limiter], after a 429 too,
// does not count, so that no call fails because others came first: no single wait for a
// limit is too long for WithTimeout. But it says for how long a limit may let nobody
// through, with a deadline or without: when the service refuses again after that, the
// call fails. It is more than 0; the default is 5 minutes.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return &ValidationError{Field: "WithTimeout", Reason: "must be more than 0"}
		}
		s.timeout = timeout
		return nil
	}
}

// plugIn is an option that takes a part of the caller's.
func plugIn(name string, part any, set func(*settings)) Option {
	return func(s *settings) error {
		if isNil(part) {
			return nilOption(name)
		}
		set(s)
		return nil
	}
}

func nilOption(name string) error {
	return &ValidationError{Field: name, Reason: "was given nil; leave the option out for the default"}
}

// isNil also finds a nil pointer inside an interface, which would panic only
// at the first call.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}

// settings hold what the options set.
type settings struct {
	httpClient *http.Client
	retry      RetryPolicy   // with its defaults in place
	limiter    Limiter       // of the user's; nil: none
	pacer      *quota.Engine // of a Pacer; nil: there is none
	noCoolDown bool
	clock      Clock // nil: real time
	newClock   bool  // the clock is not that of the client before With
	handlers   handlers
	userAgent  string
	timeout    time.Duration // of one call
	random     func() float64
}

// defaultTimeout bounds a call whose context has no deadline. It leaves room
// for one minute limit to open and for slow replies.
const defaultTimeout = 5 * time.Minute

func defaultSettings() settings {
	return settings{
		httpClient: &http.Client{Transport: exchange.NewTransport()},
		retry:      RetryPolicy{}.withDefaults(),
		userAgent:  "agentmessaging-go/" + Version + " (" + runtime.Version() + ")",
		timeout:    defaultTimeout,
		random:     rand.Float64,
	}
}

func init() {
	testoption.WithRandom = func(random func() float64) any {
		return Option(func(s *settings) error {
			s.random = random
			return nil
		})
	}
}

func (s *settings) apply(opts []Option) error {
	s.newClock = false
	s.handlers = slices.Clip(s.handlers) // another client shares them: append to a copy
	for i, opt := range opts {
		if opt == nil {
			return &ValidationError{Field: "opts", Reason: fmt.Sprintf("option %d is nil", i+1)}
		}
		if err := opt(s); err != nil {
			return err
		}
	}
	return nil
}

// clockOrReal is the clock of all waits.
func (s *settings) clockOrReal() Clock {
	if s.clock == nil {
		return quota.RealClock{}
	}
	return s.clock
}

// since is what has passed by that clock; 0 if it went back.
func (s *settings) since(began time.Time) time.Duration {
	return max(0, s.clockOrReal().Now().Sub(began))
}
