package fakeserver_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// frozen makes time stand still but for Advance.
func frozen() fakeserver.Option {
	return fakeserver.WithClock(func() time.Time { return time.Unix(year2040, 0) })
}

const anAgent = "/v1/agents/agent_000001"

func TestConcurrentCallsTakeExactly(t *testing.T) {
	const callers, each = 64, 20
	fake, c := newFake(t, frozen(), fakeserver.WithLimit("key_minute", 500), fakeserver.WithLimit("ip_minute", 10_000))
	agent := c.agent(emptyBody)
	fake.OnMessage().Reply("a", "b", "c")
	var accepted, refused atomic.Int64
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for range each {
				switch c.send(agent, "hello").status {
				case 200:
					accepted.Add(1)
				case 429:
					refused.Add(1)
				}
			}
		})
	}
	wait.Wait()
	assert.EqualValues(t, 499, accepted.Load())
	assert.EqualValues(t, callers*each-499, refused.Load())
	assert.Len(t, fake.Conversation(agent), 499)
	assert.Equal(t, 1000, fake.CallCount())
	assert.Equal(t, callers*each+1-1000, fake.Admin().DroppedCalls())
	replies := map[string]int{}
	for _, e := range fake.Conversation(agent) {
		replies[e.ReplyText]++
	}
	assert.Equal(t, map[string]int{"a": 1, "b": 1, "c": 497}, replies)
}
