package spec

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the JSON type of a request member.
type Kind uint8

const (
	String     Kind = iota // a string
	Object                 // an object with exactly the members in Fields
	FreeObject             // an object with any members
)

// Field is one member of a request body, or the body itself.
type Field struct {
	// Path is the member's name, after the names of the objects that hold
	// it: "llm.model"; "" for the body itself.
	Path     string
	Kind     Kind
	Required bool
	// MaxLen is the documented maxLength in Unicode code points; 0 means
	// that the interface states no bound.
	MaxLen int
	// Enum lists the allowed values; nil means any.
	Enum []string
	// Fields are the members of an Object; no others are allowed.
	Fields []*Field
}

// Name is the member's name inside the object that holds it.
func (f *Field) Name() string { return f.Path[strings.LastIndexByte(f.Path, '.')+1:] }

// Fits reports whether s is within the field's bound.
func (f *Field) Fits(s string) bool {
	// Bytes are never fewer than code points, so most values need no count.
	return f.MaxLen == 0 || len(s) <= f.MaxLen || utf8.RuneCountInString(s) <= f.MaxLen
}

// Allows reports whether s is one of the field's values.
func (f *Field) Allows(s string) bool { return f.Enum == nil || slices.Contains(f.Enum, s) }

// Values lists the field's values for a sentence: "fast, smart".
func (f *Field) Values() string { return strings.Join(f.Enum, ", ") }

// listed joins the names of a closed list for messages: "preview, free, pro, byok".
func listed[T any](list []T, nameOf func(T) string) string {
	var all []string
	for _, item := range list {
		all = append(all, nameOf(item))
	}
	return strings.Join(all, ", ")
}

// The values that the code needs one by one.
const (
	ModeHosted, ModeBYOK = "hosted", "byok"
	TierFast             = "fast"
	SMSDisabled          = "disabled"
	Active               = "active" // of an agent and of an SMS channel
)

// The closed lists of interface 2.3 to 3.
var (
	llmModes  = []string{ModeHosted, ModeBYOK}
	tiers     = []string{TierFast, "smart"}
	providers = []string{"openai_compat", "openai", "anthropic"}
	// Agent creation accepts all smsModes (2.3), and enabling all but none (4.9).
	smsModes    = []string{"none", "sandbox", "managed", "byo_twilio"}
	SMSStatuses = []string{SMSDisabled, "needs_compliance", "pending", Active, "needs_setup"}
)

// Members of CreateAgentRequest, interface 2.3 and 8.4.
var (
	SystemPrompt = &Field{Path: "system_prompt", MaxLen: 2000}
	CustomerRef  = &Field{Path: "customer_ref", MaxLen: 200}
	Metadata     = &Field{Path: "metadata", Kind: FreeObject}
	AgentSMSMode = &Field{Path: "sms.mode", Required: true, Enum: smsModes}
	AgentSMS     = &Field{Path: "sms", Kind: Object, Fields: []*Field{AgentSMSMode}}
	LLMMode      = &Field{Path: "llm.mode", Enum: llmModes}
	LLMTier      = &Field{Path: "llm.tier", Enum: tiers}
	LLMModel     = &Field{Path: "llm.model", MaxLen: 200}
	LLMProvider  = &Field{Path: "llm.provider", Enum: providers}
	LLMBaseURL   = &Field{Path: "llm.base_url", MaxLen: 400}
	LLMAPIKey    = &Field{Path: "llm.api_key"}
	LLMLabel     = &Field{Path: "llm.label", MaxLen: 60}
	AgentLLM     = &Field{Path: "llm", Kind: Object, Fields: []*Field{
		LLMMode, LLMTier, LLMModel, LLMProvider, LLMBaseURL, LLMAPIKey, LLMLabel,
	}}
)

// Members of the PUT /v1/byok body, interface 4.4, which states no lengths.
var (
	BYOKProvider = &Field{Path: "provider", Required: true, Enum: providers}
	BYOKAPIKey   = &Field{Path: "api_key", Required: true}
	BYOKBaseURL  = &Field{Path: "base_url"}
	BYOKModel    = &Field{Path: "model"}
	BYOKLabel    = &Field{Path: "label"}
)

// Members of the remaining bodies, interface 2.5, 4.2 and 4.9.
var (
	MessageText    = &Field{Path: "text", Required: true, MaxLen: 4000}
	MessageUserRef = &Field{Path: "user_ref"}
	WarmUpMode     = &Field{Path: "mode", Enum: llmModes}
	SMSChannelMode = &Field{Path: "mode", Required: true, Enum: smsModes[1:]}
)

// The bodies of the endpoints. Each but the body of a warm-up is required.
var (
	warmUpBody  = &Field{Kind: Object, Fields: []*Field{WarmUpMode}}
	byokBody    = required(BYOKProvider, BYOKAPIKey, BYOKBaseURL, BYOKModel, BYOKLabel)
	agentBody   = required(SystemPrompt, CustomerRef, Metadata, AgentSMS, AgentLLM)
	messageBody = required(MessageText, MessageUserRef)
	smsBody     = required(SMSChannelMode)
)

func required(members ...*Field) *Field { return &Field{Kind: Object, Required: true, Fields: members} }
