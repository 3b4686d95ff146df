package pacer_test

import (
	"cmp"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// waiting are calls by the names of their callers.
type waiting struct {
	pacer *pacer.Pacer
	group sync.WaitGroup

	mu              sync.Mutex
	served, refused string // in this order
}

// enter starts a call and waits until it is in the line, or has its answer.
func (w *waiting) enter(ctx context.Context, attempt agentmessaging.LimitedAttempt, name rune) {
	w.group.Go(func() {
		_, err := w.pacer.Acquire(ctx, attempt)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.served += string(name)
		} else {
			w.refused += string(name)
		}
	})
	synctest.Wait()
}

// orders are calls as they came, by the names of their callers, and what became of them.
var orders = []struct {
	came, served, refused string
	shut                  time.Duration
}{
	{"abcab", "abcab", "", 0},
	{"BaaaaaaaaaaB", "aaaaaaaBaaaB", "", 0},
	{"hhhhhL", "hLhhhh", "", 0},
	{"xab", "ab", "x", 0},
	{"xB", "B", "x", 0},
	{"at", "a", "t", 2 * time.Minute},
	{"ma", "a", "m", 2 * time.Minute},
}

// TestOrder of the calls that wait: interactive ones first but for every eighth,
// tenants by turns, and otherwise as they came. Who leaves keeps no place. When a
// limit shuts for longer than a call may take, the call is refused, and the
// others go when it opens.
func TestOrder(t *testing.T) {
	for _, test := range orders {
		synctest.Test(t, func(t *testing.T) {
			w := waiting{pacer: newPacer(t, perMinute(60))}
			held := acquire(t, w.pacer, message)
			use(t, w.pacer, message)
			leaves, leave := context.WithCancel(t.Context())
			as := map[rune]context.Context{
				'B': pacer.WithPriority(t.Context(), pacer.PriorityBatch), 'x': leaves, 't': within(t, 20*time.Second),
				'h': pacer.WithTenant(t.Context(), "heavy"), 'L': pacer.WithTenant(t.Context(), "light"),
			}
			for _, name := range test.came {
				attempt := patient()
				if name == 'm' {
					attempt = message // at most 90 s
				}
				w.enter(cmp.Or(as[name], t.Context()), attempt, name)
			}
			if leave(); test.shut > 0 {
				held.Done(tooMany("", test.shut))
			}
			began := time.Now()
			synctest.Wait()
			assert.Equal(t, test.refused, w.refused)
			w.group.Wait()
			assert.Equal(t, test.served, w.served)
			assert.InDelta(t, len(test.served), (time.Since(began) - test.shut).Seconds(), 1)
		})
	}
}

// TestRefusedAtOnce: a call is refused at once if its turn would come after the
// deadline, or if the limits let no call go for longer than MaxWait. A long line is
// no reason. A refused call keeps no place in the line.
func TestRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := waiting{pacer: newPacer(t, perMinute(60))}
		use(t, w.pacer, message)
		began := time.Now()
		w.enter(pacer.WithPriority(t.Context(), pacer.PriorityBatch), message, 'B')
		w.group.Wait()
		assert.Less(t, time.Since(began), 1500*time.Millisecond)
		for range 120 {
			w.enter(t.Context(), patient(), 'a')
		}
		refusal := wantRefusal(t, w.pacer, within(t, 110*time.Second), message)
		assert.Equal(t, "minute", refusal.LimitKey)
		assert.InDelta(t, 121, refusal.RetryAfter.Seconds(), 15)
		w.enter(within(t, 150*time.Second), message, 'b')
		acquire(t, w.pacer, message).Done(tooMany("hourly", time.Hour))
		w.group.Wait()
		assert.Contains(t, w.served, "b")
		refusal = wantRefusal(t, w.pacer, t.Context(), message)
		assert.InDelta(t, 3600, refusal.RetryAfter.Seconds(), 1)
		_, err := w.pacer.Acquire(within(t, 0), message)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
