// Package agentmessagingtest helps to test programs that use the Agent
// Messaging Service: it gives a test a client and a fake of the service, in one
// call.
//
//	func TestGreeting(t *testing.T) {
//		client, fake := agentmessagingtest.New(t)
//		fake.OnMessage().Reply("Good morning.")
//
//		bot := greeter.New(client) // the program under test
//		...
//	}
//
// The client is a real one, and the fake is the whole service in memory, with its rules
// and limits: see package fakeserver for scripts, faults, recorded calls and limits. The
// client's waits take milliseconds: if it waits a minute for a limit to open, the fake's clock
// moves on by a minute, so no test needs testing/synctest for that. As on the service, a
// limit that opens tomorrow is an error at once, unless RetryPolicy.MaxWait is that long.
//
// Deadlines of contexts are real time. The client also works in a bubble of
// testing/synctest, but timers there do not notice its waits; docs/testing.md shows the
// client to use in a bubble.
//
// Package sweep runs a scenario of the application once for each failure at each
// of its calls.
package agentmessagingtest

import (
	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// New returns a client of a new fake, and the fake. Both live as long as the
// test. opts are options of the client; for a fake with options, see [NewClient].
// An unusable option panics.
func New(t fakeserver.TB, opts ...agentmessaging.Option) (*agentmessaging.Client, *fakeserver.Server) {
	fake := fakeserver.New(t) // which panics for a nil t
	t.Helper()
	return NewClient(t, fake, opts...), fake
}

// NewClient returns a client of fake, for example of a fake with options:
//
//	fake := fakeserver.New(t, fakeserver.WithPlan(fakeserver.PlanPro))
//	client := agentmessagingtest.NewClient(t, fake)
//
// The client has the fake's default key, the transport of [fakeserver.Server.HTTPClient],
// and the fake's clock. opts may replace these. Several clients of one fake act as several
// processes that share a key. A nil test, a nil fake and an unusable option panic.
func NewClient(t fakeserver.TB, fake *fakeserver.Server, opts ...agentmessaging.Option) *agentmessaging.Client {
	if t == nil || fake == nil {
		panic("agentmessagingtest: NewClient needs the *testing.T of a test, and a fake such as fakeserver.New(t)")
	}
	t.Helper()
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(),
		agentmessaging.WithHTTPClient(fake.HTTPClient(t)), agentmessaging.WithClock(fake))
	if err == nil {
		client, err = client.With(opts...) // in an error, option 1 is the caller's first option
	}
	if err != nil {
		panic("agentmessagingtest: " + err.Error())
	}
	return client
}
