package agentmessaging

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/internal/exchange"
	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/internal/redact"
)

// A Client calls the service with one API key. It is safe for concurrent use
// and should be kept for the life of the program: it holds the connections.
// It never prints its key. Make one with [NewClient] or [NewClientFromEnv];
// the zero value returns an error from every method.
type Client struct {
	settings
	base     *url.URL
	header   func(hasBody bool) http.Header // a function, so that no print of the Client shows the key
	apiKey   func() string                  // a function for the same reason
	redactor func() *redact.Redactor        // of the key, and a function for the same reason
	sender   *exchange.Sender
	limits   *quota.Engine  // nil: none
	retries  *retryBudget   // shared by a client and its siblings
	calls    *atomic.Uint64 // how many calls had observers or a logger

	repeaters *sync.Pool // that no call uses
}

// NewClient returns a client of the service at baseURL, the address in front
// of /v1, that authenticates with apiKey (interface 5). It checks its
// arguments and never dials. Over HTTP/2, many first calls at once share a new
// connection: they wait for its first answer, 2 s at most.
//
// baseURL is absolute, https (http is accepted for loopback hosts only) and
// has no user, query or fragment; a path is kept as a prefix. apiKey is the
// bare key, visible ASCII; one of fewer than six bytes is not redacted, and may show
// in errors. A [*ValidationError] says what is wrong with either,
// or with an option.
func NewClient(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBaseURL(baseURL, apiKey)
	if err != nil {
		return nil, err
	}
	if err := checkAPIKey(apiKey); err != nil {
		return nil, err
	}
	redactor := redact.New(apiKey)
	c := &Client{
		settings: defaultSettings(), base: base, calls: new(atomic.Uint64), retries: newRetryBudget(),
		apiKey: func() string { return apiKey }, redactor: func() *redact.Redactor { return redactor },
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
// key, the connections (unless opts has WithHTTPClient) and the cool-down (unless opts
// has WithClock, WithoutCoolDown or a Pacer). For a web handler that must fail fast
// while a batch waits, use [WithoutCoolDown], [WithRetry] with MaxAttempts 1 and
// [WithTimeout]. A Pacer still makes its calls wait, so give them a deadline.
// WithLogger, WithObserver and WithUserAgent add to what c has. A [*ValidationError]
// says what is wrong with an option.
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
		sender = exchange.New(s.httpClient.Transport)
	}
	return &Client{
		settings: s,
		base:     c.base,
		header:   headers(c.apiKey(), s.userAgent),
		apiKey:   c.apiKey,
		redactor: c.redactor,
		sender:   sender,
		limits:   s.limitEngine(c),
		retries:  c.retries,
		calls:    c.calls,

		repeaters: &sync.Pool{New: func() any { return newRepeater(s.httpClient.Jar) }},
	}, nil
}

// limitEngine is the engine in which calls wait for limits: a Pacer's or a cool-down's.
// A client made by With shares the cool-down if the clock is the same. It is nil if the
// cool-down is turned off.
func (s *settings) limitEngine(parent *Client) *quota.Engine {
	switch {
	case s.pacer != nil:
		return s.pacer
	case s.noCoolDown:
		return nil
	case parent.limits != nil && parent.pacer == nil && !s.newClock:
		return parent.limits
	}
	return quota.NewCoolDown(s.clock, s.random)
}

// Every method of a zero Client returns errNoClient.
var errNoClient = &ValidationError{Field: "client", Reason: "was not made by NewClient"}

// String says where the client sends its calls, and nothing of its key.
func (c *Client) String() string {
	if c == nil || c.base == nil {
		return "agentmessaging.Client(unset)"
	}
	return "agentmessaging.Client(" + c.base.Redacted() + ")"
}

// GoString is String, so that %#v shows no more than %v.
func (c *Client) GoString() string { return c.String() }

// headers returns the headers of requests, with and without a body. They are
// shared and never written to.
func headers(apiKey, userAgent string) func(hasBody bool) http.Header {
	var (
		auth  = []string{"Bearer " + apiKey}
		json  = []string{"application/json"}
		agent = []string{userAgent}
		// Bodies of a few kilobytes are not worth unpacking, and one that is
		// packed by somebody else could not be bounded.
		plain = []string{"identity"}
	)
	without := http.Header{"Authorization": auth, "Accept": json, "Accept-Encoding": plain, "User-Agent": agent}
	withBody := maps.Clone(without)
	withBody["Content-Type"] = json
	return func(hasBody bool) http.Header {
		if hasBody {
			return withBody
		}
		return without
	}
}
