package fakeserver

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/service"
)

// Agent is an agent as the fake keeps it: interface 2.2 and 2.3. It does not hold the
// provider key of its creation. The fake stores the provider key for the API key,
// encrypted. If the decision creation_stores_key is false, it does not store the provider
// key at all.
type Agent struct {
	ID           string          `json:"agent_id"`
	Status       string          `json:"status"` // active; AddAgent may set another
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
	Key          string          `json:"key"` // label of the API key that created it, as in Call.Key
	SystemPrompt string          `json:"system_prompt,omitempty"`
	CustomerRef  string          `json:"customer_ref,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"` // compact JSON; nil when not given
	SMS          *SMS            `json:"sms,omitempty"`      // nil until a call or SetSMS makes a channel
	LLM          LLM             `json:"llm"`
}

// LLM is an agent's language-model configuration without the provider key:
// interface 2.3.
type LLM struct {
	Mode     string `json:"mode"`               // hosted or byok; hosted when not given
	Tier     string `json:"tier"`               // fast or smart; fast when not given
	Model    string `json:"model,omitempty"`    // "" when not given; so are the members below
	Provider string `json:"provider,omitempty"` // openai_compat, openai or anthropic
	BaseURL  string `json:"base_url,omitempty"`
	Label    string `json:"label,omitempty"`
}

// SMS is an agent's SMS channel: interface 2.2 and 3.
type SMS struct {
	Mode        string `json:"mode,omitempty"`         // the mode of the last request; "" when SetSMS made the channel
	Status      string `json:"status"`                 // disabled, needs_compliance, pending, active or needs_setup
	PhoneNumber string `json:"phone_number,omitempty"` // "" when the channel has none
}

// Exchange is a message and the reply to it.
type Exchange struct {
	Text      string    `json:"text"`
	UserRef   string    `json:"user_ref,omitempty"` // "" when not given
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings,omitempty"`
	Time      time.Time `json:"time"` // when the message arrived, by the fake's clock
	TraceID   string    `json:"trace_id,omitempty"`
}

// copyAgent copies an agent out of the state. The result shares no memory with the state,
// so it may be used without the lock.
func copyAgent(a *service.Agent) Agent {
	shown := Agent{
		ID: a.ID, Status: a.Status, CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt, Key: a.Owner,
		SystemPrompt: a.SystemPrompt, CustomerRef: a.CustomerRef, LLM: LLM(a.LLM),
	}
	if a.Metadata != "" {
		shown.Metadata = json.RawMessage(a.Metadata)
	}
	if a.SMS != nil {
		sms := SMS(*a.SMS)
		shown.SMS = &sms
	}
	return shown
}

// copyExchanges copies exchanges out of the state, with their lists of warnings.
func copyExchanges(exchanges []service.Exchange) []Exchange {
	shown := make([]Exchange, len(exchanges))
	for i, e := range exchanges {
		shown[i] = Exchange(e)
		shown[i].Warnings = slices.Clone(e.Warnings)
	}
	return shown
}

// Message is the argument of a ReplyFunc: a copy that the function may keep and
// change.
type Message struct {
	Agent   Agent      // the agent that the message was sent to
	Text    string     // the text of the message, not redacted
	UserRef string     // "" when not given
	History []Exchange // earlier exchanges with the agent, as Conversation returns them
}

// Reply is the result of a ReplyFunc.
type Reply struct {
	Text     string   `json:"text,omitempty"`     // the reply_text; used with Status 0 and 200 only
	Warnings []string `json:"warnings,omitempty"` // the warnings; an empty list is left out of the answer
	// Status is 0 or 200 for a reply, or an error status that interface 4.8 lists: 400, 401,
	// 402, 404, 429. A 429 carries Retry-After: 1. Any other status fails the test, and the
	// message is answered 500. The message has spent its limits before the function runs;
	// for a 429 that spends nothing, use Inject with RateLimited.
	Status int    `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`   // the error of the error body; "" means the fake's own code for the status
	Reason string `json:"reason,omitempty"` // the reason of the error body
}
