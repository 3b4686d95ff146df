package agentmessaging

import (
	"cmp"
	"context"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// MessageParams describe a message to an agent (interface 2.5).
type MessageParams struct {
	// Text is required; at most 4000 characters, counted as Unicode code points.
	Text string
	// UserRef is reserved by the service for routing among several users.
	UserRef string
}

// Reply is an agent's answer to a message (interface 4.8).
type Reply struct {
	// Text is the agent's reply.
	Text string `json:"reply_text"`
	// Warnings lists the service's warnings, if any.
	Warnings []string `json:"warnings,omitempty"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

type messageBody struct {
	Text    string `json:"text"`
	UserRef string `json:"user_ref,omitempty"`
}

// SendMessage sends text to an agent and returns its reply (interface 4.8).
// Replies can take long; bound the wait with the context's deadline.
//
// Errors: [ErrInvalid]; from the service [ErrBadRequest], [ErrUnauthorized],
// [ErrPaymentRequired], [ErrNotFound] (no such agent for this key) and
// [ErrRateLimited], which may also come from the client's cool-down; and
// [ErrOutcomeUnknown], alone or with [ErrServer] or [ErrUnavailable]: the agent may have
// read the message, so it may read it twice if you send it again. An [*Error] without
// StatusCode means that the message did not reach the service; it wraps the cause, such
// as a net.Error or context.DeadlineExceeded.
func (c *Client) SendMessage(ctx context.Context, agentID string, params MessageParams) (*Reply, error) {
	invalid := cmp.Or(checkField(spec.MessageText, params.Text), checkField(spec.MessageUserRef, params.UserRef))
	r := request{endpoint: spec.SendMessage, agentID: agentID, invalid: invalid, body: messageBody(params), userText: params.Text}
	return do(ctx, c, r, func(b *answerBody) *Reply {
		return &Reply{Text: b.needText("reply_text"), Warnings: b.texts("warnings"), TraceID: b.traceID}
	})
}
