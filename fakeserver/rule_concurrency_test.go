package fakeserver_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// concurrently makes calls on many goroutines at once.
func concurrently(goroutines, each int, call func()) {
	var wait sync.WaitGroup
	for range goroutines {
		wait.Go(func() {
			for range each {
				call()
			}
		})
	}
	wait.Wait()
}

func TestNthHitsExactlyOne(t *testing.T) {
	for range 10 {
		fake, c := newFake(t)
		injection := fake.Inject(fakeserver.Answer(500, "")).Nth(2)
		var hit atomic.Int64
		concurrently(64, 1, func() {
			if c.call("GET", "/v1/status", noBody).status == 500 {
				hit.Add(1)
			}
		})
		assert.Equal(t, int64(1), hit.Load())
		assert.Equal(t, 1, injection.Hits())
	}
}

// Each step of a script is served exactly as often as it should.
func TestStepsUnderConcurrency(t *testing.T) {
	const each = 100
	fake, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	old := fake.OnMessage().Reply("old").Times(100)
	fake.OnMessage().Reply("one", "two", "three", "four").Times(64*each - 200)
	var mu sync.Mutex
	served := map[string]int{}
	concurrently(64, each, func() {
		text := c.send(agent, "x").text("reply_text")
		mu.Lock()
		defer mu.Unlock()
		served[text]++
	})
	assert.Equal(t, map[string]int{"one": 1, "two": 1, "three": 1, "four": 64*each - 203, "old": 100, "You wrote: x": 100}, served)
	assert.Equal(t, 100, old.Hits())
}

// Injections may come, change and go while calls are made, also from callbacks.
func TestInjectionsFromCallbacks(t *testing.T) {
	fake, c := newFake(t, unlimited()...)
	agent := c.agent(emptyBody)
	fake.OnMessage().ReplyFunc(func(fakeserver.Message) fakeserver.Reply {
		in := fake.Inject(fakeserver.Latency(0)).Times(3).Chance(0.5, 1)
		_ = in.Hits()
		in.Remove()
		return fakeserver.Reply{Text: "ok"}
	})
	fake.Inject(fakeserver.Latency(0), fakeserver.Where(func(call fakeserver.Call) bool {
		inner := fake.Inject(fakeserver.Hang(), fakeserver.ByText("nobody")).Nth(1)
		defer inner.Remove()
		fake.Advance(time.Millisecond)
		return len(fake.Calls()) >= 0 && call.Fault == "" && fake.Agents() != nil
	}))
	concurrently(16, 20, func() { c.send(agent, "x").wantOK(t) })
	assert.Len(t, fake.Conversation(agent), 320)
}
