package otelagentmessaging

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
)

var (
	dialError    = &net.OpError{Op: "dial", Err: errors.New("refused")}
	dialTimeout  = &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	readError    = &net.OpError{Op: "read", Err: errors.New("reset")}
	certError    = &tls.CertificateVerificationError{Err: errors.New("unknown authority")}
	errBoth      = fmt.Errorf("%w: %w", context.Canceled, dialError)
	unknownError = &agentmessaging.OutcomeUnknownError{Err: context.DeadlineExceeded}
)

func TestCallErrorType(t *testing.T) {
	for want, errs := range map[string][]error{
		"":                {nil},
		"404":             {&agentmessaging.Error{StatusCode: 404}},
		"302":             {&agentmessaging.Error{StatusCode: 302}},
		"429":             {&agentmessaging.Error{StatusCode: 429}},
		"limiter_refused": {&agentmessaging.Error{StatusCode: 429, Local: true}},
		"outcome_unknown": {unknownError, fmt.Errorf("wrapped: %w", unknownError)},
		"unreadable_answer": {
			&agentmessaging.Error{StatusCode: 200}, &agentmessaging.Error{StatusCode: 299},
		},
		"_OTHER": {errors.New("anything"), &agentmessaging.Error{}, readError},
	} {
		for _, err := range errs {
			assert.Equal(t, want, callErrorType(err), "%v", err)
		}
	}
}

func TestRequestErrorType(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		status int
		err    error
		want   string
	}{
		{200, nil, ""},
		{302, nil, ""},
		{399, nil, ""},
		{400, nil, "400"},
		{503, nil, "503"},
		{200, broken, "unreadable_answer"},
		{200, context.DeadlineExceeded, "timeout"},
		{0, broken, "_OTHER"},
		{0, readError, "_OTHER"},
		{0, dialError, "connection_failed"},
		{0, dialTimeout, "timeout"},
		{0, certError, "certificate_refused"},
		{0, context.Canceled, "canceled"},
		{0, errBoth, "canceled"},
	} {
		assert.Equal(t, c.want, requestErrorType(agentmessaging.AttemptEnd{StatusCode: c.status, Err: c.err}), "%v", c)
	}
}
