package service

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Agent is interface 2.2 and 2.3. The provider key of its creation is kept only
// encrypted, and not here.
type Agent struct {
	ID           string     `json:"agent_id"`
	Number       int        `json:"number"` // in the order of creation
	Status       string     `json:"status"` // active, as the interface shows no transition
	CreatedAt    time.Time  `json:"created_at"`
	UpdatedAt    time.Time  `json:"updated_at"`
	Owner        string     `json:"key"` // the label of the key that created it
	OwnKey       bool       `json:"own_key,omitempty"`
	SystemPrompt string     `json:"system_prompt,omitempty"`
	CustomerRef  string     `json:"customer_ref,omitempty"`
	Metadata     string     `json:"metadata,omitempty"` // compact JSON; "" when not given
	SMS          *SMS       `json:"sms,omitempty"`
	LLM          LLM        `json:"llm"`
	Exchanges    []Exchange `json:"exchanges"`
}

// LLM is interface 2.3 without the provider key.
type LLM struct {
	Mode     string `json:"mode"`
	Tier     string `json:"tier"`
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
	BaseURL  string `json:"base_url,omitempty"`
	Label    string `json:"label,omitempty"`
}

// SMS is an agent's SMS channel: interface 2.2 and 3. It is replaced and never
// changed.
type SMS struct {
	Mode        string `json:"mode,omitempty"`
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"`
}

// Exchange is a message and the reply to it. It never changes.
type Exchange struct {
	Text      string    `json:"text"`
	UserRef   string    `json:"user_ref,omitempty"`
	ReplyText string    `json:"reply_text"`
	Warnings  []string  `json:"warnings,omitempty"`
	Time      time.Time `json:"time"`
	TraceID   string    `json:"trace_id,omitempty"`
}

// Agent finds an agent, whichever key created it; nil if there is none.
func (s *State) Agent(id string) *Agent { return s.agents[id] }

// Agents are all agents in the order of creation.
func (s *State) Agents() []*Agent { return s.ordered }

// RemoveAgent deletes an agent.
func (s *State) RemoveAgent(a *Agent) {
	delete(s.agents, a.ID)
	s.ordered = slices.DeleteFunc(s.ordered, func(other *Agent) bool { return other == a })
}

// AddAgent fills what an agent of a key leaves empty, and stores it.
func (s *State) AddAgent(k *Key, a Agent, now time.Time) *Agent {
	for s.numbers++; s.agents[Numbered("agent", s.numbers)] != nil; s.numbers++ { // AddAgent was given some identifiers
	}
	a.Number = s.numbers
	a.ID = cmp.Or(a.ID, Numbered("agent", a.Number))
	a.Owner = k.Label
	a.Status = cmp.Or(a.Status, spec.Active)
	a.CreatedAt = cmp.Or(a.CreatedAt, now)
	a.UpdatedAt = cmp.Or(a.UpdatedAt, a.CreatedAt)
	a.LLM.Mode, a.LLM.Tier = cmp.Or(a.LLM.Mode, spec.ModeHosted), cmp.Or(a.LLM.Tier, spec.TierFast)
	if a.SMS != nil && a.SMS.Status == "" {
		phone := a.SMS.PhoneNumber
		s.enable(&a, a.SMS.Mode)
		a.SMS.PhoneNumber = cmp.Or(phone, a.SMS.PhoneNumber)
	}
	s.agents[a.ID] = &a
	s.ordered = append(s.ordered, &a)
	return &a
}

// AddExchange keeps an exchange, and drops the oldest beyond what is kept.
func (s *State) AddExchange(a *Agent, e Exchange) {
	a.Exchanges = append(a.Exchanges, e)
	if over := len(a.Exchanges) - s.limits.Exchanges; over > 0 {
		a.Exchanges = a.Exchanges[over:]
	}
}

// enable asks for an SMS channel, at creation or later, in place of the one that
// there may be. Behavior says where each mode leads: section 3 shows no
// transitions.
func (s *State) enable(a *Agent, mode string) {
	a.SMS = &SMS{Mode: mode, Status: s.by.SMSStatus[mode]}
	if a.SMS.Status == spec.Active {
		a.SMS.PhoneNumber = fmt.Sprintf("+120255501%02d", a.Number%100) // a hundred numbers are set aside for fiction
	}
}

// createAgent is interface 4.6.
func (c *call) createAgent() Answer {
	_, setsKey := c.req.Fields[spec.LLMAPIKey]
	ownKey := setsKey && !c.state.by.CreationStoresKey
	if setsKey && !ownKey { // rule 2
		c.key.BYOK = c.newBYOK(agentFields)
	}
	a := AgentOf(c.req.Fields)
	a.OwnKey = ownKey
	created := c.state.AddAgent(c.key, a, c.now)
	return Answer{Reply: Created{created.ID, created.Status, created.SMS}}
}

// AgentOf is an agent with the parameters of a creation.
func AgentOf(f Fields) Agent {
	a := Agent{
		SystemPrompt: f[spec.SystemPrompt], CustomerRef: f[spec.CustomerRef], Metadata: f[spec.Metadata],
		LLM: LLM{
			Mode: f[spec.LLMMode], Tier: f[spec.LLMTier], Model: f[spec.LLMModel],
			Provider: f[spec.LLMProvider], BaseURL: f[spec.LLMBaseURL], Label: f[spec.LLMLabel],
		},
	}
	if mode, given := f[spec.AgentSMSMode]; given {
		a.SMS = &SMS{Mode: mode}
	}
	return a
}

// getAgent is interface 4.7.
func (c *call) getAgent() Answer { return Answer{Reply: Read{*c.agent}} }

// enableSMS is interface 4.9.
func (c *call) enableSMS() Answer {
	c.state.enable(c.agent, c.req.Fields[spec.SMSChannelMode])
	c.agent.UpdatedAt = c.now
	return Answer{Reply: Channel{c.agent.SMS.Status}}
}

// Turn is a message that was accepted and not answered yet.
type Turn struct {
	Agent    *Agent
	Exchange Exchange // without the reply
	Cold     bool     // the first message of a key that is not warm: interface 4.2
}

// sendMessage is interface 4.8. The reply takes time, and comes with Finish.
func (c *call) sendMessage() Answer {
	t := &Turn{Agent: c.agent, Cold: !c.key.Warm, Exchange: Exchange{
		Text: c.req.Fields[spec.MessageText], UserRef: c.req.Fields[spec.MessageUserRef],
		Time: c.now, TraceID: c.req.TraceID,
	}}
	c.key.Warm = true
	return Answer{Turn: t}
}

// Finish keeps the exchange of a message that is answered.
func (s *State) Finish(t *Turn) Answer {
	s.AddExchange(t.Agent, t.Exchange)
	return Answer{Reply: Message{t.Exchange.ReplyText, t.Exchange.Warnings}}
}
