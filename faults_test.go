package agentmessaging_test

import (
	"io"
	"net/http"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// over runs f in a bubble for each in-memory way to a fake, with a client
// that adds no jitter.
func over(t *testing.T, f func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client)) {
	for _, way := range []string{"wire", "direct"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := fakeserver.New(t)
				transport := fake.Direct()
				if way == "wire" {
					transport = fake.HTTPClient(t).Transport
				}
				f(t, fake, clientOf(t, fake, fake.Key(),
					agentmessaging.WithHTTPClient(&http.Client{Transport: transport}),
					agentmessaging.WithRandom(func() float64 { return 0 })))
			})
		})
	}
}

// TestLostReplyIsNotRepeated: the message was stored once, and the caller is
// told that nobody knows.
func TestLostReplyIsNotRepeated(t *testing.T) {
	for _, row := range []struct {
		fault fakeserver.Fault
		is    error
	}{
		{fakeserver.LoseReply(fakeserver.CloseEarly()), io.EOF},
		{fakeserver.LoseReply(fakeserver.ResetConnection()), syscall.ECONNRESET},
		{fakeserver.TruncateReply(10), io.ErrUnexpectedEOF},
		{fakeserver.ResetReply(10), syscall.ECONNRESET},
		{fakeserver.LoseReply(fakeserver.RawAnswer(200, "text/html", "<html>")), agentmessaging.ErrOutcomeUnknown},
	} {
		over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
			agent := newAgent(t, client, create{})
			lost := fake.Inject(row.fault, fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Required()
			_, err := client.SendMessage(t.Context(), agent.ID, message{Text: "hello"})
			var unknown *agentmessaging.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown, row.fault)
			assert.ErrorIs(t, err, row.is, row.fault)
			assert.Equal(t, 1, lost.Hits())
			assert.Len(t, fake.Conversation(agent.ID), 1)
		})
	}
}

// TestGatewayTimeoutOfMessage: the answer is an error, and what became of the
// message is for the caller to find out.
func TestGatewayTimeoutOfMessage(t *testing.T) {
	over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
		agent := newAgent(t, client, create{})
		fake.Inject(fakeserver.LoseReply(fakeserver.Answer(504, ""))).Times(1)
		_, err := client.SendMessage(t.Context(), agent.ID, message{Text: "hello"})
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure)
		assert.ErrorIs(t, err, agentmessaging.ErrOutcomeUnknown)
		assert.ErrorIs(t, err, agentmessaging.ErrServer)
		assert.Equal(t, []any{504, "gateway_timeout", 1}, []any{failure.StatusCode, failure.Code, failure.Attempts})
		assert.Len(t, fake.Conversation(agent.ID), 1)
	})
}

// TestRetryAfterForms: each form is waited out, and a message that was refused
// with 429 is repeated.
func TestRetryAfterForms(t *testing.T) {
	const backoff = time.Second // where nothing can be read
	for form, wait := range map[string]time.Duration{
		"7":                                7 * time.Second,
		"1.5":                              1500 * time.Millisecond,
		"Sat, 01 Jan 2000 00:00:30 GMT":    30 * time.Second, // a bubble begins at midnight
		"Saturday, 01-Jan-00 00:00:30 GMT": 30 * time.Second,
		"Sat Jan  1 00:00:30 2000":         30 * time.Second,
		"Fri, 31 Dec 1999 00:00:00 GMT":    backoff,
		"soon":                             backoff,
		"-3":                               backoff,
		"":                                 backoff,
	} {
		over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
			agent := newAgent(t, client, create{})
			fake.Inject(fakeserver.RateLimited(form), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)).Times(1)
			begun := time.Now()
			_, err := client.SendMessage(t.Context(), agent.ID, message{Text: "hello"})
			require.NoError(t, err)
			assert.Equal(t, wait, time.Since(begun), form)
			assert.Len(t, fake.Conversation(agent.ID), 1)
		})
	}
}

// TestFaultsOfReading: a GET is repeated, whatever became of its answer.
func TestFaultsOfReading(t *testing.T) {
	for _, fault := range []fakeserver.Fault{
		fakeserver.CloseEarly(), fakeserver.ResetConnection(), fakeserver.Answer(503, ""), fakeserver.RawAnswer(502, "text/html", "<html>"),
		fakeserver.RawAnswer(200, "application/json", "{"), fakeserver.TruncateReply(3), fakeserver.ResetReply(3),
		fakeserver.LoseReply(fakeserver.CloseEarly()),
	} {
		over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
			agent := newAgent(t, client, create{})
			injection := fake.Inject(fault).Times(1)
			got, err := client.GetAgent(t.Context(), agent.ID)
			require.NoError(t, err, fault)
			assert.Equal(t, agent.ID, got.ID)
			assert.Equal(t, 1, injection.Hits())
			assert.Equal(t, 3, fake.CallCount())
		})
	}
}

// TestHangIsCutOffByTheDeadline: in virtual time, and the outcome of what may
// have been carried out is unknown.
func TestHangIsCutOffByTheDeadline(t *testing.T) {
	for fault, stored := range map[fakeserver.Fault]int{
		fakeserver.Hang():                       0,
		fakeserver.LoseReply(fakeserver.Hang()): 1,
		fakeserver.DripReply(1, 10*time.Second): 1,
		fakeserver.Latency(time.Hour):           0,
	} {
		over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
			agent := newAgent(t, client, create{})
			fake.Inject(fault)
			begun := time.Now()
			_, err := client.SendMessage(t.Context(), agent.ID, message{Text: "hello"})
			require.ErrorIs(t, err, agentmessaging.ErrOutcomeUnknown, fault)
			assert.Positive(t, time.Since(begun))
			synctest.Wait()
			assert.Len(t, fake.Conversation(agent.ID), stored, fault)
		})
	}
}

// TestDirectTellsWhatWasSent: a request that was refused before it left is
// known not to have been sent, over Direct as over the wire.
func TestDirectTellsWhatWasSent(t *testing.T) {
	over(t, func(t *testing.T, fake *fakeserver.Server, client *agentmessaging.Client) {
		require.NoError(t, fake.Close())
		_, err := client.SendMessage(t.Context(), "agent_000001", message{Text: "hello"})
		var failure *agentmessaging.Error
		require.ErrorAs(t, err, &failure)
		assert.ErrorIs(t, err, syscall.ECONNREFUSED)
		assert.Equal(t, 3, failure.Attempts)
	})
}
