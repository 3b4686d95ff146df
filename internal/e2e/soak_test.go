package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	agentmessaging "github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
	"github.com/agent-messaging-service/agentmessaging-go/internal/fakedoor"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// TestSoak lets many callers share one client and one fake under random faults, and
// balances the books: what the client reports is what the service did. Outcomes that
// are unknown are counted apart on both sides. In virtual time a goroutine that is
// left over fails the bubble.
func TestSoak(t *testing.T) {
	t.Run("cool-down", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { soak(t, time.Second, overMemory, agentmessaging.WithTimeout(24*time.Hour)) })
	})
	t.Run("HTTP/2", func(t *testing.T) { // on sockets, where nothing takes long
		soak(t, time.Millisecond, overTLS, agentmessaging.WithoutCoolDown())
	})
}

// books count the calls that succeeded, by endpoint, and how the others ended.
type books struct{ created, sent, unknown, attempts atomic.Int64 }

func soak(t *testing.T, pause time.Duration, way wayToFake, opt agentmessaging.Option) {
	fake := fakeserver.New(t, withoutLimits(fakeserver.WithCallLimit(0))...)
	creations, messages := fakeserver.ByEndpoint(fakeserver.EndpointCreateAgent), fakeserver.ByEndpoint(fakeserver.EndpointSendMessage)
	fake.Inject(fakeserver.RateLimited(fmt.Sprint(pause.Seconds()))).Chance(0.25, 1)
	fake.Inject(fakeserver.Latency(pause)).Chance(0.2, 2)
	lost := fakeserver.LoseReply(fakeserver.ResetConnection())
	early := fake.Inject(fakeserver.CloseEarly(), creations).Chance(0.02, 3)
	earlyToo := fake.Inject(fakeserver.CloseEarly(), messages).Chance(0.02, 4)
	fake.Inject(fakeserver.LoseReply(fakeserver.CloseEarly()), fakeserver.ByEndpoint(fakeserver.EndpointGetAgent)).Chance(0.2, 8)
	lostCreations, lostMessages := fake.Inject(lost, creations).Chance(0.05, 5), fake.Inject(lost, messages).Chance(0.05, 6)

	client := clientBy(t, fake, way, opt, agentmessaging.WithClock(fake), agentmessaging.WithRetry(agentmessaging.RetryPolicy{MinWait: pause}))
	var (
		told  books
		group sync.WaitGroup
	)
	for i := range 50 {
		group.Go(func() { told.caller(t, client, 1+i%4) })
	}
	group.Wait()

	kept := 0
	for _, agent := range fake.Agents() {
		kept += len(fake.Conversation(agent.ID))
	}
	assert.EqualValues(t, told.created.Load()+int64(lostCreations.Hits()), len(fake.Agents()))
	assert.EqualValues(t, told.sent.Load()+int64(lostMessages.Hits()), kept)
	assert.EqualValues(t, told.unknown.Load(), lostCreations.Hits()+lostMessages.Hits()+early.Hits()+earlyToo.Hits())
	assert.EqualValues(t, told.attempts.Load(), fakedoor.Of[fakeserver.Call](fake).DroppedCalls(), "every attempt arrived once")
	for _, limit := range fake.Limits(fake.Key()) {
		if limit.Key == fakeserver.LimitAgentCreateKeyDay {
			assert.Equal(t, len(fake.Agents()), limit.Used, "quota spent")
		}
	}
}

// caller creates an agent, sends it messages, reads it and keeps the books.
func (b *books) caller(t *testing.T, client *agentmessaging.Client, messages int) {
	note := func(success *atomic.Int64, call func(context.Context) error) bool {
		var info agentmessaging.CallInfo
		err := call(agentmessaging.WithCallInfo(t.Context(), &info))
		b.attempts.Add(int64(info.Attempts))
		switch {
		case err == nil:
			success.Add(1)
		case errors.Is(err, agentmessaging.ErrOutcomeUnknown):
			b.unknown.Add(1)
		}
		return err == nil
	}
	var agent *agentmessaging.Agent
	if !note(&b.created, func(ctx context.Context) (err error) {
		agent, err = client.CreateAgent(ctx, agentmessaging.CreateAgentParams{})
		return err
	}) {
		return
	}
	for range messages {
		note(&b.sent, func(ctx context.Context) error {
			_, err := client.SendMessage(ctx, agent.ID, agentmessaging.MessageParams{Text: "hi"})
			return err
		})
		note(new(atomic.Int64), func(ctx context.Context) error {
			_, err := client.GetAgent(ctx, agent.ID)
			return err
		})
	}
}

// withoutLimits lifts every limit of the fake.
func withoutLimits(opts ...fakeserver.Option) []fakeserver.Option {
	for _, limit := range spec.Limits {
		opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit.Key), 1_000_000))
	}
	return opts
}
