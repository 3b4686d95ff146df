package agentmessaging

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Agent is a dedicated conversational agent (interface 2.2).
type Agent struct {
	// ID identifies the agent in other calls. These calls refuse an id that could lead to
	// another path (an empty one, a slash, a control character or a dot segment), and an id
	// that contains the API key, if the key has six bytes or more.
	ID string `json:"agent_id"`
	// Status is active at creation; later values are not documented.
	Status AgentStatus `json:"status"`
	// CreatedAt and UpdatedAt are set when the agent is read. The interface does not show
	// them at creation.
	CreatedAt Timestamp `json:"created_at,omitempty"`
	UpdatedAt Timestamp `json:"updated_at,omitempty"`
	// SMS is the agent's SMS channel; nil if the service did not report one.
	SMS *SMS `json:"sms,omitempty"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

// AgentStatus is the state of an agent. The interface lists no values for a
// read agent, so expect others (interface 3).
type AgentStatus string

// AgentStatusActive is the status of every new agent.
const AgentStatusActive AgentStatus = "active"

// Timestamp is a point in time as the service writes it. The interface shows
// no format beyond string (interface 2.2).
type Timestamp string

// Time reads the timestamp as RFC 3339; it returns an error for any other
// format, an empty timestamp included.
func (t Timestamp) Time() (time.Time, error) { return time.Parse(time.RFC3339, string(t)) }

// Provider is a model provider whose key can be stored (interface 2.3).
type Provider string

// The providers.
const (
	ProviderOpenAICompat Provider = "openai_compat"
	ProviderOpenAI       Provider = "openai"
	ProviderAnthropic    Provider = "anthropic"
)

// CreateAgentParams are the creation parameters of an agent (interface 2.3).
// Every field is optional; an empty one is not sent, but an empty map of Metadata is sent
// as {}. Lengths count Unicode code points.
type CreateAgentParams struct {
	// SystemPrompt applies to the whole conversation. At most 2000 characters.
	SystemPrompt string
	// CustomerRef is the caller's own customer identifier. At most 200 characters.
	CustomerRef string
	// Metadata is any value that encodes as a JSON object: a map, a struct, or a
	// json.RawMessage, which keeps numbers digit by digit. Invalid UTF-8, a lone surrogate
	// and duplicate members are refused. So is the escape \ufffd in a json.RawMessage
	// inside another value, because encoding/json writes invalid UTF-8 in the same way. The
	// service limits the length of the JSON, but the interface does not show the limit.
	Metadata any
	// SMS asks for an SMS channel.
	SMS SMSParams
	// LLM configures the language model.
	LLM LLMParams
}

// LLMParams configure an agent's language model (interface 2.3).
type LLMParams struct {
	// Mode is hosted or byok; empty means hosted. With byok the model uses APIKey, or
	// else the key that [Client.SetBYOK] stored.
	Mode LLMMode
	// Tier is fast or smart; empty means fast. smart may use a fallback model.
	Tier Tier
	// Model overrides the model. At most 200 characters.
	Model string
	// Provider is required when APIKey is given.
	Provider Provider
	// BaseURL is the provider's address, for example a gateway. At most 400
	// characters.
	BaseURL string
	// APIKey is a provider key. It counts against the BYOK set limit of 5 an hour (interface
	// 8.1). As we understand interface 2.4, it replaces the provider key that is stored for the
	// API key, for all its agents. The interface recommends storing it once, with
	// [Client.SetBYOK].
	APIKey Secret
	// Label names the BYOK configuration. At most 60 characters.
	Label string
}

// LLMMode says whose provider key the language model uses (interface 2.3 and 4.2).
type LLMMode string

// The modes; hosted is the default.
const (
	LLMModeHosted LLMMode = "hosted"
	LLMModeBYOK   LLMMode = "byok"
)

// Tier is a class of hosted models (interface 2.3).
type Tier string

// The tiers; fast is the default.
const (
	TierFast  Tier = "fast"
	TierSmart Tier = "smart"
)

// createAgentBody is CreateAgentRequest on the wire.
type createAgentBody struct {
	SystemPrompt string          `json:"system_prompt,omitempty"`
	CustomerRef  string          `json:"customer_ref,omitempty"`
	SMS          modeBody        `json:"sms,omitzero"`
	LLM          llmBody         `json:"llm,omitzero"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

type llmBody struct {
	Mode     LLMMode  `json:"mode,omitempty"`
	Tier     Tier     `json:"tier,omitempty"`
	Model    string   `json:"model,omitempty"`
	Provider Provider `json:"provider,omitempty"`
	BaseURL  string   `json:"base_url,omitempty"`
	APIKey   string   `json:"api_key,omitempty"`
	Label    string   `json:"label,omitempty"`
}

// request returns the request that creates the agent.
func (p CreateAgentParams) request() request {
	metadata, err := encodeObject(spec.Metadata, p.Metadata)
	return request{
		endpoint: spec.CreateAgent,
		invalid:  cmp.Or(err, p.validate()),
		body: createAgentBody{
			SystemPrompt: p.SystemPrompt,
			CustomerRef:  p.CustomerRef,
			SMS:          modeBody{string(p.SMS.Mode)},
			LLM: llmBody{
				Mode: p.LLM.Mode, Tier: p.LLM.Tier, Model: p.LLM.Model, Provider: p.LLM.Provider,
				BaseURL: p.LLM.BaseURL, APIKey: string(p.LLM.APIKey), Label: p.LLM.Label,
			},
			Metadata: metadata,
		},
		providerKey: string(p.LLM.APIKey),
		userText:    p.SystemPrompt,
	}
}

func (p CreateAgentParams) validate() error {
	if p.LLM.APIKey != "" && p.LLM.Provider == "" {
		return &ValidationError{Field: spec.LLMProvider.Path, Reason: "is required when llm.api_key is given: one of " + spec.LLMProvider.Values()}
	}
	return cmp.Or(
		checkField(spec.SystemPrompt, p.SystemPrompt),
		checkField(spec.CustomerRef, p.CustomerRef),
		p.SMS.validate(),
		checkField(spec.LLMMode, string(p.LLM.Mode)),
		checkField(spec.LLMTier, string(p.LLM.Tier)),
		checkField(spec.LLMModel, p.LLM.Model),
		checkField(spec.LLMProvider, string(p.LLM.Provider)),
		checkField(spec.LLMBaseURL, p.LLM.BaseURL),
		checkProviderKey(spec.LLMAPIKey, p.LLM.APIKey),
		checkField(spec.LLMLabel, p.LLM.Label),
	)
}

// readAgent reads the agent in an answer to CreateAgent or GetAgent.
func readAgent(b *answerBody) *Agent {
	agent := &Agent{
		ID: b.needNonEmpty("agent_id"), Status: AgentStatus(b.text("status")), TraceID: b.traceID,
		CreatedAt: Timestamp(b.text("created_at")), UpdatedAt: Timestamp(b.text("updated_at")),
	}
	b.agentID = agent.ID
	sms, _ := b.object("sms")
	if status, number := sms.text("status"), sms.text("phone_number"); status != "" || number != "" { // an empty sms counts as missing
		agent.SMS = &SMS{Status: SMSStatus(status), PhoneNumber: number}
	}
	return agent
}

// CreateAgent creates an agent (interface 4.6). It spends one of 50 agent
// creations a day per key and of 10 a minute per address (interface 8.1).
//
// Errors: [ErrInvalid], [ErrBadRequest] (also for byok mode without a stored
// key), [ErrUnauthorized], [ErrPaymentRequired], [ErrNotFound],
// [ErrRateLimited], and [ErrOutcomeUnknown]: then an agent may exist, but its id is
// lost.
func (c *Client) CreateAgent(ctx context.Context, params CreateAgentParams) (*Agent, error) {
	return do(ctx, c, params.request(), readAgent)
}

// GetAgent reads an agent (interface 4.7).
//
// Errors: [ErrInvalid], [ErrUnauthorized], [ErrPaymentRequired],
// [ErrNotFound], [ErrRateLimited].
func (c *Client) GetAgent(ctx context.Context, agentID string) (*Agent, error) {
	return do(ctx, c, request{endpoint: spec.GetAgent, agentID: agentID}, readAgent)
}
