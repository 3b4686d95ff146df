package fakeserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
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
	sources       map[string]source    // where the answers come from, by id; nil before the first decision
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

// Decision is a question that the interface leaves open, and the fake's answer.
type Decision struct {
	ID       string // as in the file that observe.Run writes, such as metadata_cap
	Question string
	Possible string // the answers that Like takes, in words or as JSON
	Default  string // the fake's own answer, as JSON
	Answer   string // the answer in force, as JSON
	Observed bool   // an observation given to Like has the answer, of an object at least some members
	Inferred bool   // the observation has only bounds, and the answer is the default moved between them
}

// Decisions returns how this fake answers each open question of the interface.
func (s *Server) Decisions() []Decision {
	all := make([]Decision, len(decisions))
	for i, d := range decisions {
		all[i] = Decision{
			ID: d.id, Question: d.question, Possible: d.possible(),
			Observed: s.config.sources[d.id] == observed, Inferred: s.config.sources[d.id] == inferred,
			Default: string(encode(d.at(defaultBehavior))), Answer: string(encode(d.at(s.config.behavior))),
		}
	}
	return all
}

// source says where the answer to a question comes from.
type source int

const (
	chosen   source = iota // by the fake or an option
	observed               // by the service that was asked
	inferred               // from bounds that were observed
)

// finding is what an observation says of a question.
type finding struct {
	Answer  json.RawMessage
	AtLeast int `json:"at_least"` // bounds of a number; 0: none
	AtMost  int `json:"at_most"`
}

// answer is what the fake answers likewise; nil where nothing was found out.
func (f finding) answer(d decision) (json.RawMessage, source) {
	switch text := string(f.Answer); text {
	case "", "null", `"unknown"`:
	default:
		return f.Answer, observed
	}
	own, isNumber := d.at(defaultBehavior).(*int)
	if !isNumber || d.allowed != nil || f.AtLeast <= 0 && f.AtMost <= 0 {
		return nil, chosen
	}
	within := max(*own, f.AtLeast)
	if f.AtMost > 0 {
		within = min(within, f.AtMost)
	}
	return encode(within), inferred
}

// Like makes the fake answer the open questions of the interface as another
// service did. observed is the JSON file that observe.Run and the command
// agentmessaging-fake observe write. Where the file has only bounds, the fake's
// own answer is moved between them. What was not found out keeps the fake's own
// answer; Decisions tells these three apart.
//
// A file of another format, a question that this fake does not know, and an
// answer that it cannot give are errors. Later options overrule it.
func Like(observed []byte) Option {
	return func(c *config) error {
		var file struct {
			Format    int
			Decisions map[string]finding
		}
		if err := json.Unmarshal(observed, &file); err != nil {
			return fmt.Errorf("Like: %w", err)
		}
		if file.Format != 1 {
			return fmt.Errorf("Like: the format is %d, not 1", file.Format)
		}
		for id, found := range file.Decisions {
			if err := c.decide(id, found.answer); err != nil {
				return fmt.Errorf("Like: %s: %w", quoteName(id), err)
			}
		}
		return nil
	}
}

// decide takes the answer to a question, if there is one.
func (c *config) decide(id string, answerTo func(decision) (json.RawMessage, source)) error {
	i := slices.IndexFunc(decisions, func(d decision) bool { return d.id == id })
	if i < 0 {
		return errors.New("this fake knows no such question")
	}
	answer, from := answerTo(decisions[i])
	if answer == nil {
		return nil
	}
	if c.sources == nil {
		c.behavior, c.sources = service.NewBehavior(), map[string]source{}
	}
	c.sources[id] = from
	return decisions[i].set(c.behavior, answer)
}

// WithDecision answers one open question of the interface otherwise than the
// fake does by itself, such as "windows" with "sliding" or "metadata_cap" with
// 8000. Decisions lists the questions and their possible answers. A "token bucket"
// saves up as many calls as the limit has, a "token bucket of 10" at most 10. An
// unknown question and an answer that the fake cannot give are errors.
func WithDecision(id string, answer any) Option {
	return func(c *config) error {
		value, err := json.Marshal(answer)
		if err == nil {
			err = c.decide(id, func(decision) (json.RawMessage, source) { return value, chosen })
		}
		if err != nil {
			return fmt.Errorf("WithDecision: %s: %w", quoteName(id), err)
		}
		return nil
	}
}
