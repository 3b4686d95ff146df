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
// New panic and Open return an error. Of two options that set the same, the later
// one counts.
type Option func(*config) error

// set makes an option that always succeeds; unless adds a check of its value.
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
	unknownOK    bool
	behavior     *service.Behavior    // what the fake does where the interface is silent; never changes
	sources      map[string]source    // where the answers come from, by id; nil before the first decision
	maxima       [spec.LimitCount]int // 0 means the plan's maximum
	key          string               // the default key's text; "" means amk_fake_000001
	plan         Plan                 // of the default key
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

// WithClock makes the fake read the time from now. The default is time.Now, which
// follows the clock of a synctest bubble. Advance and Sleep add to the time. The
// cold start and faults that wait still wait in real time, or in the bubble's. A
// nil now is an error.
func WithClock(now func() time.Time) Option {
	return set(func(c *config) { c.clock = now }).unless(now == nil, "WithClock: the clock is nil")
}

// WithColdStart makes the first message of a key that has not been warmed up
// (interface 4.2) take d longer. The default is 0. A negative d is an error.
func WithColdStart(d time.Duration) Option {
	return set(func(c *config) { c.coldStart = d }).unless(d < 0, "WithColdStart: %v is negative", d)
}

// WithMessageTexts keeps system prompts, message texts and replies readable in
// Calls and the log of a failed test. The default is to redact them. API keys and
// provider keys are always redacted.
func WithMessageTexts() Option {
	return set(func(c *config) { c.messageTexts = true })
}

// WithLimit sets how many calls each window of limit allows, for keys of every
// plan. The default is the maximum of the key's plan (interface 8). Those are
// preview defaults and may change; a load test may need larger ones. An unknown
// limit and less than 1 call are errors.
func WithLimit(limit Limit, calls int) Option {
	i := spec.LimitIndex(spec.LimitKey(limit))
	return set(func(c *config) { c.maxima[i] = calls }).
		unless(calls < 1, "WithLimit: %s: %d is less than 1", limit, calls).
		unless(i < 0, "WithLimit: unknown limit; the limits are %s", limitKeys())
}

// WithCallLimit sets how many calls the fake keeps for Calls: the newest n. The
// default is 1,000. Conversation keeps as many exchanges of each agent, but never
// fewer than 1,000. 0 keeps no calls. math.MaxInt keeps all, and memory then grows
// for as long as the fake is used. A negative n is an error.
func WithCallLimit(n int) Option {
	return set(func(c *config) { c.callLimit = n }).unless(n < 0, "WithCallLimit: %d is negative", n)
}

// WithUnknownRoutes allows calls to unknown paths and methods: they are answered
// 404 or 405 and do not fail the test. The default is that each of the first ten
// such calls fails the test of New. A fake of Open always allows them, since other
// programs may call it.
func WithUnknownRoutes() Option {
	return set(func(c *config) { c.unknownOK = true })
}

const maxKeyText = 256

// WithKey makes text the default API key, so that fakes in one program have
// distinct keys, or a program under test keeps its configured key. The default is
// amk_fake_000001. IssueKey then returns text, an underscore and a number, such as
// text_000002; the labels in Call.Key stay key_000001, key_000002 and so on. The
// fake keeps the text, and only Key and IssueKey show it. An empty text, one of
// more than 256 characters, and any character but visible ASCII without the comma
// are errors.
func WithKey(text string) Option {
	odd := strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' })
	return set(func(c *config) { c.key = text }).
		unless(odd, "WithKey: only visible ASCII characters but the comma").
		unless(len(text) > maxKeyText, "WithKey: at most %d characters", maxKeyText).
		unless(text == "", "WithKey: the text is empty")
}

// WithPlan sets the plan of the default API key. The default is PlanPreview. An
// unknown plan is an error.
func WithPlan(plan Plan) Option {
	known := plan == "" || plan.isKnown()
	return set(func(c *config) { c.plan = cmp.Or(plan, PlanPreview) }).unless(!known, "WithPlan: unknown plan; the plans are %s", planNames)
}

// FromIP is the IP address that a client calls from, such as "203.0.113.7", for
// the limits per address of interface 8. The default is 192.0.2.1. HTTPClient,
// Direct and Limits panic for a text that is not an IP address, and for more than
// one FromIP.
type FromIP string

// address returns the FromIP that was given, or else an address that RFC 5737
// reserves for documentation.
func address(method string, from []FromIP) netip.Addr {
	text := FromIP("192.0.2.1")
	switch len(from) {
	case 0:
	case 1:
		text = from[0]
	default:
		misuse(method, "%d addresses: a client has one", len(from))
	}
	ip, err := netip.ParseAddr(string(text))
	if err != nil {
		misuse(method, "%s is not an IP address such as 203.0.113.7", quoteName(string(text)))
	}
	return ip
}

// Decision is a question that the interface leaves open, and the fake's answer.
type Decision struct {
	ID       string // for WithDecision, and in the file that observe.Run writes, such as metadata_cap
	Question string // in words
	Possible string // the answers that Like and WithDecision take, in words or as JSON
	Default  string // the fake's own answer, as JSON
	Answer   string // the answer in force, as JSON
	Observed bool   // Like's observation has this answer (of an answer that is an object: at least one member)
	Inferred bool   // Like's observation has only bounds: the answer is the number between them nearest to Default
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

// finding is the part of an observe.Finding that Like reads.
type finding struct {
	Answer  json.RawMessage
	AtLeast int `json:"at_least"` // bounds of a number; 0: none
	AtMost  int `json:"at_most"`
}

// answer returns the answer that the fake takes from the finding, and nil if the
// finding has neither an answer nor a bound.
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
// service did. observed is the content of the JSON file that
// observe.Observation.WriteFile and the command agentmessaging-fake observe write.
// If the file has only bounds of a number, the fake takes the number between them
// that is nearest to its own answer. A question that the file does not answer
// keeps the fake's own answer, which is the default for all of them. Decisions
// shows which of the three cases each answer is. A later option replaces its
// answers.
//
// A file of another format, a question that this fake does not know, and an
// answer that it cannot give are errors.
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
			return fmt.Errorf("Like: the format is %d, not 1; write the file with observe.Run of this version", file.Format)
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
		return errors.New("this fake knows no such question; Server.Decisions lists all")
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

// WithDecision changes the fake's answer to one open question of the interface:
//
//	fakeserver.WithDecision("metadata_cap", 8000)
//	fakeserver.WithDecision("windows", "token bucket of 10")
//
// id is the ID of one of Decisions, which also shows the possible answers and the
// default. answer is encoded as JSON. A "token bucket" saves up as many calls as
// the limit allows in a window, a "token bucket of 10" at most 10. An unknown id
// and an answer that the fake cannot give are errors.
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
