package otelagentmessaging_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

var update = flag.Bool("update", false, "rewrite "+storiesFile)

// storiesFile shows what each of the stories leaves behind: its spans with
// their durations, in virtual time, and what the metrics count.
const storiesFile = "testdata/stories.txt"

type story struct {
	name string
	call call
	opts []agentmessaging.Option
}

var stories = []story{
	{"a message", send, nil},
	{"a 429, after which the cool-down parks the call", limitedOnce(send), nil},
	{"a 429 that is not retried, and a caller behind its cool-down", inTurn(limitedOnce(send), send), []agentmessaging.Option{retries(1)}},
	{"a limit that is spent for a day, and a caller whom its cool-down refuses", inTurn(with(fakeserver.RateLimited("86400"), send), send), nil},
	{"a repetition that a limiter refuses", limitedOnce(send), []agentmessaging.Option{agentmessaging.WithLimiter(onlyOnce{})}},
	{"a reply that is lost", with(fakeserver.LoseReply(fakeserver.ResetConnection()), send), nil},
	{"a slow answer", with(fakeserver.Latency(2*time.Second), status), nil},
	{"a slow 429", limitedOnce(with(fakeserver.Latency(2*time.Second), status)), nil},
	{"an agent that is not there", read, nil},
	{"statuses that the interface does not have, of which only the last is an error of the request", inTurn(
		with(fakeserver.Answer(299, ""), read), with(fakeserver.Answer(300, ""), read),
		with(fakeserver.Answer(399, ""), read), with(fakeserver.Answer(400, ""), read)), []agentmessaging.Option{retries(1)}},
	{"an answer that is cut", with(fakeserver.TruncateReply(5), status), []agentmessaging.Option{retries(1)}},
	{"an answer that takes too long", with(fakeserver.DripReply(1, time.Second), hurried(status)), nil},
	{"a connection that is reset", with(fakeserver.ResetConnection(), read), []agentmessaging.Option{retries(1)}},
	{"a connection that is refused", read, failing(&net.OpError{Op: "dial", Err: errors.New("error-canary")})},
	{"a connection that takes too long", read, failing(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})},
	{"a connection that is given up", read, failing(fmt.Errorf("%w: %w", context.Canceled, &net.OpError{Op: "dial", Err: net.ErrClosed}))},
	{"a certificate that is not accepted", read, failing(&tls.CertificateVerificationError{Err: errors.New("error-canary")})},
	{"arguments that are refused", func(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
		_, err := client.SendMessage(ctx, "agent_000001", agentmessaging.MessageParams{})
		return err
	}, nil},
	{"a deadline that passes", with(fakeserver.Hang(), hurried(read)), nil},
	{"a call that is cancelled", with(fakeserver.Hang(), func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(errors.New("cause-canary")) })
		return read(ctx, fake, client)
	}), nil},
	{"an observer that drops the context of the call", send, []agentmessaging.Option{agentmessaging.WithObserver(agentmessaging.ObserverFunc(
		func(context.Context, agentmessaging.Event) context.Context { return context.Background() }))}},
	{"every method, once", every, nil},
	{"a context that ended before the call", func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return read(ctx, fake, client)
	}, nil},
}

// tell runs the story in a bubble, observed by r.
func (s story) tell(t *testing.T, r *telemetry) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeserver.New(t)
		_ = s.call(t.Context(), fake, newClient(t, fake, append(s.opts, r.observer(t))...)) // error.type says how it ended
	})
}

// tellAll returns what each of the stories leaves behind.
func tellAll(t *testing.T) (all []*telemetry) {
	for _, s := range stories {
		r := newTelemetry()
		s.tell(t, r)
		all = append(all, r)
	}
	return all
}

func TestStories(t *testing.T) {
	var all strings.Builder
	for i, r := range tellAll(t) {
		r.wantExemplars(t)
		fmt.Fprintf(&all, "## %s\n\n%s\n", stories[i].name, cmp.Or(r.story(t), "nothing\n"))
	}
	if *update {
		require.NoError(t, os.WriteFile(storiesFile, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(storiesFile)
	require.NoError(t, err)
	assert.Equal(t, strings.Split(string(want), "\n"), strings.Split(all.String(), "\n"), "read the diff, then go test -run TestStories -update")
}

type call = func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error

// every calls each method once, with words that no telemetry may hold.
func every(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, _ = client.Status(ctx)
	_, _ = client.SetBYOK(ctx, agentmessaging.SetBYOKParams{
		Provider: agentmessaging.ProviderOpenAI, APIKey: "provider-canary", Label: "label-canary", Model: "model-canary",
	})
	_, _ = client.GetBYOK(ctx)
	_, _ = client.WarmUp(ctx, agentmessaging.LLMModeHosted)
	_, _ = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{
		SystemPrompt: "prompt-canary", CustomerRef: "customer-canary", Metadata: map[string]string{"key": "metadata-canary"},
		LLM: agentmessaging.LLMParams{Provider: agentmessaging.ProviderOpenAI, APIKey: "other-provider-canary"},
	})
	_, _ = client.GetAgent(ctx, "agent_000001")
	_, _ = client.EnableSMS(ctx, "agent_000001", agentmessaging.SMSModeSandbox)
	_, _ = client.SendMessage(ctx, "agent_000001", agentmessaging.MessageParams{Text: "message-canary", UserRef: "user-canary"})
	return client.ClearBYOK(ctx)
}

// send makes an agent without a trace, and sends it a message.
func send(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
	id := fake.AddAgent(fake.Key(), fakeserver.Agent{}).ID
	_, err := client.SendMessage(ctx, id, agentmessaging.MessageParams{Text: "message-canary"})
	return err
}

func read(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, err := client.GetAgent(ctx, "agent_000001")
	return err
}

func status(ctx context.Context, _ *fakeserver.Server, client *agentmessaging.Client) error {
	_, err := client.Status(ctx)
	return err
}

// with is a call whose first attempt meets a fault.
func with(fault fakeserver.Fault, then call) call {
	return func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		fake.Inject(fault).Times(1)
		return then(ctx, fake, client)
	}
}

func limitedOnce(then call) call { return with(fakeserver.RateLimited("3"), then) }

// hurried is a call that has five seconds.
func hurried(then call) call {
	return func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return then(ctx, fake, client)
	}
}

// inTurn is several calls, whatever becomes of them.
func inTurn(calls ...call) call {
	return func(ctx context.Context, fake *fakeserver.Server, client *agentmessaging.Client) error {
		var errs []error
		for _, call := range calls {
			errs = append(errs, call(ctx, fake, client))
		}
		return errors.Join(errs...)
	}
}

// failing makes one attempt, over a transport that fails.
func failing(err error) []agentmessaging.Option {
	transport := roundTripper(func(*http.Request) (*http.Response, error) { return nil, err })
	return []agentmessaging.Option{retries(1), agentmessaging.WithHTTPClient(&http.Client{Transport: transport})}
}

// onlyOnce is a limiter that lets the first attempt pass, after a while, and no
// other.
type onlyOnce struct{}

func (onlyOnce) Acquire(_ context.Context, attempt agentmessaging.LimitedAttempt) (agentmessaging.Permit, error) {
	if attempt.Number > 1 {
		return nil, &agentmessaging.Error{StatusCode: 429}
	}
	time.Sleep(time.Second / 4)
	return onlyOnce{}, nil
}

func (onlyOnce) Done(agentmessaging.AttemptOutcome) {}
