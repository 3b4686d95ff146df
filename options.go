package agentmessaging

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
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

// WithHTTPClient sends calls through hc: the client uses its Transport, Jar and Timeout.
// A Timeout of more than 0 bounds each attempt. A nil Transport is http.DefaultTransport,
// as in net/http. hc is copied and never changed, its CheckRedirect is not used because
// the client follows no redirect, and its idle connections are never closed. A Transport
// that ignores the context of a request can hold a call beyond its deadline. Clients of
// many API keys share connections if all get one http.Transport. Give it a
// MaxIdleConnsPerHost, because net/http's default keeps only two, and pings
// (HTTP2.SendPingTimeout): without them, calls over HTTP/2 hang on a dead path until their
// deadlines.
//
// By default the client makes a transport for itself. It keeps up to 256 idle
// connections for 50 s, and pings HTTP/2 connections that are silent for 15 s. It uses
// the proxy that HTTPS_PROXY and NO_PROXY name. If a front end closes idle HTTP/1.1
// connections after less than 50 s, use an http.Transport with an IdleConnTimeout below
// that time. Otherwise a POST may be sent while the connection closes, and have an
// unknown outcome.
//
// Whether a failed attempt was sent decides whether a POST is retried. An http.Transport
// tells the client through net/http/httptrace. For other transports, such as an open
// circuit breaker or an HTTP/3 client:
//
//   - A transport that reads any of the body, before it runs the hooks of httptrace for
//     a connection, counts as having sent the request.
//   - A transport that fails without hooks and without reading the body has not sent the
//     request. The client then closes the body, so the transport cannot read it later.
//   - A request without a body counts as sent if the transport fails without hooks. The
//     exception is a dial error of any request but a POST.
func WithHTTPClient(hc *http.Client) Option {
	return func(s *settings) error {
		if hc == nil || hc.Transport != nil && isnil.Value(hc.Transport) || hc.Jar != nil && isnil.Value(hc.Jar) {
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

// WithLimiter makes every attempt, retries included, ask limiter before it is sent,
// after the cool-down has let it pass. A Pacer of package pacer takes the place
// of the cool-down. The default is none.
func WithLimiter(limiter Limiter) Option {
	return nonNilOption("WithLimiter", limiter, func(s *settings) {
		if s.limiter, s.pacer = limiter, quota.EngineOf(limiter); s.pacer != nil {
			s.limiter = nil
		}
	})
}

// WithoutCoolDown turns the cool-down off (see [Limiter]). A call that the service
// refuses still waits for Retry-After before it tries again, and longer and longer if
// Retry-After is short. But other calls do not wait for the limit: they are sent
// meanwhile, and refused. The call fails when the service refuses it again after the time
// of [WithTimeout], even if other calls got through, because it does not see them. By
// default a client has a cool-down.
func WithoutCoolDown() Option {
	return func(s *settings) error {
		s.noCoolDown = true
		return nil
	}
}

// WithClock makes the client read the time from clock, and wait by it: between
// attempts, in the cool-down and in the [Limiter]. It is for tests: with a
// *fakeserver.Server as the clock, waits take no time, and the client notices when
// Advance moves the clock. Timeouts and the deadlines of contexts still go by the clock
// of this machine.
//
// The default is the clock of this machine.
func WithClock(clock Clock) Option {
	return nonNilOption("WithClock", clock, func(s *settings) { s.clock, s.clockGiven = clock, true })
}

// WithLogger writes records of calls to logger:
//
//   - at Debug for each attempt and each retry, and when a wait for a limit begins and
//     ends,
//   - at Info when a 429 begins a cool-down, or prolongs it by a second or more,
//   - at Warn for a call whose outcome is unknown, and for one that failed, unless a 4xx
//     answer other than 429 or a cancellation is the reason.
//
// Each record has the number of the call, its endpoint and agent. If the service sent
// them, the records of an attempt and of a failed call have trace_id and limit_key, and the
// records of waits and cool-downs have limit_key. The handler gets the caller's context, or
// the one that an [Observer] returned. Keys, messages, prompts and bodies are not logged,
// even if an answer repeats them. An error that repeats another member of a request, such
// as customer_ref, is logged with it. The default is to log nothing.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil || isnil.Value(logger.Handler()) { // new(slog.Logger) has no handler
			return nilOption("WithLogger")
		}
		s.handlers = append(s.handlers, handler{
			wants: func(ctx context.Context, level slog.Level) bool { return level != noLog && logger.Enabled(ctx, level) },
			handle: func(ctx context.Context, e Event) context.Context {
				logEvent(ctx, logger, e)
				return nil
			},
		})
		return nil
	}
}

// WithObserver reports what happens inside calls to observer; see [Event].
// If it is given more than once, each event goes to all observers in order.
// The default is none.
func WithObserver(observer Observer) Option {
	return nonNilOption("WithObserver", observer, func(s *settings) {
		all := func(context.Context, slog.Level) bool { return true }
		s.handlers = append(s.handlers, handler{wants: all, handle: observer.Observe})
	})
}

// WithUserAgent puts product, such as "shop/1.4", in front of the User-Agent
// that names this module, its version and the Go version. product is printable ASCII.
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
// waits between them. The time in line for the cool-down or a [Limiter] does not count,
// not even after a 429, so that no call fails because others came first.
//
// It also bounds how long a limit may let nobody through: if the service refuses a call
// again after that time, the call fails, with a deadline or without.
//
// The timeout must be more than 0. The default is 5 minutes.
func WithTimeout(timeout time.Duration) Option {
	return func(s *settings) error {
		if timeout <= 0 {
			return &ValidationError{Field: "WithTimeout", Reason: "must be more than 0"}
		}
		s.timeout = timeout
		return nil
	}
}

// nonNilOption returns an option that sets a part of the client, and refuses a nil part.
func nonNilOption(name string, part any, set func(*settings)) Option {
	return func(s *settings) error {
		if isnil.Value(part) {
			return nilOption(name)
		}
		set(s)
		return nil
	}
}

func nilOption(name string) error {
	return &ValidationError{Field: name, Reason: "was given nil; leave the option out for the default"}
}

// settings hold the values that the options set.
type settings struct {
	httpClient *http.Client
	retry      RetryPolicy   // defaults filled in
	limiter    Limiter       // the user's; nil: none
	pacer      *quota.Engine // a Pacer's; nil: none
	noCoolDown bool
	clock      Clock // by which the client waits
	clockGiven bool  // the options of this With had WithClock
	handlers   handlers
	userAgent  string
	timeout    time.Duration // of one call
	random     func() float64
}

// defaultTimeout leaves room for slow replies and, as the time for which a limit may let
// nobody through, for a minute limit to open several times.
const defaultTimeout = 5 * time.Minute

func defaultSettings() settings {
	return settings{
		httpClient: &http.Client{Transport: exchange.NewTransport()},
		retry:      RetryPolicy{}.withDefaults(),
		userAgent:  "agentmessaging-go/" + Version + " (" + runtime.Version() + ")",
		timeout:    defaultTimeout,
		clock:      quota.RealClock{},
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
	s.clockGiven = false
	s.handlers = slices.Clip(s.handlers) // c.With shares the array with c: an append must copy it
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

// since returns how much time has passed by the client's clock. It returns 0 if the clock
// went back or panics: a broken clock must not cost the caller an event or a result.
func (s *settings) since(began time.Time) (passed time.Duration) {
	defer func() { _ = recover() }()
	return max(0, s.clock.Now().Sub(began))
}
