package pacer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/quota"
	"github.com/agent-messaging-service/agentmessaging-go/pacer"
	"github.com/agent-messaging-service/agentmessaging-go/tools/loadsim"
)

// TestSetLimits: what was sent counts on, but not what was learned, and who waits
// goes by the new limits.
func TestSetLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(t, perMinute(6))
		sent := use(t, p, message)
		w := waiting{pacer: p}
		for range 20 {
			w.enter(t.Context(), patient(), 'a')
		}
		begin := time.Now()
		require.NoError(t, p.SetLimits(perMinute(600)))
		w.group.Wait()
		assert.Less(t, time.Since(begin), 3*time.Second)
		assert.Equal(t, sent+20, p.State().Limits[0].Used)
		fill(t, p, 2*time.Minute)
		acquire(t, p, patient()).Done(tooMany("", time.Second))
		assert.Less(t, level(p), 600.0)
		assert.Error(t, p.SetLimits(nil))
		require.NoError(t, p.SetLimits(perMinute(300)))
		assert.Equal(t, 300.0, level(p))
		require.NoError(t, p.SetLimits([]pacer.Limit{{Key: "other", Max: 2, Window: time.Minute}}))
		assert.Zero(t, p.State().Limits[0].Used)
	})
}

// TestSetLimitsReopens what refusals have shut, here and in the store, and counts
// a long limit to its new number.
func TestSetLimitsReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := pacer.PreviewLimits()
		limits[2].Max = 2
		p := sharing(t, limits, loadsim.NewStore())
		for range 2 {
			acquire(t, p, message)
		}
		acquire(t, p, message).Done(tooMany("day", 10*time.Hour))
		synctest.Wait()
		require.NoError(t, p.SetLimits(limits))
		wantRefusal(t, p, t.Context(), message)
		limits[2].Max = 5
		require.NoError(t, p.SetLimits(limits))
		assert.Zero(t, p.State().Limits[2].ClosedFor, "before the store has it")
		begin := time.Now()
		for range 6 {
			acquire(t, p, message)
		}
		assert.Less(t, time.Since(begin), 15*time.Second)
	})
}

// TestReopenedByAnotherProcess: a process whose calls wait reads the store every ten
// minutes.
func TestReopenedByAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, begin := loadsim.NewStore(), time.Now()
		p, other := sharing(t, perMinute(60), store), sharing(t, perMinute(60), store)
		acquire(t, p, message).Done(tooMany("", time.Hour))
		synctest.Wait()
		time.AfterFunc(5*time.Minute, func() { assert.NoError(t, p.SetLimits(perMinute(61))) })
		acquire(t, other, patient())
		assert.InDelta(t, 10, time.Since(begin).Minutes(), 1)
	})
}

// shifted is a clock that was set back.
type shifted struct {
	quota.RealClock
	years int
	back  time.Duration
}

func (s *shifted) Now() time.Time { return time.Now().AddDate(-s.years, 0, 0).Add(-s.back) }

// TestClockSetBack changes nothing, whether it is the client's or the store's, and
// neither does a client's clock that begins in the year 1.
func TestClockSetBack(t *testing.T) {
	for _, test := range []struct {
		isStores bool
		years    int
	}{{}, {isStores: true}, {years: 1999}} {
		synctest.Test(t, func(t *testing.T) {
			clock, store, attempt := &shifted{years: test.years}, loadsim.NewStore(), patient()
			p := newPacer(t, perMinute(60))
			if attempt.Clock = clock; test.isStores {
				p, attempt.Clock, store.Clock = sharing(t, perMinute(60), store), nil, clock
			}
			for i := range 180 {
				_, err := p.Acquire(within(t, 2*time.Second), attempt)
				require.NoError(t, err, "call %d", i)
				if i%60 == 30 {
					clock.back += time.Hour
				}
			}
			assert.InDelta(t, 60, p.State().Limits[0].Used, 2)
		})
	}
}

// TestWhoShares a value: processes with the same key and the same limits, but
// for their Max. SetLimits takes a process to another, also while calls wait.
func TestWhoShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := fleet(2)
		s.Span = time.Minute
		s.Real = []pacer.Limit{{Max: 1000, Window: time.Minute}}
		wantValues := func(want int, why string) {
			s.Store.Values(func(values map[string]loadsim.Entry) { assert.Len(t, values, want, why) })
		}
		s.Meanwhile = func(_ context.Context, w *loadsim.World) {
			time.Sleep(30 * time.Second)
			wantValues(1, "two processes")
			for _, p := range w.Fleet {
				require.NoError(t, p.SetLimits([]pacer.Limit{{Key: "other", Max: 600, Window: time.Minute}, {Key: "day", Max: 9000, Window: 24 * time.Hour}}))
				assert.Len(t, p.State().Limits, 2)
			}
			time.Sleep(29 * time.Second)
			wantValues(2, "other limits")
			assert.Equal(t, 2, w.Fleet[0].State().Processes)
		}
		assert.InDelta(t, 300, loadsim.Run(s).Measure(30*time.Second, s.Span).Accepted, 15)
		assert.Empty(t, log.String())
		acquire(t, sharing(t, perMinute(300), s.Store), message)
		wantValues(2, "another Max")
		acquire(t, newPacer(t, perMinute(60), pacer.WithStore(s.Store, "another key")), message)
		wantValues(3, "another key")
		s.Store.Away = 100 * time.Millisecond
		p := sharing(t, perMinute(60), s.Store)
		go acquire(t, p, message)
		time.Sleep(250 * time.Millisecond)
		require.NoError(t, p.SetLimits(pacer.PreviewLimits())) // while a step is under way
		time.Sleep(time.Second)
		assert.Len(t, p.State().Limits, 7)
	})
}
