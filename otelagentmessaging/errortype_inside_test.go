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

// TestErrorTypes has the errors that the stories do not meet.
func TestErrorTypes(t *testing.T) {
	broken, dial := errors.New("broken"), &net.OpError{Op: "dial", Err: errors.New("refused")}
	read := &net.OpError{Op: "read", Err: errors.New("reset")}
	slow := &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}
	request := func(status int, err error) string {
		return requestErrorType(agentmessaging.AttemptEnd{StatusCode: status, Err: err})
	}
	for i, tt := range []struct{ got, want string }{
		{callErrorType(fmt.Errorf("wrapped: %w", &agentmessaging.OutcomeUnknownError{Err: context.DeadlineExceeded})), "outcome_unknown"},
		{callErrorType(&agentmessaging.Error{StatusCode: 200}), "unreadable_answer"},
		{callErrorType(&agentmessaging.Error{StatusCode: 299}), "unreadable_answer"},
		{callErrorType(&agentmessaging.Error{}), "_OTHER"},
		{callErrorType(read), "_OTHER"},
		{request(399, nil), ""},
		{request(400, nil), "400"},
		{request(200, broken), "unreadable_answer"},
		{request(200, context.DeadlineExceeded), "timeout"},
		{request(0, broken), "_OTHER"},
		{request(0, read), "_OTHER"},
		{request(0, dial), "connection_failed"},
		{request(0, slow), "timeout"},
		{request(0, &tls.CertificateVerificationError{Err: broken}), "certificate_refused"},
		{request(0, fmt.Errorf("%w: %w", context.Canceled, dial)), "canceled"},
	} {
		assert.Equal(t, tt.want, tt.got, i)
	}
}
