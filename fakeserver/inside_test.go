package fakeserver

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
)

// A call that is answered just when AwaitCalls begins is counted once: AwaitCalls
// finds it in the log or is shown it, and never both.
func TestAwaitCallsWhileCallsCome(t *testing.T) {
	const calls = 6
	for range 100 {
		s := New(t)
		var all sync.WaitGroup
		s.mu.Lock() // until all are about to begin
		for i := range calls {
			c := &call{Request: new(wire.Request), gen: s.gen, entry: &entry{call: Call{TraceID: fmt.Sprint(i)}}}
			all.Go(func() { s.keep(t.Context(), c) })
			if i == calls/2 {
				all.Go(func() {
					got, err := s.AwaitCalls(t.Context(), calls)
					assert.NoError(t, err)
					seen := map[string]bool{}
					for _, c := range got {
						seen[c.TraceID] = true
					}
					assert.Len(t, seen, calls, "no call counts twice")
				})
			}
		}
		s.mu.Unlock()
		all.Wait()
		require.Empty(t, s.watchers, "a waiter that is done is gone")
		require.Equal(t, calls, s.totalCalls())
	}
}
