package sweep

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Call is a call of the client, as its events and its requests show it.
type Call struct {
	// Name names the call within the scenario: SendMessage_2 is the second SendMessage. If
	// another goroutine than the scenario's makes the call, its name depends on what it
	// sends and to whom, such as SendMessage_9f1c2a, and is the same in all runs and
	// restarts. A number would mean nothing there, because the order of the goroutines
	// changes from run to run. SendMessage_unsent sent nothing, because the client refused
	// it.
	Name     string
	Endpoint fakeserver.Endpoint
	AgentID  string    // the agent that the call names, or has created
	Attempts []Attempt // the attempts that left the client
	Err      error     // the error that the client returned; also nil while the call is under way

	spec         *spec.Endpoint
	begun        time.Time // by the fake's clock
	ended        bool
	goroutine    string // the goroutine that made the call
	fromScenario bool   // the goroutine is the scenario's own
	expired      bool   // the call's deadline has passed by the fake's clock, though not yet in real time
	content      uint64 // digest of the request body and of the agent; 0 before the first request
	subject      string // the message's text, or the creation's customer_ref
	key          string // the provider key in the request; "" for none
}

// Attempt is one request.
type Attempt struct {
	Status int    // 0: no answer
	Fault  string // name of the fault that hit the attempt; "" for none
	Err    error  // set if no whole answer came
}

func (c *Call) failed() bool    { return c.ended && c.Err != nil }
func (c *Call) succeeded() bool { return c.ended && c.Err == nil }

// onAgent reports whether the call is about an existing agent.
func (c *Call) onAgent() bool { return c.AgentID != "" && c.spec != spec.CreateAgent }
