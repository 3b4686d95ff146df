package agentmessaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
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

// Each kind of refusal, as the fake makes it happen.
func ExampleError_kinds() {
	fake, client := onFake()
	defer fake.Close()
	ctx := context.Background()
	byok := agentmessaging.LLMParams{Mode: agentmessaging.LLMModeBYOK}
	_, err := client.CreateAgent(ctx, agentmessaging.CreateAgentParams{LLM: byok})
	fmt.Println(errors.Is(err, agentmessaging.ErrBadRequest), "byok mode, and no key is stored")
	_, err = client.WarmUp(ctx, agentmessaging.LLMModeBYOK)
	fmt.Println(errors.Is(err, agentmessaging.ErrConflict), "warm-up likewise")
	fake.SetBYOKAvailable(false)
	_, err = client.WarmUp(ctx, agentmessaging.LLMModeBYOK)
	fmt.Println(errors.Is(err, agentmessaging.ErrUnavailable), "BYOK is down")
	_, err = client.GetAgent(ctx, "agent_of_somebody_else")
	fmt.Println(errors.Is(err, agentmessaging.ErrNotFound), "no such agent for this key")
	fake.Inject(fakeserver.Answer(500, "")).Times(1)
	_, err = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
	fmt.Println(errors.Is(err, agentmessaging.ErrServer), "a POST is not repeated after a 5xx")
	issued := fake.IssueKey(fakeserver.KeyOptions{NotDashboard: true})
	other, err := agentmessaging.NewClient(fake.BaseURL(), issued, agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	if err != nil {
		log.Fatal(err)
	}
	_, err = other.GetBYOK(ctx)
	fmt.Println(errors.Is(err, agentmessaging.ErrForbidden), "BYOK is for keys of the dashboard")
	fake.SetPlan(fake.Key(), fakeserver.PlanFree)
	_, err = client.Status(ctx)
	fmt.Println(errors.Is(err, agentmessaging.ErrPaymentRequired), "the plan is not active")
	fake.RevokeKey(fake.Key())
	_, err = client.Status(ctx)
	fmt.Println(errors.Is(err, agentmessaging.ErrUnauthorized), "the key is revoked")
	// Output:
	// true byok mode, and no key is stored
	// true warm-up likewise
	// true BYOK is down
	// true no such agent for this key
	// true a POST is not repeated after a 5xx
	// true BYOK is for keys of the dashboard
	// true the plan is not active
	// true the key is revoked
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
