package agentmessaging

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"os"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// A Client calls the service with one API key. It is safe for concurrent use
// and should be kept for the life of the program, because it holds the connections. There
// is nothing to close.
//
// A printed Client does not show its key. Make one with [NewClient] or [NewClientFromEnv];
// every method of the zero value returns an error.
type Client struct {
	settings
	base   *url.URL
	sender *exchange.Sender
	engine *quota.Engine // makes calls wait for limits; nil: calls do not wait

	// A function, because fmt prints a function as an address: %+v of a struct that holds a
	// Client does not show the key.
	credentials func() *credentials

	// The clients that With makes share these, but one with another clock has its own retryBudget.
	retryBudget *retryBudget
	callCount   *atomic.Uint64 // counts the calls that had observers or a logger, to number them
}

// credentials is the API key, in the forms that calls need.
type credentials struct {
	apiKey   string
	header   http.Header      // of a request with a body; all calls share it, so it must not be changed
	redactor *redact.Redactor // hides the key
}

// NewClient returns a client of the service at baseURL, the address in front of /v1, that
// authenticates with apiKey (interface 5). It checks its arguments and never dials.
//
// baseURL is absolute, https (http is accepted for loopback hosts only) and
// has no user, query or fragment. A path is kept as a prefix, but is refused if it ends in
// /v1, or has the path of an endpoint such as /v1/agents, or the API key. apiKey is the
// bare key in visible ASCII. A key of fewer than six bytes is not redacted, and may
// show in errors. If an argument or an option is wrong, the error is a
// [*ValidationError].
//
// Over HTTP/2, calls that start at the same time share one new connection: the others wait until
// it is made, and then until the first call on it is answered. Each of these waits takes at most
// 2 s, and at most half of the time that is left to their deadline.
func NewClient(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBaseURL(baseURL, apiKey)
	if err = cmp.Or(err, checkAPIKey(apiKey)); err != nil {
		return nil, err
	}
	c := &Client{
		settings: defaultSettings(), base: base, callCount: new(atomic.Uint64), retryBudget: new(retryBudget),
		credentials: func() *credentials { return &credentials{apiKey: apiKey, redactor: redact.New(apiKey)} },
	}
	return c.With(opts...)
}

// NewClientFromEnv is [NewClient] with the address and key from the
// environment variables AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY.
// Both must be set. A [*ValidationError] about either has its name in Field.
func NewClientFromEnv(opts ...Option) (*Client, error) {
	const address, key = "AGENT_MESSAGING_BASE_URL", "AGENT_MESSAGING_API_KEY"
	client, err := NewClient(os.Getenv(address), os.Getenv(key), opts...)
	var invalid *ValidationError
	if errors.As(err, &invalid) {
		names := map[string]string{"baseURL": address, "apiKey": key}
		invalid.Field = cmp.Or(names[invalid.Field], invalid.Field)
	}
	return client, err
}

// With returns a client that differs from c by opts and shares the rest with it: the
// key, the connections (unless opts has WithHTTPClient), the retry budget (unless opts has
// WithClock) and the cool-down (unless opts has WithClock, WithoutCoolDown or a Pacer).
// WithLogger, WithObserver and WithUserAgent add to what c has. A [*ValidationError]
// says what is wrong with an option.
//
// For a web handler that must fail fast while a batch waits, use [WithoutCoolDown],
// [WithRetry] with MaxAttempts 1 and [WithTimeout]. If c has a Pacer, the handler's calls
// still wait in it, so give them a deadline.
func (c *Client) With(opts ...Option) (*Client, error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	s := c.settings
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	sender := c.sender
	if sender == nil || s.httpClient != c.httpClient {
		sender = exchange.New(s.httpClient.Transport, c.base)
	}
	budget := c.retryBudget
	if s.clockGiven { // the free retries of a budget come back by its clock
		budget = new(retryBudget)
	}
	known := *c.credentials()
	known.header = newHeader(known.apiKey, s.userAgent)
	return &Client{
		settings:    s,
		base:        c.base,
		credentials: func() *credentials { return &known },
		sender:      sender,
		engine:      s.limitEngine(c),
		retryBudget: budget,
		callCount:   c.callCount,
	}, nil
}

// limitEngine returns the engine in which calls wait for limits: the Pacer's, or else
// the parent's cool-down if the clock is the same, or else a new cool-down. If calls wait alone,
// it is one that never learns of a 429 and so holds no call back.
func (s *settings) limitEngine(parent *Client) *quota.Engine {
	switch {
	case s.pacer != nil:
		return s.pacer
	case parent.engine != nil && parent.pacer == nil && !s.clockGiven && !s.noCoolDown:
		return parent.engine
	}
	return quota.NewCoolDown(s.random)
}

// callsWaitAlone reports whether a 429 holds back only the call that met it.
func (s *settings) callsWaitAlone() bool { return s.noCoolDown && s.pacer == nil }

// Every method of a zero Client returns errNoClient.
var errNoClient = &ValidationError{Field: "client", Reason: "was not made by NewClient"}

// String returns the base address without the key.
func (c *Client) String() string {
	if c == nil || c.base == nil {
		return "agentmessaging.Client(unset)"
	}
	return "agentmessaging.Client(" + c.base.Redacted() + ")"
}

// GoString is String, so that %#v shows no more than %v.
func (c *Client) GoString() string { return c.String() }

func newHeader(apiKey, userAgent string) http.Header {
	return http.Header{
		"Authorization": {"Bearer " + apiKey}, "Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {userAgent},
		// Decompressing a few kilobytes costs more than it saves. If net/http decompressed the
		// answer, exchange could bound only the decompressed bytes, not those that it reads.
		"Accept-Encoding": {"identity"},
	}
}
