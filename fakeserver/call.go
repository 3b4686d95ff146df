package fakeserver

import (
	"bytes"
	"runtime/debug"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
)

// call is one call on its way through the fake. Only the goroutine that answers the call
// writes its fields. Other goroutines see the call through entry, which is written under
// the server's lock.
type call struct {
	*wire.Request
	// entry is the part of the call that the log, matchers and watchers see.
	entry  *entry
	record Call // copied into entry on arrival, and again with the answer
	// generation is the one at arrival. A Reset meanwhile does not change it.
	generation *generation
	// now is the time at which the call reached the service, after any latency. Limits and
	// timestamps go by it.
	now time.Time
	// The faults of the test that act on the call.
	latencies  []time.Duration
	changes    []*rule
	fault      *fault   // acts in addition to latencies and changes; nil means none
	faultNames []string // of all that act; nil means none
	// failed names the callback of the test that failed; "" if none has. The call then gets no
	// answer, and runs no other callback.
	failed string

	neverArrived bool            // the client left during the latency, so the call did not reach the service
	clientLeft   bool            // the client left before the answer was sent
	fromService  wire.Answer     // the service's answer; empty if the call did not reach the service
	toClient     wire.Answer     // the client's answer: fromService, unless a fault replaces it
	delivery     memnet.Delivery // how toClient is sent
}

// noAnswer is the delivery of a call that gets no answer: its client has left, or
// a callback of the test panicked.
var noAnswer = memnet.Delivery{Ends: memnet.Closes, Sent: memnet.Nothing}

// runCallback runs f, which calls one or more callbacks of the test, on a separate goroutine.
// name returns the name of the callback that is running. If that callback panics, or ends its
// goroutine as require does, the test fails, and runCallback returns the name; else "". The
// lock must not be held: a callback may call the fake.
func (s *Server) runCallback(name func() string, f func()) (failed string) {
	runOnGoroutine(f, func(panicked any) {
		failed = name()
		if panicked != nil {
			s.reportf("%s panicked: %v%s", failed, panicked, stackTrace())
			return
		}
		s.reportf("%s ended its goroutine, as require and FailNow do; use assert there%s", failed, stackTrace())
	})
	return failed
}

// stackTrace returns the stack from the function that failed. Only a deferred function
// may call it, because the stack is gone after that.
func stackTrace() []byte {
	stack := debug.Stack()
	return stack[max(0, bytes.Index(stack, []byte("\npanic(")), bytes.Index(stack, []byte("\nruntime.Goexit("))):]
}
