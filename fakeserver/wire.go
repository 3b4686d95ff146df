package fakeserver

// The bodies of answers, as interface section 4 shows them. Client and fake
// each declare their own wire structs, so that a wrong tag on one side shows.

// reply is the body of a success. Every body carries the call's trace
// identifier.
type reply interface{ trace(id string) }

type traced struct {
	TraceID string `json:"trace_id"`
}

func (t *traced) trace(id string) { t.TraceID = id }

type errorReply struct {
	Error    string `json:"error"`
	TraceID  string `json:"trace_id"`
	LimitKey string `json:"limit_key,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

type statusReply struct {
	OK bool `json:"ok"`
	statusValues
	traced
}

type warmUpReply struct {
	OK     bool   `json:"ok"`
	Warmed bool   `json:"warmed"`
	Mode   string `json:"mode"`
	traced
}

type byokReply struct {
	OK   bool      `json:"ok"`
	BYOK *byokWire `json:"byok"` // null when none is set
	traced
}

type byokWire struct {
	Provider    string  `json:"provider"`
	BaseURL     *string `json:"base_url"` // null when not given
	Model       *string `json:"model"`    // null when not given
	Fingerprint string  `json:"fingerprint"`
	UpdatedAt   string  `json:"updated_at"`
}

type okReply struct {
	OK bool `json:"ok"`
	traced
}

type createdReply struct {
	AgentID string   `json:"agent_id"`
	Status  string   `json:"status"`
	SMS     *smsWire `json:"sms,omitempty"`
	traced
}

type agentReply struct {
	AgentID   string   `json:"agent_id"`
	Status    string   `json:"status"`
	CreatedAt string   `json:"created_at"`
	UpdatedAt string   `json:"updated_at"`
	SMS       *smsWire `json:"sms,omitempty"`
	traced
}

type smsWire struct {
	Status      string `json:"status"`
	PhoneNumber string `json:"phone_number,omitempty"` // the read response only
}

type channelReply struct {
	Status string `json:"status"`
	traced
}

type messageReply struct {
	ReplyText string   `json:"reply_text"`
	Warnings  []string `json:"warnings,omitempty"`
	traced
}

// redacted is the reply for Calls.
func (m *messageReply) redacted() reply {
	shown := *m
	shown.ReplyText = redactedText(m.ReplyText)
	return &shown
}
