package fakeserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Decision is a question that the interface leaves open, and the fake's answer.
type Decision struct {
	ID       string // as in the file that observe.Run writes, such as metadata_cap
	Question string
	Possible string // the answers that Like takes, in words or as JSON
	Default  string // the fake's own answer, as JSON
	Answer   string // the answer in force, as JSON
	Observed bool   // an observation given to Like answers it; false: it is the default, or what an option set
}

// Decisions returns how this fake answers each open question of the interface.
func (s *Server) Decisions() []Decision {
	all := make([]Decision, len(decisions))
	for i, d := range decisions {
		all[i] = Decision{
			ID: d.id, Question: d.question, Possible: d.possible(), Observed: s.config.observed[d.id],
			Default: string(encode(d.at(own))), Answer: string(encode(d.at(s.config.choices))),
		}
	}
	return all
}

// Like makes the fake answer the open questions of the interface as another
// service did. observed is the JSON file that observe.Run and the command
// agentmessaging-fake observe write. What was not found out keeps the fake's
// own answer; Decisions tells which those are.
//
// A file of another format, a question that this fake does not know, and an
// answer that it cannot give are errors. Options behind Like overrule it.
func Like(observed []byte) Option {
	return func(c *config) error {
		var file struct {
			Format    int
			Decisions map[string]struct{ Answer json.RawMessage }
		}
		if err := json.Unmarshal(observed, &file); err != nil {
			return fmt.Errorf("Like: %w", err)
		}
		if file.Format != 1 {
			return fmt.Errorf("Like: the format is %d, not 1", file.Format)
		}
		for id, found := range file.Decisions {
			if err := c.decide(id, found.Answer, true); err != nil {
				return fmt.Errorf("Like: %s: %w", quoteName(id), err)
			}
		}
		return nil
	}
}

// decide takes the answer to a question. Of an observation it may be missing.
func (c *config) decide(id string, answer json.RawMessage, observed bool) error {
	i := slices.IndexFunc(decisions, func(d decision) bool { return d.id == id })
	switch {
	case i < 0:
		return errors.New("this fake knows no such question")
	case observed && (len(answer) == 0 || string(answer) == "null" || string(answer) == `"unknown"`):
		return nil // nothing was found
	}
	if c.observed == nil {
		c.choices, c.observed = newChoices(), map[string]bool{}
	}
	c.observed[id] = observed
	return decisions[i].set(c.choices, answer)
}

// WithDecision answers one open question of the interface otherwise than the
// fake does by itself, such as "windows" with "sliding" or "metadata_cap" with
// 8000. Decisions lists the questions and their possible answers. An unknown
// question and an answer that the fake cannot give are errors.
func WithDecision(id string, answer any) Option {
	return func(c *config) error {
		value, err := json.Marshal(answer)
		if err == nil {
			err = c.decide(id, value, false)
		}
		if err != nil {
			return fmt.Errorf("WithDecision: %s: %w", quoteName(id), err)
		}
		return nil
	}
}

type decision struct {
	id, question string
	at           func(*choices) any // a pointer to the answer
	allowed      []any              // nil: whatever fits the answer's type
}

// decisions are all questions. observe.Run asks them by the same ids.
var decisions = []decision{
	{"status", "What does GET /v1/status say of the service?", func(c *choices) any { return &c.status }, nil},
	{"error_names", "Which values has error?", func(c *choices) any { return &c.errorNames }, nil},
	{"reason", "Does a 400 say in reason what is wrong?", func(c *choices) any { return &c.reason }, nil},
	{"unknown_method", "Which status has a method that a path does not have?", func(c *choices) any { return &c.unknownMethod }, []any{404, 405}},
	{"path_before_key", "Is an unknown path answered 404 without a key too?", func(c *choices) any { return &c.pathBeforeKey }, nil},
	{"body_before_agent", "Is a wrong body answered 400 before an unknown agent 404?", func(c *choices) any { return &c.bodyBeforeAgent }, nil},
	{"times", "Which form have times?", func(c *choices) any { return &c.times }, []any{timesRFC3339, timesOffset, timesSeconds, timesMilliseconds}},
	{"unknown_members", "Are unknown members of a message accepted?", func(c *choices) any { return &c.unknownMembers }, nil},
	{"null_members", "Is null for a member accepted, as if it were absent?", func(c *choices) any { return &c.nullMembers }, nil},
	{"duplicate_members", "Is a member that is there twice accepted?", func(c *choices) any { return &c.duplicateMembers }, nil},
	{"other_case_members", "Is a member in another case accepted?", func(c *choices) any { return &c.otherCase }, nil},
	{"behind_body", "Is anything behind the JSON document accepted?", func(c *choices) any { return &c.behindBody }, nil},
	{"content_type", "Is a Content-Type other than JSON accepted?", func(c *choices) any { return &c.contentType }, nil},
	{"length_unit", "What does a bound on a text count?", func(c *choices) any { return &c.lengthUnit }, []any{unitPoints, unitUTF16, unitBytes}},
	{"metadata_cap", "How many characters of compact JSON may metadata have?", func(c *choices) any { return &c.metadataCap }, nil},
	{"agent_of_another_key", "Which status has an agent for another key?", func(c *choices) any { return &c.agentOfAnotherKey }, []any{404, 200}},
	{"clear_nothing", "Which status has DELETE /v1/byok with nothing stored?", func(c *choices) any { return &c.clearNothing }, []any{200, 404}},
	{"sms_status", "Which SMS status does each mode lead to?", func(c *choices) any { return &c.smsStatus }, nil},
	{"creation_stores_key", "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", func(c *choices) any { return &c.creationStoresKey }, nil},
	{"byok_cleared", "Which status has a message to a byok agent after BYOK was cleared?", func(c *choices) any { return &c.byokCleared }, []any{400, 404, 200}},
	{"warmup_limit_name", "Which limit_key has the limit on warm-ups?", func(c *choices) any { return &c.limitNames.warmUp }, nil},
	{"refused_operations_spend", "Does a warm-up with a wrong body spend one?", func(c *choices) any { return &c.operationsSpend }, nil},
	{"body_before_operation_limit", "Is a wrong body answered 400 where the limit of the operation is spent?", func(c *choices) any { return &c.bodyBeforeOperation }, nil},
	{"minute_limit_name", "Which limit_key has the limit on requests in a minute?", func(c *choices) any { return &c.limitNames.keyMinute }, nil},
	{"windows", "Is the window of a limit fixed, or does it slide?", func(c *choices) any { return &c.windows }, []any{windowsFixed, windowsSliding}},
	{"retry_after", "Does a call go through after exactly the wait that Retry-After names?", func(c *choices) any { return &c.exactRetryAfter }, nil},
	{"several_limits", "Of several spent limits, is the one named that opens last?", func(c *choices) any { return &c.namesTheLastToOpen }, nil},
	{"limit_before_body", "Is a wrong body answered 429 where the limit on requests is spent?", func(c *choices) any { return &c.limitBeforeBody }, nil},
	{"refused_requests_spend", "Which refused calls spend the limit on requests?", func(c *choices) any { return &c.requestsSpend }, nil},
	{"other_limit_names", "Which limit_key have the other limits?", func(c *choices) any { return &c.otherNames }, nil},
	{"permission_before_body", "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", func(c *choices) any { return &c.permissionBeforeBody }, nil},
	{"limit_before_permission", "Is a call that the key may not make answered 429 where the limit on requests is spent?", func(c *choices) any { return &c.limitBeforePermission }, nil},
	{"store_down_first", "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?", func(c *choices) any { return &c.storeDownFirst }, nil},
}

func (d decision) possible() string {
	switch at := d.at(own).(type) {
	case *bool:
		return "true or false"
	case *int:
		if d.allowed == nil {
			return "a number from 2"
		}
	case *string:
		if d.allowed == nil {
			return "a name"
		}
	default:
		return "an object with members of " + string(encode(at))
	}
	words := make([]string, len(d.allowed))
	for i, a := range d.allowed {
		words[i] = string(encode(a))
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// set takes an answer. An object may leave members out, and has no others than
// the fake's own answer.
func (d decision) set(in *choices, answer json.RawMessage) error {
	value := reflect.ValueOf(d.at(in)).Elem()
	known := 0
	if value.Kind() == reflect.Map {
		known = value.Len()
	}
	decoder := json.NewDecoder(bytes.NewReader(answer))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(d.at(in))
	switch {
	case err != nil,
		value.Kind() == reflect.Map && value.Len() != known,
		value.Kind() == reflect.Int && d.allowed == nil && value.Int() < 2,
		value.Kind() == reflect.String && value.String() == "",
		d.allowed != nil && !slices.Contains(d.allowed, value.Interface()):
		return fmt.Errorf("the answer is not %s", d.possible())
	}
	return nil
}
