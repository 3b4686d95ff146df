// Package connect connects the examples: to the service where the environment
// names one, to a fake inside the program otherwise.
package connect

import (
	"fmt"
	"os"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Conn is a client and what it talks to.
type Conn struct {
	Client *agentmessaging.Client
	// Fake is the service in memory; nil where the client talks to the real one.
	Fake *fakeserver.Server
}

// Open returns a client of the service that AGENT_MESSAGING_BASE_URL and
// AGENT_MESSAGING_API_KEY name, or of a new fake where neither is set. The
// caller calls Close.
func Open(opts ...agentmessaging.Option) (*Conn, error) {
	url, key := os.Getenv(agentmessaging.EnvBaseURL), os.Getenv(agentmessaging.EnvAPIKey)
	switch {
	case url == "" && key == "":
		return openFake(opts)
	case url == "" || key == "":
		// Falling back to the fake would hide that a variable was forgotten.
		return nil, fmt.Errorf("set both %s and %s to talk to the service, or neither to run on a fake",
			agentmessaging.EnvBaseURL, agentmessaging.EnvAPIKey)
	}
	client, err := agentmessaging.NewClientFromEnv(opts...)
	if err != nil {
		return nil, err
	}
	return &Conn{Client: client}, nil
}

func openFake(opts []agentmessaging.Option) (*Conn, error) {
	fake, err := fakeserver.Open()
	if err != nil {
		return nil, err
	}
	// No test to belong to: Close ends the connections.
	opts = append(opts, agentmessaging.WithHTTPClient(fake.HTTPClient(nil)))
	client, err := agentmessaging.NewClient(fake.BaseURL(), fake.Key(), opts...)
	if err != nil {
		return nil, err
	}
	return &Conn{Client: client, Fake: fake}, nil
}

// Close ends the fake, if there is one.
func (c *Conn) Close() error {
	if c.Fake == nil {
		return nil
	}
	return c.Fake.Close()
}

// String names the other end.
func (c *Conn) String() string {
	if c.Fake != nil {
		return "a fake inside this program"
	}
	return "the service at " + os.Getenv(agentmessaging.EnvBaseURL)
}

// OnFake makes a test run on the fake, whatever the environment says.
func OnFake(tb interface{ Setenv(key, value string) }) {
	tb.Setenv(agentmessaging.EnvBaseURL, "")
	tb.Setenv(agentmessaging.EnvAPIKey, "")
}
