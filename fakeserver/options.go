package fakeserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
	"github.com/agent-messaging-service/agentmessaging-go/internal/decisions"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakenames"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Option changes how a Server behaves. A nil option or an unusable value makes
// New panic and Open return an error. If two options set the same thing, the later
// one counts.
type Option func(*config) error

// set makes an option that always succeeds. unless adds a check of the option's value, so
// that an option with a bound is one expression: set(...).unless(wrong, "what is
// allowed").
func set(f func(*config)) Option {
	return func(c *config) error { f(c); return nil }
}

// unless refuses an option with a wrong value. Of several that apply, the last counts, so the
// basic check comes last.
func (o Option) unless(wrong bool, format string, args ...any) Option {
	if wrong {
		return func(*config) error { return fmt.Errorf(format, args...) }
	}
	return o
}

// config holds the result of the options. It never changes once the fake is in use.
type config struct {
	clock        func() time.Time
	coldStart    time.Duration
	messageTexts bool
	callLimit    int
	exchanges    int                  // how many are kept of each conversation; 0 means callLimit, but at least decisions.KeptExchanges
	unknownOK    bool                 // calls to unknown paths and methods do not fail the test
	behavior     *service.Behavior    // the fake's decisions where the interface is silent; never changes
	sources      map[string]source    // the source of each answer, by id; nil before the first decision
	maxima       [spec.LimitCount]int // 0 means the plan's maximum
	key          string               // the default key's text; "" means amk_fake_000001
	plan         Plan                 // of the default key
}

// source says where the answer to a question comes from.
type source int

const (
	chosen   source = iota // by the fake or an option
	observed               // by observe.Run, as the answer of a service
	inferred               // from bounds that were observed
)

// defaultCallLimit is how many calls a fake keeps without WithCallLimit. With texts of 4
// KB these calls take about 10 MB.
const defaultCallLimit = 1000

// newConfig applies the options in their order, from the defaults on.
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
// cold start and faults that wait still wait in real time, or in the bubble's. If now
// panics during a call, the test fails and the call gets no answer. A nil now is an error.
func WithClock(now func() time.Time) Option {
	return set(func(c *config) { c.clock = now }).unless(now == nil, "WithClock: the clock is nil")
}

// WithColdStart makes the first message of a key that has not been warmed up
// (interface 4.2) take d longer. The default is 0. A negative d is an error.
func WithColdStart(d time.Duration) Option {
	return set(func(c *config) { c.coldStart = d }).unless(d < 0, "WithColdStart: %v is negative", d)
}

// WithMessageTexts keeps system prompts, message texts and replies readable in Calls, and
// shows the texts of ByText and ByTextContaining in messages about scripts and faults,
// unless a text looks like a key. The default is to redact these texts. The API key and
// the provider key that a call sends are always redacted. But if a text or a path repeats
// a key of another call, the key shows, because the fake knows only the keys of the call
// itself.
func WithMessageTexts() Option {
	return set(func(c *config) { c.messageTexts = true })
}

// WithLimit sets how many calls each window of limit allows, for keys of every plan. The
// default is the maximum of the key's plan (interface 8). These maxima are preview
// defaults and may change. A load test may need larger ones. An unknown limit and fewer
// than 1 call are errors.
func WithLimit(limit Limit, calls int) Option {
	i := spec.LimitIndex(spec.LimitKey(limit))
	return set(func(c *config) { c.maxima[i] = calls }).
		unless(calls < 1, "WithLimit: %s: %d is less than 1", limit, calls).
		unless(i < 0, "WithLimit: %q: unknown limit; the limits are %s", limit, spec.LimitNames())
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

// maxKeyText is the longest text of a key, in characters. A key is ASCII, so these are
// bytes.
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
		unless(odd, "WithKey: must be visible ASCII characters without a comma").
		unless(len(text) > maxKeyText, "WithKey: at most %d characters", maxKeyText).
		unless(text == "", "WithKey: the text is empty")
}

// WithPlan sets the plan of the default API key. The default is PlanPreview. An
// unknown plan is an error.
func WithPlan(plan Plan) Option {
	plan = cmp.Or(plan, PlanPreview)
	return set(func(c *config) { c.plan = plan }).
		unless(spec.PlanIndex(string(plan)) < 0, "WithPlan: unknown plan; the plans are %s", spec.PlanNames())
}

// FromIP is the IP address that a client calls from, such as "203.0.113.7", for
// the limits per address of interface 8. The default is 192.0.2.1. HTTPClient,
// Direct and Limits panic for a text that is not an IP address, and for more than
// one FromIP.
type FromIP string

// address returns the FromIP that was given, or else an address that RFC 5737 reserves
// for documentation. method is named in the panic for a wrong one.
func address(method string, from []FromIP) netip.Addr {
	if len(from) > 1 {
		misuse(method, "%d addresses: a client has one", len(from))
	}
	text := FromIP("192.0.2.1")
	if len(from) == 1 {
		text = from[0]
	}
	ip, err := netip.ParseAddr(string(text))
	if err != nil {
		misuse(method, "%s is not an IP address such as 203.0.113.7", quoteName(string(text)))
	}
	return ip
}

// Plan is the developer plan of an API key: interface 5 and 8.2. The zero value
// means PlanPreview.
type Plan string

// The plans of interface 8.2, and one with the limits of interface 8.1.
const (
	PlanPreview Plan = spec.PreviewPlan // preview: active, with the preview limits of interface 8.1
	PlanFree    Plan = spec.FreePlan    // free: inactive, so every call is answered 402
	PlanPro     Plan = spec.ProPlan     // pro: active, with the Pro limits of interface 8.2
	PlanBYOK    Plan = spec.BYOKPlan    // byok: active, with the BYOK limits of interface 8.2
)

// checked returns the plan's name, or panics for an unknown plan.
func (p Plan) checked(method string) string {
	name := string(cmp.Or(p, PlanPreview))
	if spec.PlanIndex(name) < 0 {
		misuse(method, "unknown plan %q; the plans are %s", name, spec.PlanNames())
	}
	return name
}

// Limit names one of the limits of interface 8.1, for Exhaust and WithLimit. The
// Limit constants are its values. A variable with an API key has another type, so
// the arguments of Exhaust cannot be swapped.
type Limit string

// The limits of interface 8.1, by their names in the limit_key of a 429. The interface
// shows no names, so the fake chose these. The constants are untyped, so that they can be
// compared with a Limit and with the LimitKey of an agentmessaging.Error, which is a
// string. Comments show the values and the preview defaults.
const (
	LimitKeyMinute           = fakenames.KeyMinute           // key_minute: 60 requests of a key in a minute
	LimitIPMinute            = fakenames.IPMinute            // ip_minute: 120 requests from an address in a minute
	LimitKeyDay              = fakenames.KeyDay              // key_day: 1,000 requests of a key in a day
	LimitAgentCreateKeyDay   = fakenames.AgentCreateKeyDay   // agent_create_key_day: 50 agents created by a key in a day
	LimitAgentCreateIPMinute = fakenames.AgentCreateIPMinute // agent_create_ip_minute: 10 agents created from an address in a minute
	LimitBYOKSetKeyHour      = fakenames.BYOKSetKeyHour      // byok_set_key_hour: 5 provider keys stored by a key in an hour
	LimitWarmUpKeyHour       = fakenames.WarmUpKeyHour       // warmup_key_hour: 3 warm-ups of a key in an hour
)

// keyText computes the text of the n-th key, from 1. The fake stores no texts of keys.
func (c *config) keyText(n int) string {
	if n == 1 && c.key != "" {
		return c.key
	}
	return service.Numbered(cmp.Or(c.key, fakenames.KeyPrefix), n)
}

// defaultBehavior is shared by all fakes without Like and WithDecision, which make a
// separate Behavior. Its answers are guesses: no real service was observed.
var defaultBehavior = newBehavior()

// newBehavior returns a Behavior with the default answer to each question.
func newBehavior() *service.Behavior {
	answers, b := map[string]any{}, new(service.Behavior)
	for _, q := range decisions.All {
		answers[q.ID] = q.Default
	}
	if err := json.Unmarshal(encode(answers), b); err != nil {
		panic(err) // each default has the type of its field
	}
	return b
}

// encode writes answers as JSON.
func encode(answer any) []byte {
	b, _ := json.Marshal(answer) // text, numbers, booleans and maps of them can always be written
	return b
}
