package agentmessaging

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/testoption"
)

// settings hold what the options set.
type settings struct {
	httpClient *http.Client
	retry      RetryPolicy // with its defaults in place
	limiter    Limiter     // nil: none
	noCoolDown bool
	clock      Clock // nil: real time
	newClock   bool  // the clock is not that of the client before With
	listeners  []listener
	userAgent  string
	timeout    time.Duration // of one call
	random     func() float64
}

// defaultTimeout bounds a call whose context has no deadline. It leaves room
// for one minute limit to open and for slow replies.
const defaultTimeout = 5 * time.Minute

func defaultSettings() settings {
	return settings{
		httpClient: &http.Client{},
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
	s.listeners = slices.Clip(s.listeners) // another client shares them: append to a copy
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

// time is the clock of all waits.
func (s *settings) time() Clock {
	if s.clock == nil {
		return cooldown.RealClock{}
	}
	return s.clock
}

// transport is the caller's, or one with the SDK's own pool.
func (s *settings) transport() http.RoundTripper {
	if s.httpClient.Transport != nil {
		return s.httpClient.Transport
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: connectAnswer,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    256,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// pingAfter is how long an HTTP/2 connection may be silent before a ping, and how long
// the ping may go unanswered. Without pings, each call on a connection whose path has
// gone dead hangs until its deadline, for a quarter of an hour.
const pingAfter = 15 * time.Second

// connectAnswer names the proxy, and its status, where net/http would quote the
// status text as if it were the service's.
func connectAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("the proxy %s answered CONNECT with %d %s", proxy.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
}

// coolDown is shared where the clock is the same. It is nil where it is turned
// off, or the limiter includes one.
func (s *settings) coolDown(shared *cooldown.CoolDown) *cooldown.CoolDown {
	if cools, ok := s.limiter.(interface{ CoolsDown() bool }); s.noCoolDown || ok && cools.CoolsDown() {
		return nil
	}
	if shared != nil && !s.newClock {
		return shared
	}
	return cooldown.New(s.clock, s.random)
}
