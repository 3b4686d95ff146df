// Package agentmessaging is the client of the Agent Messaging Service: it
// creates conversational agents and exchanges text messages with them.
//
//	client, err := agentmessaging.NewClient(baseURL, apiKey)
//	if err != nil {
//		return err // the address or the key cannot be right
//	}
//	agent, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{SystemPrompt: "Be brief."})
//	if err != nil {
//		return err
//	}
//	reply, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "Hello"})
//	if errors.Is(err, agentmessaging.ErrOutcomeUnknown) {
//		return err // the agent may have read the message: to send it again may double it
//	}
//	if err != nil {
//		return err // it has not
//	}
//	fmt.Println(reply.Text)
//
// Make one [Client] for each API key and keep it for the life of the program.
// The examples of the methods show each call on a fake of the service. Package
// agentmessagingtest gives a test a client and its fake, package pacer spreads
// calls over a limit, and package contract checks a service against its
// documentation.
//
// "Interface 4.6" in these pages names a section of the service's interface
// document. The service is in preview; its limits may change.
//
// # Errors
//
// Every method returns one of three error types: [*ValidationError] when the
// arguments break a documented bound and nothing was sent, [*Error] when the
// service answered with anything but a documented success or could not be
// reached, and [*OutcomeUnknownError] when a POST may have been carried out:
// its answer was lost, or is a 5xx that the interface does not list for it. Test
// for a kind with errors.Is and [ErrRateLimited] and its siblings, read the
// details with errors.As. The methods list the kinds that the interface documents. Any call may also meet
// [ErrServer], another answer of a proxy, no answer at all, or the end of its
// context. docs/errors.md of this module says what to do about each.
//
// # Retries
//
// A call makes up to three attempts ([RetryPolicy]). What happens after an
// attempt depends on how it ended and on whether repeating is harmless:
//
//	outcome of an attempt                GET, PUT, DELETE   POST
//	-----------------------------------  -----------------  ---------------
//	2xx with a readable documented body  success            success
//	never sent                           retry              retry
//	answer lost, truncated or not JSON   retry              outcome unknown
//	429                                  retry              retry
//	502, 503, 504                        retry              outcome unknown
//	503 that the interface lists         retry              error
//	another 5xx                          error              outcome unknown
//	any other answer                     error              error
//	certificate refused                  error              error
//	context ended before the request     error              error
//	context ended after the request      error              outcome unknown
//	refused by the limiter               error              error
//
// A wait is never shorter than the answer's Retry-After and gets jitter on
// top. A wait that would pass the deadline of the context, or
// [RetryPolicy].MaxWait, is not begun: the error is returned at once with
// RetryAfter set. Every attempt that reaches the service spends quota
// (interface 8).
//
// # Limits
//
// A 429 parks every caller of the limit that it names until its Retry-After
// has passed: calls to the endpoints where that limit_key was seen wait here,
// with jitter on top, instead of being refused there (interface 8.3). When the
// limit opens they go in turn, as many in each window as the limit allows, so
// that a batch arrives. Where windows slide, or other programs use the key, a
// few of hundreds may be refused on all their attempts. Other endpoints go on.
// A caller whose deadline, or [RetryPolicy].MaxWait, is nearer than the end gets
// the 429 at once, with [Error].Local set and nothing sent.
// No Retry-After is believed beyond a day, and a limit that is shut for longer
// than an hour lets one call through each hour to look. [WithoutCoolDown] turns this off.
//
// [WithLimiter] adds a [Limiter] that is asked after the cool-down. Package
// pacer has one: it holds calls back before the service refuses them, for one
// process or for all that share a key.
//
// # Time
//
// The deadline of the context bounds a call, its attempts and waits together.
// Where the context has none, [WithTimeout] bounds the attempts and the waits
// between them, with a default of 5 minutes.
// The Timeout of the http.Client given to [WithHTTPClient] bounds one attempt.
//
// # Observing calls
//
// [WithCallInfo] tells the facts of one call: attempts, waits, status, header,
// trace id. [WithLogger] and [WithObserver] report on all calls of a client.
// None of them sees a key, a text or a request body.
//
// # Testing
//
// Package fakeserver is the whole service in memory: it keeps the documented
// rules and limits, and needs neither network nor key. Package
// agentmessagingtest makes one with a client on it, whose waits take no time.
//
//	client, fake := agentmessagingtest.New(t)
package agentmessaging

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/agent-messaging-service/agentmessaging-go/internal/cooldown"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// A Client calls the service with one API key. It is safe for concurrent use
// and should be kept for the life of the program: it holds the connections.
// It never prints its key. Make one with [NewClient] or [NewClientFromEnv];
// the zero value returns an error from every method.
type Client struct {
	settings
	base      *url.URL
	header    func(hasBody bool) http.Header // a function, so that no print of the Client shows the key
	apiKey    func() string                  // a function for the same reason
	transport http.RoundTripper
	library   *atomic.Pointer[retryablehttp.Client] // nil until the first call
	coolDown  *cooldown.CoolDown                    // nil: none
	calls     *atomic.Uint64                        // how many calls observers and loggers have heard of
	answered  *atomic.Bool                          // the service has answered an attempt; see sent.Trace.Renewed
}

// NewClient returns a client of the service at baseURL, the address in front
// of /v1, that authenticates with apiKey (interface 5). It checks its
// arguments and never dials. Over HTTP/2, many first calls at once open a
// connection each; one call of Status before them leaves one for all.
//
// baseURL is absolute, https (http is accepted for loopback hosts only) and
// has no user, query or fragment; a path is kept as a prefix. apiKey is the
// bare key, visible ASCII. A [*ValidationError] says what is wrong with either,
// or with an option.
func NewClient(baseURL, apiKey string, opts ...Option) (*Client, error) {
	base, err := parseBaseURL(baseURL, apiKey)
	if err != nil {
		return nil, err
	}
	if err := checkAPIKey(apiKey); err != nil {
		return nil, err
	}
	c := &Client{settings: defaultSettings(), base: base, apiKey: func() string { return apiKey }, calls: new(atomic.Uint64)}
	return c.With(opts...)
}

// NewClientFromEnv is [NewClient] with the address and key from the
// environment variables AGENT_MESSAGING_BASE_URL and AGENT_MESSAGING_API_KEY.
// Both must be set.
func NewClientFromEnv(opts ...Option) (*Client, error) {
	const address, key = "AGENT_MESSAGING_BASE_URL", "AGENT_MESSAGING_API_KEY"
	for _, name := range []string{address, key} {
		if os.Getenv(name) == "" {
			return nil, &ValidationError{Field: name, Reason: "is not set in the environment"}
		}
	}
	return NewClient(os.Getenv(address), os.Getenv(key), opts...)
}

// With returns a client that differs from c by opts and shares the rest with
// it: the key, the connections (unless opts has WithHTTPClient) and the
// cool-down (unless opts has WithClock, WithoutCoolDown or a limiter with a
// cool-down of its own). So a web handler can fail fast beside a batch that
// waits. WithLogger, WithObserver and WithUserAgent add to what c has. A
// [*ValidationError] says what is wrong with an option.
func (c *Client) With(opts ...Option) (*Client, error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	s := c.settings
	if err := s.apply(opts); err != nil {
		return nil, err
	}
	transport, answered := c.transport, c.answered
	if transport == nil || s.httpClient != c.httpClient {
		transport, answered = s.transport(), new(atomic.Bool)
	}
	return &Client{
		settings:  s,
		base:      c.base,
		header:    headers(c.apiKey(), s.userAgent),
		apiKey:    c.apiKey,
		transport: transport,
		library:   new(atomic.Pointer[retryablehttp.Client]),
		coolDown:  s.coolDown(c.coolDown),
		calls:     c.calls,
		answered:  answered,
	}, nil
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

// headers returns a maker of the header of a request. The values are shared and
// never written to; the map is the request's own, because transports add to it.
func headers(apiKey, userAgent string) func(hasBody bool) http.Header {
	var (
		auth  = []string{"Bearer " + apiKey}
		json  = []string{jsonType}
		agent = []string{userAgent}
	)
	return func(hasBody bool) http.Header {
		header := http.Header{"Authorization": auth[:1:1], "Accept": json[:1:1], "User-Agent": agent[:1:1]}
		if hasBody {
			header["Content-Type"] = json[:1:1]
		}
		return header
	}
}

const jsonType = "application/json"

// do is the one path that every call takes: encode, send with retries, decode
// inside the attempt, report. T is what r.decode makes.
func do[T any](ctx context.Context, c *Client, r request) (T, error) {
	var none T
	call, err := c.newCall(ctx, r)
	if err != nil {
		if info := callInfo(ctx); info != nil {
			*info = CallInfo{} // of a call that never was
		}
		return none, err
	}
	if err := call.run(); err != nil {
		return none, err
	}
	return call.result.(T), nil
}

// newCall checks what every call shares and encodes the body.
func (c *Client) newCall(ctx context.Context, r request) (*call, error) {
	if c == nil || c.base == nil {
		return nil, errNoClient
	}
	if ctx == nil {
		return nil, &ValidationError{Field: "ctx", Reason: "is nil; use context.Background() when there is none"}
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	call := &call{Context: ctx, client: c, info: callInfo(ctx), request: r, url: *c.base}
	err := call.addPath()
	if err != nil || r.body == nil {
		return call, err
	}
	if call.json, err = encode(r.body); err != nil {
		return nil, &ValidationError{Field: "body", Reason: "cannot be written as JSON"}
	}
	if r.metadata != nil {
		call.json = addMember(call.json, spec.Metadata.Path, r.metadata)
	}
	return call, nil
}

// addPath completes the request's URL. An agent id is opaque but always exactly
// one path segment.
func (c *call) addPath() error {
	before, after, hasID := strings.Cut(c.endpoint.Path, "{agent_id}")
	if hasID {
		if err := checkAgentID(c.agentID); err != nil {
			return err
		}
	}
	if c.url.RawPath != "" { // a prefix whose escapes must stay as they are
		c.url.RawPath += before + url.PathEscape(c.agentID) + after
	}
	c.url.Path += before + c.agentID + after
	return nil
}
