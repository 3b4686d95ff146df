package e2e_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// books are one side's account of a soak.
type books struct{ created, messages, read, unknown, refused, attempts atomic.Int64 }

// TestSoak lets thousands of callers share one client and one fake under
// random faults, in virtual time, and balances the books: what the client
// reports is what the service did. Outcomes that are unknown are counted apart
// on both sides. A goroutine that is left over fails the bubble.
func TestSoak(t *testing.T) {
	for name, way := range map[string]wayToFake{"wire": overMemory, "direct": directly} {
		t.Run(name, func(t *testing.T) {
			// A 429 by chance is no limit with a window behind it: the cool-down
			// would let four calls pass each second.
			synctest.Test(t, func(t *testing.T) {
				soak(t, callers(name), time.Second, way, agentmessaging.WithoutCoolDown())
			})
		})
		t.Run(name+", cool-down", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { soak(t, 150, time.Second, way, agentmessaging.WithTimeout(24*time.Hour)) })
		})
	}
	t.Run("HTTP/2", func(t *testing.T) { // on sockets, where nothing takes long
		soak(t, 100, time.Millisecond, overTLS, agentmessaging.WithoutCoolDown())
	})
}

// callers is how many call at once. The race detector allows 8,128 goroutines,
// and a connection takes up to five.
func callers(transport string) int {
	if transport == "direct" {
		return 2_000
	}
	return 500
}

func soak(t *testing.T, callers int, pause time.Duration, way wayToFake, opt agentmessaging.Option) {
	fake := fakeserver.New(t, withoutLimits(fakeserver.WithCallLimit(0))...)
	var (
		creations = fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent)
		messages  = fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)
		lost      = fakeserver.LoseReply(fakeserver.ResetConnection())
	)
	fake.Inject(fakeserver.RateLimited(fmt.Sprint(pause.Seconds()))).Chance(0.25, 1)
	fake.Inject(fakeserver.Latency(pause)).Chance(0.2, 2)
	early := []*fakeserver.Injection{
		fake.Inject(fakeserver.CloseEarly(), creations).Chance(0.02, 3),
		fake.Inject(fakeserver.CloseEarly(), messages).Chance(0.02, 4),
	}
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()), fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)).Chance(0.2, 8)
	lostCreations := fake.Inject(lost, creations).Chance(0.05, 5)
	lostMessages := fake.Inject(lost, messages).Chance(0.05, 6)

	client := clientBy(t, fake, way, opt, agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: pause}))
	var (
		reported books
		group    sync.WaitGroup
	)
	for i := range callers {
		group.Go(func() { reported.caller(t, client, rand.New(rand.NewPCG(7, uint64(i)))) })
	}
	group.Wait()

	served := 0
	for _, agent := range fake.Agents() {
		served += len(fake.Conversation(agent.ID))
	}
	assert.EqualValues(t, reported.created.Load()+int64(lostCreations.Hits()), len(fake.Agents()))
	assert.EqualValues(t, reported.messages.Load()+int64(lostMessages.Hits()), served)
	assert.EqualValues(t, reported.unknown.Load(), lostCreations.Hits()+lostMessages.Hits()+early[0].Hits()+early[1].Hits())
	assert.EqualValues(t, reported.attempts.Load(), fake.Admin().DroppedCalls(), "every attempt arrived once")
	assert.Positive(t, reported.refused.Load())
	assert.Positive(t, reported.read.Load())
	for _, limit := range fake.Limits(fake.Key()) {
		if limit.Key == fakeserver.LimitAgentCreateKeyDay {
			assert.Equal(t, len(fake.Agents()), limit.Used, "quota spent")
		}
	}
}

// caller creates an agent, sends it messages and keeps the books.
func (b *books) caller(t *testing.T, client *agentmessaging.Client, random *rand.Rand) {
	agentID := ""
	b.note(func(info *agentmessaging.CallInfo) error {
		agent, err := client.CreateAgent(agentmessaging.WithCallInfo(t.Context(), info), agentmessaging.CreateAgentParams{})
		if err == nil {
			agentID = agent.ID
		}
		return err
	}, &b.created)
	if agentID == "" {
		return
	}
	for range random.IntN(4) {
		b.note(func(info *agentmessaging.CallInfo) error {
			_, err := client.SendMessage(agentmessaging.WithCallInfo(t.Context(), info), agentID, agentmessaging.MessageParams{Text: "hi"})
			return err
		}, &b.messages)
		b.note(func(info *agentmessaging.CallInfo) error {
			_, err := client.GetAgent(agentmessaging.WithCallInfo(t.Context(), info), agentID)
			return err
		}, &b.read)
	}
}

func (b *books) note(call func(*agentmessaging.CallInfo) error, success *atomic.Int64) {
	var info agentmessaging.CallInfo
	err := call(&info)
	b.attempts.Add(int64(info.Attempts))
	switch {
	case err == nil:
		success.Add(1)
	case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
		b.unknown.Add(1)
	default:
		b.refused.Add(1)
	}
}

// withoutLimits lifts every limit of the fake.
func withoutLimits(opts ...fakeserver.Option) []fakeserver.Option {
	for _, limit := range []fakeserver.Limit{
		fakeserver.LimitKeyMinute, fakeserver.LimitIPMinute, fakeserver.LimitKeyDay, fakeserver.LimitAgentCreateKeyDay,
		fakeserver.LimitAgentCreateIPMinute, fakeserver.LimitBYOKSetKeyHour, fakeserver.LimitWarmUpKeyHour,
	} {
		opts = append(opts, fakeserver.WithLimit(limit, 1_000_000))
	}
	return opts
}
