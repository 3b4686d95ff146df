package fakeserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Option changes how a Server behaves. A nil option or an unusable value makes
// New panic and Open fail.
type Option func(*config) error

// set is an option that can always be used, but for what unless says.
func set(f func(*config)) Option {
	return func(c *config) error { f(c); return nil }
}

// unless refuses an option with a wrong value.
func (o Option) unless(wrong bool, format string, args ...any) Option {
	if wrong {
		return func(*config) error { return fmt.Errorf(format, args...) }
	}
	return o
}

// config holds the result of the options. It never changes after Open.
type config struct {
	clock        func() time.Time
	coldStart    time.Duration
	messageTexts bool
	callLimit    int
	// keptExchanges of each conversation; 0: as many as calls, and spec.KeptExchanges at least
	keptExchanges int
	unknownOK     bool
	behavior      *service.Behavior    // what the fake does where the interface is silent; never changes
	observed      map[string]bool      // the ids that Like has found answers for; nil before the first decision
	maxima        [spec.LimitCount]int // 0 means the plan's maximum
	key           string               // the default key's text; "" means amk_fake_000001
	plan          Plan                 // of the default key
}

const defaultCallLimit = 1000

func newConfig(opts []Option) (config, error) {
	c := config{
		clock:     time.Now,
		callLimit: defaultCallLimit,
		behavior:  defaultBehavior,
		plan:      PlanPreview,
	}
	for i, opt := range opts {
		if opt == nil {
			return c, fmt.Errorf("option %d is nil", i+1)
		}
		if err := opt(&c); err != nil {
			return c, err
		}
	}
	return c, nil
}

// WithClock makes the fake read the time from now instead of time.Now.
// Advance adds to it. The cold start and faults that wait still wait in real
// time, or that of the bubble.
func WithClock(now func() time.Time) Option {
	return set(func(c *config) { c.clock = now }).unless(now == nil, "WithClock: the clock is nil")
}

// WithColdStart makes the first message of a key that has not been warmed up
// (interface 4.2) take d longer. The default is 0.
func WithColdStart(d time.Duration) Option {
	return set(func(c *config) { c.coldStart = d }).unless(d < 0, "WithColdStart: %v is negative", d)
}

// WithMessageTexts keeps system prompts, message texts and replies readable in
// Calls, where they are redacted by default. Keys are redacted always.
func WithMessageTexts() Option {
	return set(func(c *config) { c.messageTexts = true })
}

// WithLimit allows calls in each window of limit, for keys of every plan. The
// maxima of interface 8 are preview defaults and may change; a load test may
// also want them out of its way. An unknown limit and less than 1 call are
// errors.
func WithLimit(limit Limit, calls int) Option {
	i := limitIndex(limit)
	return set(func(c *config) { c.maxima[i] = calls }).
		unless(calls < 1, "WithLimit: %s: %d is less than 1", limit, calls).
		unless(i < 0, "WithLimit: unknown limit; the limits are %s", limitKeys())
}

// WithCallLimit makes Calls keep the newest n calls instead of 1,000, and, if n
// is more than that, Conversation as many exchanges of each agent. 0 keeps no
// calls, math.MaxInt keeps all, and memory then grows for as long as the fake is
// used. A negative n is an error.
func WithCallLimit(n int) Option {
	return set(func(c *config) { c.callLimit = n }).unless(n < 0, "WithCallLimit: %d is negative", n)
}

func (c *config) limits() service.Limits {
	return service.Limits{Maxima: c.maxima, Exchanges: cmp.Or(c.keptExchanges, max(c.callLimit, spec.KeptExchanges))}
}

// WithUnknownRoutes answers calls to unknown paths and methods with 404 or 405
// without failing the test, for tests that make them on purpose. A fake of Open
// never fails for them, since it may get foreign traffic.
func WithUnknownRoutes() Option {
	return set(func(c *config) { c.unknownOK = true })
}

const maxKeyText = 256

// WithKey makes text the default API key, so that fakes in one program have
// distinct keys, or a program under test keeps its configured key. IssueKey
// then returns the same text, an underscore and a number; labels stay
// key_000001, key_000002 and so on. A key has at most 256 characters of visible
// ASCII, and no comma.
//
// The fake stores this text, and only Key and IssueKey show it. It stores no
// other key.
func WithKey(text string) Option {
	odd := strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
	return set(func(c *config) { c.key = text }).
		unless(odd, "WithKey: only visible ASCII characters but the comma").
		unless(len(text) > maxKeyText, "WithKey: at most %d characters", maxKeyText).
		unless(text == "", "WithKey: the text is empty")
}

// WithPlan puts the default API key on a plan other than PlanPreview.
func WithPlan(plan Plan) Option {
	known := plan == "" || plan.isKnown()
	return set(func(c *config) { c.plan = cmp.Or(plan, PlanPreview) }).unless(!known, "WithPlan: unknown plan; the plans are %s", planNames)
}

// FromIP is the IP address that a client calls from instead of 192.0.2.1, for
// the limits per address of interface 8. A text that is no IP address panics
// where it is used.
type FromIP string

// address is the first FromIP, or an address that is set aside for documentation
// (RFC 5737).
func address(method string, from []FromIP) netip.Addr {
	switch len(from) {
	case 0:
		return netip.AddrFrom4([4]byte{192, 0, 2, 1})
	case 1:
		return parseIP(method, string(from[0]))
	}
	misuse(method, "%d addresses: a client has one", len(from))
	return netip.Addr{}
}

func parseIP(method, address string) netip.Addr {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		misuse(method, "%s is not an IP address such as 203.0.113.7", quoteName(address))
	}
	return ip
}

// quoteName quotes a foreign name.
func quoteName(name string) string { return strconv.Quote(printable.Name(name)) }

// misuse panics because the author of a test passed a wrong argument.
func misuse(method, format string, args ...any) {
	panic("fakeserver: " + method + ": " + fmt.Sprintf(format, args...))
}
