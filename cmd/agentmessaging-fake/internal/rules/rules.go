// Package rules makes scripted replies and faults from JSON, and shows them as JSON.
//
// The control interface takes a Rule, and the file of --replies holds rules. Set.Add
// checks the whole rule, makes the Script or the Injection of package fakeserver from it,
// and keeps both as an Active. The JSON of a fault has its kind and the members of this
// kind: faultKinds lists them, and openapi.yaml describes them to users. Package
// fakeserver decides what a fault does, and which of several rules acts.
package rules

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/agent-messaging-service/agentmessaging-go/cmd/agentmessaging-fake/internal/jsonapi"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakeadmin"
	"github.com/agent-messaging-service/agentmessaging-go/internal/faults"
	"github.com/agent-messaging-service/agentmessaging-go/internal/printable"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Rule is a Script or an Injection.
type Rule interface {
	// active returns the rule as answers show it. The error says what is wrong with the
	// members that only this type has.
	active() (*Active, error)
}

// Script is a script of replies, in the form of a body of POST replies and of the file of
// --replies.
type Script struct {
	Replies []fakeserver.Reply
	Conditions
}

// Injection is a fault with its calls, in the form of a body of POST faults.
type Injection struct {
	Fault *Fault
	From  *int
	Conditions
}

// Conditions say on which calls a rule acts. If several of Times, Nth, Chance and the From of a
// fault are set, the rule acts only on calls that all of them allow.
type Conditions struct {
	Match Match `json:"match"`
	// Times is how often the rule acts at most; nil means no limit.
	Times *int `json:"times,omitempty"`
	// Nth makes the rule act only on the n-th call that matches, counted from 1; nil means
	// on each.
	Nth *int `json:"nth,omitempty"`
	// Chance is the probability that the rule acts on a call that matches, from 0 to 1; nil
	// means always. Seed fixes the decisions; 0 means 1.
	Chance *float64 `json:"chance,omitempty"`
	Seed   uint64   `json:"seed,omitempty"`
	// Required makes Unmet return the rule until it has acted: Times times, or once if Times
	// is nil or Nth is set.
	Required bool `json:"required,omitempty"`
}

// Active is a rule in force, or a rule that has acted as often as it may. It stays in the
// list until it is removed, so that a test can ask how often it has acted.
type Active struct {
	// ID is the kind and a number, such as fault_000001. No later rule of the Set gets the same
	// ID. A reset makes a new Set, whose numbers begin again at 1.
	ID string `json:"id"`
	// Name is the Go call of a fault, such as LoseReply(Hang()); "" for a script.
	Name string `json:"name,omitempty"`
	// Either Fault or Replies is set: Fault for a fault, Replies for a script.
	Fault   *Fault             `json:"fault,omitempty"`
	Replies []fakeserver.Reply `json:"replies,omitempty"`
	// From makes a fault act on the n-th call that matches and on later ones, counted from
	// 1; nil means from the first.
	From *int `json:"from,omitempty"`
	Conditions
	// Hits is how often the rule had acted when this copy was made.
	Hits int `json:"hits"`
	// Why is only set by Unmet. It says why a required rule has not acted, or not as often
	// as it must.
	Why string `json:"why,omitempty"`

	// kind is the kind of the rule, and installed the rule in the fake.
	kind      Kind
	installed interface { // the *fakeserver.Script or *fakeserver.Injection
		Hits() int
		Remove()
	}
}

// Kind is the kind of a rule. Identifiers such as fault_000001 begin with it.
type Kind string

// The kinds of rules.
const (
	Replies Kind = "reply"
	Faults  Kind = "fault"
)

// Match picks calls. A call must match every member that is set. An empty Match picks
// every call.
type Match struct {
	Endpoint fakeserver.Endpoint `json:"endpoint,omitempty"`
	AgentID  jsonapi.NonEmpty    `json:"agent_id,omitempty"`
	// Key is the label of a key, such as key_000001.
	Key jsonapi.NonEmpty `json:"key,omitempty"`
	// Text and TextContaining match only messages. An empty Text is the text of an empty
	// message, so nil means any.
	Text           *string          `json:"text,omitempty"`
	TextContaining jsonapi.NonEmpty `json:"text_containing,omitempty"`
}

// NoSuchKey is the reason to refuse a label, in a path or a body. Keys are named by their
// labels and not by their texts, since logs show URLs.
const NoSuchKey = "no key has this label, such as key_000001; GET keys lists them"

// Matchers returns the matchers that pick the calls. The error names the wrong member.
func (m *Match) Matchers(fake *fakeserver.Server) (all []fakeserver.Matcher, _ error) {
	if m.Endpoint != "" {
		if _, err := endpointNamed(string(m.Endpoint)); err != nil {
			return nil, err
		}
		all = append(all, fakeserver.ByEndpoint(m.Endpoint))
	}
	if m.AgentID != "" {
		all = append(all, fakeserver.ByAgent(string(m.AgentID)))
	}
	// Users name keys by their labels, but package fakeserver needs the text.
	if m.Key != "" {
		_, key, known := fakeadmin.Of[fakeserver.Call](fake).KeyLabeled(string(m.Key))
		if !known {
			return nil, errors.New("key: " + NoSuchKey)
		}
		all = append(all, fakeserver.ByKey(key))
	}
	if m.Text != nil {
		all = append(all, fakeserver.ByText(*m.Text))
	}
	if m.TextContaining != "" {
		all = append(all, fakeserver.ByTextContaining(string(m.TextContaining)))
	}
	return all, nil
}

// endpointNamed finds an endpoint such as "GET /v1/status". The error lists all
// endpoints.
func endpointNamed(name string) (*spec.Endpoint, error) {
	method, path, _ := strings.Cut(name, " ")
	e := spec.Find(method, path)
	if e == nil {
		return nil, errors.New("endpoint: must be one of " + spec.EndpointNames())
	}
	return e, nil
}

// active refuses a member of a reply that has no effect with the reply's status, since
// its author believes that it has one.
func (r Script) active() (*Active, error) {
	if len(r.Replies) == 0 {
		return nil, errors.New("replies: give at least one")
	}
	for i, reply := range r.Replies {
		isError := reply.Status != 0 && reply.Status != http.StatusOK
		switch {
		case isError && !spec.SendMessage.Lists(reply.Status):
			return nil, fmt.Errorf("replies[%d].status: must be one of %s; a fault of kind answer gives any status", i, strings.ReplaceAll(strings.Trim(fmt.Sprint(spec.SendMessage.Errors), "[]"), " ", ", "))
		case isError && (reply.Text != "" || len(reply.Warnings) > 0):
			return nil, fmt.Errorf("replies[%d]: an error has no text and no warnings, but code and reason", i)
		case !isError && reply.Code+reply.Reason != "":
			return nil, fmt.Errorf("replies[%d]: code and reason need the status of an error", i)
		}
	}
	return &Active{kind: Replies, Replies: r.Replies, Conditions: r.Conditions}, nil
}

// active refuses an injection without a fault.
func (r Injection) active() (*Active, error) {
	if r.Fault == nil {
		return nil, errors.New("fault: is required")
	}
	return &Active{kind: Faults, Fault: r.Fault, From: r.From, Conditions: r.Conditions}, nil
}

// Set holds the rules of a fake, in the order in which they were made. Only one goroutine
// at a time may use it; package control holds its lock.
type Set struct {
	fake *fakeserver.Server
	// count is how many rules of each kind were made, so that the Set uses no ID twice.
	count map[Kind]int
	rules []*Active
}

// NewSet returns an empty Set.
func NewSet(fake *fakeserver.Server) *Set {
	return &Set{fake: fake, count: map[Kind]int{}}
}

// Add puts a rule in force and returns it with its identifier. If two rules match, the
// newer acts.
func (s *Set) Add(r Rule) (m *Active, err error) {
	defer PanicAsError(&err)
	if m, err = r.active(); err != nil {
		return nil, err
	}
	matchers, err := m.Match.Matchers(s.fake)
	if err != nil {
		return nil, fmt.Errorf("match.%w", err)
	}
	m.install(s.fake, matchers)
	// A refused rule takes no number.
	s.count[m.kind]++
	m.ID = fmt.Sprintf("%s_%06d", m.kind, s.count[m.kind])
	s.rules = append(s.rules, m)
	return m, nil
}

// install puts the rule into the fake in steps. The rule does not act before the last step,
// and never acts if package fakeserver refuses a step.
func (m *Active) install(fake *fakeserver.Server, matchers []fakeserver.Matcher) {
	var ready atomic.Bool
	defer func() {
		if !ready.Load() { // otherwise every later call would run the matchers of the refused rule
			m.installed.Remove()
		}
	}()
	matchers = append(matchers, fakeserver.Where(func(fakeserver.Call) bool { return ready.Load() }))
	if m.kind == Replies {
		m.script(fake.OnMessage(matchers...))
	} else {
		m.inject(fake.Inject(m.Fault.Fault, matchers...))
	}
	ready.Store(true)
}

// script adds a step for each reply; the last step repeats. It uses functions, since a
// reply may be an error or have warnings.
func (m *Active) script(script *fakeserver.Script) {
	m.installed = script
	for _, reply := range m.Replies {
		script.ReplyFunc(func(fakeserver.Message) fakeserver.Reply { return reply })
	}
	setConditions(m.Conditions, script)
}

// inject sets the parts of a rule that only an Injection has. It names the fault by its
// Go call.
func (m *Active) inject(injection *fakeserver.Injection) {
	m.Name, m.installed = m.Fault.String(), injection
	if m.From != nil {
		injection.From(*m.From)
	}
	setConditions(m.Conditions, injection)
}

// setConditions sets the conditions that a script and an injection share. R is the type of
// the rule, which its methods also return. A chance without a seed has seed 1, so that
// each run is the same.
func setConditions[R interface {
	Times(n int) R
	Nth(n int) R
	Chance(p float64, seed uint64) R
}](r Conditions, made R) {
	if r.Times != nil {
		made.Times(*r.Times)
	}
	if r.Nth != nil {
		made.Nth(*r.Nth)
	}
	if r.Chance != nil {
		made.Chance(*r.Chance, cmp.Or(r.Seed, 1))
	}
}

// All returns the rules of a kind.
func (s *Set) All(kind Kind) []Active {
	return s.copiesOf(func(m *Active) bool { return m.kind == kind })
}

// Unmet returns the required rules that have not acted as often as they must. A test in
// another language asks for them at its end.
func (s *Set) Unmet() []Active {
	unmet := s.copiesOf(func(m *Active) bool {
		wanted := 1
		if m.Times != nil && m.Nth == nil { // a rule with Nth never acts twice
			wanted = *m.Times
		}
		return m.Required && m.installed.Hits() < wanted
	})
	for i, m := range unmet {
		if m.Hits == 0 {
			unmet[i].Why = fakeadmin.Of[fakeserver.Call](s.fake).WhyUnused(m.installed)
		} else {
			unmet[i].Why = fmt.Sprintf("acted %d of %d times", m.Hits, *m.Times)
		}
	}
	return unmet
}

// copiesOf returns copies of the wanted rules, with their hits so far. The list is never
// nil, so that JSON never has null for it.
func (s *Set) copiesOf(wanted func(*Active) bool) []Active {
	all := []Active{}
	for _, m := range s.rules {
		if wanted(m) {
			shown := *m
			shown.Hits = m.installed.Hits()
			all = append(all, shown)
		}
	}
	return all
}

// Remove ends all rules of a kind or, if id is set, only the rule with this identifier.
// It reports whether there was any.
func (s *Set) Remove(kind Kind, id string) bool {
	before := len(s.rules)
	s.rules = slices.DeleteFunc(s.rules, func(m *Active) bool {
		ends := m.kind == kind && (id == "" || m.ID == id)
		if ends {
			m.installed.Remove()
		}
		return ends
	})
	return len(s.rules) < before
}

// Fault is a fault from a JSON object with a kind, and the members that the kind takes.
type Fault struct {
	fakeserver.Fault
	// written is the JSON object, so that a rule is shown as it was given.
	written json.RawMessage
}

// MarshalJSON returns the object as it was given, without members that were null.
func (f *Fault) MarshalJSON() ([]byte, error) { return f.written, nil }

// UnmarshalJSON makes the fault. Like the functions of package fakeserver, it panics with
// a sentence for a value that a fault cannot have.
func (f *Fault) UnmarshalJSON(raw []byte) (err error) {
	*f, err = parseFault(raw, false)
	return err
}

// lostBy is the fault in the member how of lose_reply. It must not be a lose_reply itself:
// otherwise a long body could nest thousands of them.
type lostBy struct{ Fault }

// UnmarshalJSON makes the fault.
func (f *lostBy) UnmarshalJSON(raw []byte) (err error) {
	f.Fault, err = parseFault(raw, true)
	return err
}

// namedFault is a fault of package faults, which package sweep uses too. In JSON it is the
// name.
type namedFault struct{ fakeserver.Fault }

// UnmarshalJSON finds the fault by its name.
func (f *namedFault) UnmarshalJSON(raw []byte) error {
	name, _ := strictjson.String(raw)
	var names []string
	for _, known := range faults.All() {
		switch known.Name {
		case faults.Refused: // a socket accepts a connection before the fake sees it
		case name:
			f.Fault = known.Fault
			return nil
		default:
			names = append(names, known.Name)
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(names, ", "))
}

// faultMembers has the members of all kinds. Package fakeserver refuses a value that a
// kind cannot have when the fault is made.
type faultMembers struct {
	Kind        string
	Duration    jsonapi.Duration
	Every       jsonapi.Duration
	Status      int
	Body        string
	ContentType string `json:"content_type"`
	RetryAfter  string `json:"retry_after"`
	Bytes       int
	How         lostBy
	Name        namedFault
}

// faultKind says which members a kind of fault has, and how the fault is made.
type faultKind struct {
	// needs lists the members that the kind requires, takes the other members that it may
	// have, both separated by spaces. The member kind is always allowed.
	needs, takes string
	// fault makes the fault from checked members.
	fault func(faultMembers) fakeserver.Fault
}

const loseReply = "lose_reply"

// faultKinds maps the names of openapi.yaml to the kinds.
var faultKinds = map[string]faultKind{
	"latency":          {"duration", "", func(m faultMembers) fakeserver.Fault { return fakeserver.Latency(m.Duration.Duration) }},
	"answer":           {"status", "body", func(m faultMembers) fakeserver.Fault { return fakeserver.Answer(m.Status, m.Body) }},
	"raw_answer":       {"status", "body content_type", func(m faultMembers) fakeserver.Fault { return fakeserver.RawAnswer(m.Status, m.ContentType, m.Body) }},
	"rate_limited":     {"", "retry_after", func(m faultMembers) fakeserver.Fault { return fakeserver.RateLimited(m.RetryAfter) }},
	"hang":             {"", "", func(faultMembers) fakeserver.Fault { return fakeserver.Hang() }},
	"close_early":      {"", "", func(faultMembers) fakeserver.Fault { return fakeserver.CloseEarly() }},
	"reset_connection": {"", "", func(faultMembers) fakeserver.Fault { return fakeserver.ResetConnection() }},
	"truncate_reply":   {"bytes", "", func(m faultMembers) fakeserver.Fault { return fakeserver.TruncateReply(m.Bytes) }},
	"reset_reply":      {"bytes", "", func(m faultMembers) fakeserver.Fault { return fakeserver.ResetReply(m.Bytes) }},
	"drip_reply":       {"bytes", "every", func(m faultMembers) fakeserver.Fault { return fakeserver.DripReply(m.Bytes, m.Every.Duration) }},
	"go_away":          {"", "", func(faultMembers) fakeserver.Fault { return fakeserver.GoAway() }},
	loseReply:          {"how", "", func(m faultMembers) fakeserver.Fault { return fakeserver.LoseReply(m.How.Fault.Fault) }},
	"named":            {"name", "", func(m faultMembers) fakeserver.Fault { return m.Name.Fault }},
}

// parseFault makes a fault from an object, which for an inner fault is the member how of
// another.
func parseFault(raw []byte, inner bool) (f Fault, _ error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil {
		return f, errors.New("must be of type object")
	}
	// A null member counts as absent, as in every object of the control interface.
	maps.DeleteFunc(given, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	name, _ := strictjson.String(given["kind"])
	kind, known := faultKinds[name]
	if !known || inner && name == loseReply {
		return f, fmt.Errorf("its kind must be one of %s", strings.Join(slices.Sorted(maps.Keys(faultKinds)), ", "))
	}
	// The members are checked first, because Decode would accept members of other kinds.
	if err := kind.check(name, given); err != nil {
		return f, err
	}
	m, err := jsonapi.Decode[faultMembers](raw)
	if err != nil {
		return f, err
	}
	if given["how"] != nil {
		given["how"] = m.How.written // the inner fault without its nulls, too
	}
	f.Fault = kind.fault(m)
	f.written, _ = json.Marshal(given)
	return f, nil
}

// check refuses an object that lacks a member that the kind needs, or has a member that
// it does not take.
func (k faultKind) check(name string, given map[string]json.RawMessage) error {
	needs, takes := strings.Fields(k.needs), strings.Fields("kind "+k.needs+" "+k.takes)
	for _, member := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(takes, member) {
			return fmt.Errorf("%s does not take %s; it takes: %s", name, printable.Name(member), strings.Join(takes, ", "))
		}
	}
	for _, member := range needs {
		if given[member] == nil {
			return fmt.Errorf("%s needs %s", name, member)
		}
	}
	return nil
}

// Fitting returns the faults that can hit a call of an endpoint, such as "GET
// /v1/status": the faults of package sweep except a refused connection.
func Fitting(endpoint string) ([]faults.Fault, error) {
	e, err := endpointNamed(endpoint)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(faults.For(e), func(f faults.Fault) bool { return f.Name == faults.Refused }), nil
}

// PanicAsError must be deferred. It recovers the panic with which package fakeserver
// refuses a wrong argument, and turns it into an error. The error says what is allowed,
// after the name of the Go method as JSON writes names: "set_sms: unknown status". Where a
// member has a method of its name, such as nth, that is the member. Other panics go on.
func PanicAsError(err *error) {
	p := recover()
	text, _ := p.(string)
	reason, refused := strings.CutPrefix(text, "fakeserver: ")
	switch method, why, _ := strings.Cut(reason, ":"); {
	case refused:
		*err = errors.New(strings.ToLower(wordEnd.ReplaceAllString(method, "${1}_$2")) + ":" + why)
	case p != nil:
		panic(p)
	}
}

// wordEnd finds the end of a word in a Go name.
var wordEnd = regexp.MustCompile(`([a-z])([A-Z])`)
