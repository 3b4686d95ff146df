package e2e_test

import (
	"errors"
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

// TestBooksBalance: many callers share a client and a fake under random faults. What the
// client reports is what the service did, and outcomes that are unknown are the ones
// that a fault made so. A goroutine that is left over fails the bubble.
func TestBooksBalance(t *testing.T) {
	const callers, each = 80, 5
	synctest.Test(t, func(t *testing.T) {
		opts := []fakeserver.Option{fakeserver.WithCallLimit(0)}
		for _, limit := range spec.Limits {
			opts = append(opts, fakeserver.WithLimit(fakeserver.Limit(limit.Key), 1_000_000))
		}
		fake := fakeserver.New(t, opts...)
		agent := fake.AddAgent(fake.Key(), fakeserver.Agent{})
		fake.Inject(fakeserver.RateLimited("1")).Chance(0.25, 1)
		fake.Inject(fakeserver.Latency(time.Second)).Chance(0.2, 2)
		early := fake.Inject(fakeserver.CloseEarly()).Chance(0.02, 3)
		lost := fake.Inject(fakeserver.LoseReply(fakeserver.ResetConnection())).Chance(0.05, 4)
		client := clientBy(t, fake, overMemory, agentmessaging.WithTimeout(24*time.Hour))
		var (
			sent, unknown, attempts atomic.Int64
			group                   sync.WaitGroup
		)
		for range callers {
			group.Go(func() {
				for range each {
					var info agentmessaging.CallInfo
					_, err := client.SendMessage(agentmessaging.WithCallInfo(t.Context(), &info), agent.ID, agentmessaging.MessageParams{Text: "hi"})
					attempts.Add(int64(info.Attempts))
					if err == nil {
						sent.Add(1)
					} else if assert.True(t, errors.Is(err, agentmessaging.ErrOutcomeUnknown), err) {
						unknown.Add(1)
					}
				}
			})
		}
		group.Wait()
		assert.Len(t, fake.Conversation(agent.ID), int(sent.Load())+lost.Hits())
		assert.EqualValues(t, lost.Hits()+early.Hits(), unknown.Load())
		assert.EqualValues(t, callers*each, sent.Load()+unknown.Load())
		assert.EqualValues(t, attempts.Load(), fakedoor.Of[fakeserver.Call](fake).DroppedCalls(), "every attempt arrived once")
	})
}
