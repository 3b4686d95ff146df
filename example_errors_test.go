package agentmessaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Additional members of an error body are kept as they came.
func ExampleError() {
	err := error(&agentmessaging.Error{
		StatusCode: 402, Code: "payment_required", Method: "GET", Path: "/v1/status", TraceID: "trace_7",
		Extra: map[string]json.RawMessage{"plan": json.RawMessage(`"free"`)},
	})
	fmt.Println(err)

	var failure *agentmessaging.Error
	if errors.As(err, &failure) {
		fmt.Println(errors.Is(err, agentmessaging.ErrPaymentRequired), string(failure.Extra["plan"]))
	}
	// Output:
	// agentmessaging: GET /v1/status: 402 payment_required (activate a plan in the dashboard, trace trace_7)
	// true "free"
}

// A minute limit is waited out by default; a wait that would pass the
// context's deadline is not begun, and the error says how long it would be. The
// second call is refused by the cool-down: nothing was sent.
func ExampleError_rateLimited() {
	fake, client := onFake()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyMinute)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for range 2 {
		_, err := client.GetAgent(ctx, "agent_000001")
		var refusal *agentmessaging.Error
		if errors.Is(err, agentmessaging.ErrRateLimited) && errors.As(err, &refusal) {
			fmt.Println(refusal.Code, refusal.LimitKey, refusal.RetryAfter.Round(time.Minute), refusal.Local)
		}
	}
	fmt.Println(fake.CallCount(), "call was sent")
	// Output:
	// rate_limited key_minute 1m0s false
	// rate_limited key_minute 1m0s true
	// 1 call was sent
}

// When to come back, whatever the error is.
func ExampleRetryAfter() {
	fake, client := onFake()
	defer fake.Close()
	fake.Exhaust(fake.Key(), fakeserver.LimitKeyDay)

	_, err := client.GetAgent(context.Background(), "agent_000001")
	if wait, ok := agentmessaging.RetryAfter(err); ok {
		fmt.Println("come back in", wait)
	}
	// Output: come back in 24h0m0s
}

// Where there was no answer, StatusCode is 0 and the cause can be tested for.
func ExampleError_noAnswer() {
	fake, client := onFake(agentmessaging.WithRetry(agentmessaging.RetryPolicy{MaxAttempts: 1}))
	defer fake.Close()
	fake.Inject(fakeserver.CloseEarly())

	_, err := client.Status(context.Background())
	var e *agentmessaging.Error
	if errors.As(err, &e) {
		fmt.Println(e.StatusCode, e.Attempts, errors.Is(err, io.EOF))
	}
	// Output: 0 1 true
}

// The agent is enabled for SMS and the answer is lost. Reading the agent tells
// what happened.
func ExampleOutcomeUnknownError() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
	fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Times(1)

	_, err := client.EnableSMS(ctx, agent.ID, agentmessaging.SMSModeSandbox)
	var unknown *agentmessaging.OutcomeUnknownError
	if errors.As(err, &unknown) {
		fmt.Println(unknown.Method, unknown.Path, errors.Is(err, agentmessaging.ErrOutcomeUnknown))
		read, readErr := client.GetAgent(ctx, agent.ID)
		if readErr == nil && read.SMS != nil {
			fmt.Println(read.SMS.Status, read.SMS.PhoneNumber)
		}
	}
	// Output:
	// POST /v1/agents/{agent_id}/channels/sms true
	// active +12025550101
}

// Refused here, before it could spend quota.
func ExampleValidationError() {
	fake, client := onFake()
	defer fake.Close()
	agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})

	_, err := client.SendMessage(context.Background(), agent.ID, agentmessaging.MessageParams{})
	var invalid *agentmessaging.ValidationError
	if errors.Is(err, agentmessaging.ErrInvalid) && errors.As(err, &invalid) {
		fmt.Println(invalid.Field, invalid.Reason)
	}
	// Output: text is required
}
