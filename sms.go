package agentmessaging

import (
	"context"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// SMS is the SMS channel of an [Agent] (interface 2.2).
type SMS struct {
	// Status is one of the SMSStatus constants; expect others.
	Status SMSStatus `json:"status"`
	// PhoneNumber may be set by [Client.GetAgent]. The interface does not show it for
	// [Client.CreateAgent] (interface 4.6 and 4.7).
	PhoneNumber string `json:"phone_number,omitempty"`
	// TraceID is always empty, because the interface has none inside sms: use
	// [Agent].TraceID.
	TraceID string `json:"trace_id,omitempty"`
}

// SMSChannel is the result of [Client.EnableSMS] (interface 4.9).
type SMSChannel struct {
	// Status is one of the SMSStatus constants; expect others.
	Status SMSStatus `json:"status"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

// SMSStatus is the state of an SMS channel (interface 3). What moves a channel
// between states is not documented.
type SMSStatus string

// The states of an SMS channel.
const (
	SMSStatusDisabled        SMSStatus = "disabled"
	SMSStatusNeedsCompliance SMSStatus = "needs_compliance"
	SMSStatusPending         SMSStatus = "pending"
	SMSStatusActive          SMSStatus = "active"
	SMSStatusNeedsSetup      SMSStatus = "needs_setup"
)

// SMSMode says how an SMS channel is run (interface 2.3).
type SMSMode string

// The modes. EnableSMS does not accept SMSModeNone; agent creation does.
const (
	SMSModeNone      SMSMode = "none"
	SMSModeSandbox   SMSMode = "sandbox"
	SMSModeManaged   SMSMode = "managed"
	SMSModeBYOTwilio SMSMode = "byo_twilio"
)

// SMSParams ask for an SMS channel at agent creation (interface 2.3).
type SMSParams struct {
	// Mode is one of the SMSMode constants; empty asks for nothing.
	Mode SMSMode
}

func (p SMSParams) validate() error {
	if p.Mode == "" {
		return nil
	}
	return checkField(spec.AgentSMSMode, string(p.Mode))
}

// modeBody is a request body, or a part of one, whose only member is a mode.
type modeBody struct {
	Mode string `json:"mode"`
}

// EnableSMS enables the SMS channel of an agent (interface 4.9). mode is
// sandbox, managed or byo_twilio. The interface calls this operation a scaffold: expect
// it to change.
//
// Errors: [ErrInvalid], [ErrBadRequest], [ErrUnauthorized],
// [ErrPaymentRequired], [ErrNotFound], [ErrRateLimited], [ErrOutcomeUnknown].
func (c *Client) EnableSMS(ctx context.Context, agentID string, mode SMSMode) (*SMSChannel, error) {
	r := request{endpoint: spec.EnableSMS, agentID: agentID, invalid: checkField(spec.SMSChannelMode, string(mode)), body: modeBody{string(mode)}}
	return do(ctx, c, r, func(b *answerBody) *SMSChannel {
		return &SMSChannel{Status: SMSStatus(b.needNonEmpty("status")), TraceID: b.traceID}
	})
}
