package fakeserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
)

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

// decision is an open question of the interface, and where the answer is in a Behavior.
// at returns a pointer, by which answers are read, written and typed.
type decision struct {
	id, question string
	at           func(*service.Behavior) any // a pointer to the answer
	allowed      []any                       // nil: whatever fits the answer's type
}

// encode writes an answer or a question's default as JSON.
func encode(answer any) []byte {
	b, err := json.Marshal(answer)
	if err != nil {
		panic(err) // the fields of Behavior can all be written
	}
	return b
}

// decisions are all questions, in the order of Server.Decisions. observe.Run asks all
// but the last four by the same ids: a service that nobody can arrange cannot be asked
// for those. The question is for a reader, the pointer says where the answer is kept,
// and the list, if there is one, which answers this fake can give.
var decisions = []decision{
	// Answers and their words.
	{"status", "What does GET /v1/status say of the service?", func(b *service.Behavior) any { return &b.Status }, nil},
	{"error_names", "Which values has error?", func(b *service.Behavior) any { return &b.ErrorNames }, nil},
	{"reason", "Does a 400 say in reason what is wrong?", func(b *service.Behavior) any { return &b.Reason }, nil},
	// Unknown paths, the order of checks, and times.
	{"unknown_method", "Which status has a method that a path does not have?", func(b *service.Behavior) any { return &b.UnknownMethod }, []any{404, 405}},
	{"path_before_key", "Is an unknown path answered 404 without a key too?", func(b *service.Behavior) any { return &b.PathBeforeKey }, nil},
	{"body_before_agent", "Is a wrong body answered 400 before an unknown agent 404?", func(b *service.Behavior) any { return &b.BodyBeforeAgent }, nil},
	{"times", "Which form have times?", func(b *service.Behavior) any { return &b.Times }, []any{service.TimesRFC3339, service.TimesOffset, service.TimesSeconds, service.TimesMilliseconds}},
	// Bodies and bounds.
	{"unknown_members", "Are unknown members of a message accepted?", func(b *service.Behavior) any { return &b.UnknownMembers }, nil},
	{"null_members", "Is null for a member accepted, as if it were absent?", func(b *service.Behavior) any { return &b.NullMembers }, nil},
	{"duplicate_members", "Is a member that is there twice accepted?", func(b *service.Behavior) any { return &b.DuplicateMembers }, nil},
	{"other_case_members", "Is a member in another case accepted?", func(b *service.Behavior) any { return &b.OtherCase }, nil},
	{"behind_body", "Is anything behind the JSON document accepted?", func(b *service.Behavior) any { return &b.BehindBody }, nil},
	{"content_type", "Is a Content-Type other than JSON accepted?", func(b *service.Behavior) any { return &b.ContentType }, nil},
	{"length_unit", "What does a bound on a text count?", func(b *service.Behavior) any { return &b.LengthUnit }, []any{service.UnitPoints, service.UnitUTF16, service.UnitBytes}},
	{"metadata_cap", "How many characters of compact JSON may metadata have?", func(b *service.Behavior) any { return &b.MetadataCap }, nil},
	// Agents, SMS and provider keys.
	{"agent_of_another_key", "Which status has an agent for another key?", func(b *service.Behavior) any { return &b.AgentOfAnotherKey }, []any{404, 200}},
	{"clear_nothing", "Which status has DELETE /v1/byok with nothing stored?", func(b *service.Behavior) any { return &b.ClearNothing }, []any{200, 404}},
	{"sms_status", "Which SMS status does each mode lead to?", func(b *service.Behavior) any { return &b.SMSStatus }, nil},
	{"creation_stores_key", "Is llm.api_key of a creation stored as PUT /v1/byok would store it?", func(b *service.Behavior) any { return &b.CreationStoresKey }, nil},
	{"byok_cleared", "Which status has a message to a byok agent after BYOK was cleared?", func(b *service.Behavior) any { return &b.BYOKCleared }, []any{400, 404, 200}},
	// Limits.
	{"warmup_limit_name", "Which limit_key has the limit on warm-ups?", func(b *service.Behavior) any { return &b.LimitNames.WarmUp }, nil},
	{"refused_operations_spend", "Does a warm-up with a wrong body spend one?", func(b *service.Behavior) any { return &b.OperationsSpend }, nil},
	{"body_before_operation_limit", "Is a wrong body answered 400 where the limit of the operation is spent?", func(b *service.Behavior) any { return &b.BodyBeforeOperation }, nil},
	{"minute_limit_name", "Which limit_key has the limit on requests in a minute?", func(b *service.Behavior) any { return &b.LimitNames.KeyMinute }, nil},
	{"windows", "How does a limit count calls?", func(b *service.Behavior) any { return &b.Windows }, []any{
		service.WindowsFixed, service.WindowsSliding, service.WindowsAligned, service.WindowsWeighted, service.WindowsBucket,
	}},
	{"retry_after", "Does a call go through after exactly the wait that Retry-After names?", func(b *service.Behavior) any { return &b.ExactRetryAfter }, nil},
	{"several_limits", "Of several spent limits, is the one named that opens last?", func(b *service.Behavior) any { return &b.NamesTheLastToOpen }, nil},
	{"limit_before_body", "Is a wrong body answered 429 where the limit on requests is spent?", func(b *service.Behavior) any { return &b.LimitBeforeBody }, nil},
	{"refused_requests_spend", "Which refused calls spend the limit on requests?", func(b *service.Behavior) any { return &b.RequestsSpend }, nil},
	// observe cannot ask these: only a service that somebody has arranged shows them.
	{"other_limit_names", "Which limit_key have the other limits?", func(b *service.Behavior) any { return &b.OtherNames }, nil},
	{"permission_before_body", "Is a wrong body of PUT /v1/byok answered 403 where the key may not?", func(b *service.Behavior) any { return &b.PermissionBeforeBody }, nil},
	{"limit_before_permission", "Is a call that the key may not make answered 429 where the limit on requests is spent?", func(b *service.Behavior) any { return &b.LimitBeforePermission }, nil},
	{"store_down_first", "Is warm-up in byok mode answered 503 where BYOK is not available and nothing is stored?", func(b *service.Behavior) any { return &b.StoreDownFirst }, nil},
}

// possible says which answers the question takes, for Decision.Possible and for errors.
// It follows from the type of the answer where no list is given.
func (d decision) possible() string {
	switch at := d.at(defaultBehavior).(type) {
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
	// The sizes of a bucket have no end, so they are no list.
	if d.id == "windows" {
		words = append(words, `"token bucket of 10" (of any number)`)
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// set takes an answer. An object may leave members out, which keep their answers. After
// an error the Behavior may be half changed; the fake is then not made.
func (d decision) set(in *service.Behavior, answer json.RawMessage) error {
	at := d.at(in)
	var own, given any
	_ = json.Unmarshal(encode(at), &own)
	_ = json.Unmarshal(answer, &given)
	if !sameShape(own, given) || json.Unmarshal(answer, at) != nil || !d.allows(reflect.ValueOf(at).Elem()) {
		return fmt.Errorf("the answer is not %s", d.possible())
	}
	return nil
}

// sameShape reports whether given has the type of own, and an object only members that
// own has, with the types of those. null and an empty text are no answers.
func sameShape(own, given any) bool {
	known, _ := own.(map[string]any)
	members, _ := given.(map[string]any)
	for name, value := range members {
		if !sameShape(known[name], value) {
			return false
		}
	}
	return given != nil && given != "" && reflect.TypeOf(own) == reflect.TypeOf(given)
}

// allows reports whether an answer of the right type is a possible one.
func (d decision) allows(answer reflect.Value) bool {
	switch {
	case d.id == "windows" && service.IsBucket(answer.String()):
		return true
	case d.allowed != nil:
		return slices.Contains(d.allowed, answer.Interface())
	}
	return answer.Kind() != reflect.Int || answer.Int() >= 2
}

// finding is the part of an observe.Finding that Like reads. Its own type keeps package
// observe, which makes calls, out of every program that has a fake.
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
	// The own answer, moved into the bounds: it stays as near to the documented default
	// as it can.
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
// A file of another format, a question that this fake does not know, an answer that
// it cannot give, and bounds that exclude every number are errors.
func Like(observed []byte) Option {
	return func(c *config) error {
		var file struct {
			Format    int
			Decisions map[string]finding
		}
		if json.Unmarshal(observed, &file) != nil {
			return errors.New("Like: not the JSON that observe.Run writes")
		}
		if file.Format != 1 {
			return fmt.Errorf("Like: the format is %d, not 1; write the file with observe.Run of this version", file.Format)
		}
		for id, found := range file.Decisions {
			err := c.decide(id, found.answer)
			if found.AtMost > 0 && found.AtLeast > found.AtMost {
				err = fmt.Errorf("at_least is %d, more than at_most, which is %d", found.AtLeast, found.AtMost)
			}
			if err != nil {
				return fmt.Errorf("Like: %s: %w", quoteName(id), err)
			}
		}
		return nil
	}
}

// decide takes the answer to a question, if there is one. The first decision of a fake
// makes its own Behavior, since defaultBehavior is shared.
func (c *config) decide(id string, answerTo func(decision) (json.RawMessage, source)) error {
	i := slices.IndexFunc(decisions, func(d decision) bool { return d.id == id })
	if i < 0 {
		var known []string
		for _, d := range decisions {
			known = append(known, d.id)
		}
		return errors.New("unknown question; the questions are " + strings.Join(known, ", "))
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
// the limit allows in a window. A "token bucket of 10" saves up at most 10 where the
// window is a minute. An unknown id and an answer that the fake cannot give are errors.
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
