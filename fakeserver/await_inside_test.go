package fakeserver

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls that are answered at the very moment at which a waiter begins are in
// the log or told to it, and never both.
func TestAwaitCallsWhileCallsCome(t *testing.T) {
	for range 500 {
		awaitAmongCalls(t)
	}
}

// awaitAmongCalls answers calls and waits for them, all at once.
func awaitAmongCalls(t *testing.T) {
	const calls = 6
	s := New(t)
	var all sync.WaitGroup
	answer := func(i int) func() {
		req := &request{world: s.world, record: &record{call: Call{TraceID: numbered("trace", i)}}}
		return func() { s.keep(req, answer{}, answer{}) }
	}
	s.mu.Lock()
	for i := range calls / 2 {
		all.Go(answer(i))
	}
	all.Go(func() {
		got, err := s.AwaitCalls(t.Context(), calls)
		assert.NoError(t, err)
		seen := map[string]bool{}
		for _, c := range got {
			seen[c.TraceID] = true
		}
		assert.Len(t, seen, calls, "no call counts twice")
	})
	for i := range calls / 2 {
		all.Go(answer(calls/2 + i))
	}
	s.mu.Unlock()
	all.Wait()
	require.Empty(t, s.watchers, "a waiter that is done is gone")
	require.Equal(t, calls, s.Admin().TotalCalls())
}

// Who begins to wait behind a Reset does not count a call that arrived before
// it; who waits since before it does.
func TestWaiterBehindAReset(t *testing.T) {
	s := New(t)
	before, behind := &gathering{need: 3}, &gathering{need: 3}
	s.enroll(&watcher{see: before.add})
	old := &request{world: s.world, record: new(record)}
	s.Reset()
	s.enroll(&watcher{see: behind.add})
	s.keep(old, answer{}, answer{})
	s.keep(&request{world: s.world, record: new(record)}, answer{}, answer{})
	assert.Len(t, before.found, 2)
	assert.Len(t, behind.found, 1)
	assert.NotSame(t, old.record, behind.found[0])
}

// What came just as the context ended is not taken back.
func TestWaitThatEndsAsTheLastCallComes(t *testing.T) {
	s := New(t)
	ended, cancel := context.WithCancel(t.Context())
	s.keep(&request{world: s.world, record: new(record)}, answer{}, answer{})
	cancel()
	for range 100 { // either end may be seen first
		calls, err := s.AwaitCalls(ended, 1)
		assert.NoError(t, err)
		assert.Len(t, calls, 1)
	}
	_, err := s.AwaitCalls(ended, 2)
	assert.ErrorIs(t, err, context.Canceled)
}
