package fakeserver

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Calls that are answered at the very moment at which a waiter begins are in
// the journal or told to it, and never both.
func TestAwaitCallsWhileCallsCome(t *testing.T) {
	const rounds, calls = 20_000, 2
	s := New(t, WithCallLimit(calls))
	for range rounds {
		s.Reset()
		var answering sync.WaitGroup
		for range calls {
			answering.Go(func() { s.keep(&request{record: new(record)}, answer{}) })
		}
		got, err := s.AwaitCalls(t.Context(), calls)
		require.NoError(t, err)
		require.Len(t, got, calls)
		answering.Wait()
		require.Empty(t, s.waiters, "a waiter that is done is gone")
	}
	w := &waiter{need: 2, wake: func() {}}
	for _, r := range s.records() {
		w.add(r)
	}
	assert.Less(t, w.found[0].number, w.found[1].number)
}
