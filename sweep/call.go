package sweep

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Call is a call of the client, as its events and its requests show it.
type Call struct {
	// Name names the call within the scenario: SendMessage_2 is the second
	// SendMessage. A call of another goroutine than the scenario's is named by
	// what it sends and to whom instead, such as SendMessage_9f1c2a, in all runs
	// and restarts alike. SendMessage_unsent sent nothing: the client refused it. (Which
	// goroutine was first changes from run to run, so a number would mean nothing.)
	Name     string
	Endpoint fakeserver.Endpoint
	AgentID  string    // the agent that it names, or has created
	Attempts []Attempt // that left the client
	Err      error     // what the client returned; nil too while the call is under way

	spec      *spec.Endpoint
	begun     time.Time // by the fake's clock
	ended     bool
	goroutine string // that made it
	own       bool   // the goroutine is the scenario's own
	expired   bool   // its deadline has passed by the fake's clock, though not yet in real time
	content   uint64 // digest of the body that it sends, and of the agent; 0 before it has sent one
	subject   string // what it is about: the text, or the customer_ref
	key       string // the provider key that it sends; "" for none
}

// Attempt is one request.
type Attempt struct {
	Status int    // 0: no answer
	Fault  string // name of the fault that struck it; "" for none
	Err    error  // set if no whole answer came
}

func (c *Call) failed() bool    { return c.ended && c.Err != nil }
func (c *Call) succeeded() bool { return c.ended && c.Err == nil }

// onAgent reports a call about an agent that is there.
func (c *Call) onAgent() bool { return c.AgentID != "" && c.spec != spec.CreateAgent }
