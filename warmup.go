package agentmessaging

import (
	"context"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file has the calls that concern no agent and store nothing: Status and WarmUp.

// ServiceStatus holds what the service reports about itself (interface 4.1). The
// interface shows the types of its members, but no values. A false OK is not an error:
// check it.
type ServiceStatus struct {
	OK      bool   `json:"ok"`
	Service string `json:"service"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

// Status reads the service's status (interface 4.1). The interface lists no 429 for it,
// so it spends no limit.
//
// Errors: [ErrUnauthorized], [ErrPaymentRequired], [ErrNotFound].
func (c *Client) Status(ctx context.Context) (*ServiceStatus, error) {
	return do(ctx, c, request{endpoint: spec.Status}, func(b *answerBody) *ServiceStatus {
		return &ServiceStatus{OK: b.needBool("ok"), Service: b.text("service"), Version: b.text("version"), Mode: b.text("mode"), TraceID: b.traceID}
	})
}

// WarmUpResult is the outcome of a warm-up (interface 4.2). The interface does not say what
// it means if OK or Warmed is false. Neither is an error: check them.
type WarmUpResult struct {
	OK     bool `json:"ok"`
	Warmed bool `json:"warmed"`
	// Mode is the mode that was warmed up.
	Mode LLMMode `json:"mode"`
	// TraceID identifies the call; quote it when reporting an issue.
	TraceID string `json:"trace_id"`
}

// WarmUp starts the gateway so that the first reply is faster (interface
// 4.2). mode is hosted or byok; empty sends no body, which means hosted. It
// spends one of 3 warm-ups an hour (interface 8.1).
//
// Errors: [ErrInvalid], [ErrBadRequest], [ErrUnauthorized],
// [ErrPaymentRequired], [ErrForbidden] (byok mode with a key that the
// dashboard did not issue), [ErrConflict] (byok mode, nothing stored),
// [ErrRateLimited], [ErrUnavailable], [ErrOutcomeUnknown].
func (c *Client) WarmUp(ctx context.Context, mode LLMMode) (*WarmUpResult, error) {
	r := request{endpoint: spec.WarmUp, invalid: checkField(spec.WarmUpMode, string(mode))}
	if mode != "" {
		r.body = modeBody{string(mode)}
	}
	return do(ctx, c, r, func(b *answerBody) *WarmUpResult {
		return &WarmUpResult{OK: b.needBool("ok"), Warmed: b.needBool("warmed"), Mode: LLMMode(b.text("mode")), TraceID: b.traceID}
	})
}
