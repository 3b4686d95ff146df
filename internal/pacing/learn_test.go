package pacing

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// grownUp is a machine of 60 calls a minute that has run for three windows,
// with n calls in the last of them.
func grownUp(t *testing.T, n int) *machine {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.ask(1)
	m.now += 2 * minute
	m.saturate(int64(n) * 900_000)
	return m
}

// TestSmallBurstIsLearned from refusals that ask for a short wait.
func TestSmallBurstIsLearned(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.take(10)
	for _, tt := range []struct {
		later      int64
		retryAfter time.Duration
		want       int
	}{
		{0, 3*time.Second + time.Microsecond, 10}, // too long for a burst; too young for the level
		{0, 3 * time.Second, 5},                   // two even distances and a second
		{2*second - 1, time.Second, 5},            // came of the same mistake
		{1, time.Second, 2},
		{2 * second, 0, 1},
		{2 * second, time.Second, 1},
	} {
		m.now += tt.later
		m.refuse(9, "a", tt.retryAfter)
		assert.Equal(t, tt.want, m.limit().burst, "%+v", tt)
	}
	assert.Equal(t, 60.0, m.limit().level)
}

// TestSmallBurstIsForgotten after thirty windows, in which the burst stays.
func TestSmallBurstIsForgotten(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.take(10)
	m.refuse(9, "a", time.Second)
	m.now += 30*minute - 1
	assert.Equal(t, 5, m.take(50))
	m.now += 10 * second // it doubles from here on
	m.take(1)
	m.now += 2 * minute
	assert.Equal(t, 10, m.take(50))
}

func TestLevelIsLowered(t *testing.T) {
	for _, tt := range []struct {
		own         int
		want, after float64 // the level, and after the next window
	}{
		{60, 57, 58.2}, // 97 % of the level that failed
		{51, 57, 58.2}, // just enough
		{50, 50, 50},   // somebody else's use; 97 % of it is less
		{48, 48, 48},   // likewise
		{20, 48, 48},   // by a fifth at most
		{0, 48, 48},
	} {
		t.Run(fmt.Sprint(tt.own), func(t *testing.T) {
			m := grownUp(t, 0)
			m.fill(tt.own)
			m.refuse(9, "a", 30*time.Second)
			l := m.limit()
			assert.InDelta(t, tt.want, l.level, 1e-9)
			assert.Equal(t, 1, l.burst)
			m.now += minute
			m.tell(quota.Replay, 0)
			assert.InDelta(t, tt.after, l.level, 1e-9)
			assert.Equal(t, 2, l.burst)
		})
	}
}

// fill makes the first limit's log hold n calls of now.
func (m *machine) fill(n int) {
	var grants []quota.Grant
	for id := range uint64(n) {
		grants = append(grants, quota.Grant{ID: 5<<32 | id, Spends: m.all()})
	}
	m.step(quota.Step{Kind: quota.Replay, Grants: grants})
	assert.Len(m.t, m.limit().log, n)
}

// TestYoungStateLowersNothing: it does not know what was called before it.
func TestYoungStateLowersNothing(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.ask(1)
	m.now += minute
	m.refuse(1, "a", 30*time.Second)
	assert.Equal(t, 60.0, m.limit().level)
	m.now++
	m.refuse(1, "a", 30*time.Second)
	assert.Equal(t, 48.0, m.limit().level)
}

// TestRefusalsOfOneMistakeLowerOnce.
func TestRefusalsOfOneMistakeLowerOnce(t *testing.T) {
	m := grownUp(t, 0)
	m.fill(60)
	for range 5 {
		m.refuse(9, "a", 30*time.Second)
	}
	assert.Equal(t, 57.0, m.limit().level)
	m.now += 2*second + 105_263 // two even distances of the lower level
	m.refuse(9, "a", 30*time.Second)
	assert.InDelta(t, 54.15, m.limit().level, 1e-9)
}

// TestLevelIsOneAtLeast, and a level is a whole number of calls.
func TestLevelIsOneAtLeast(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 2, time.Minute))
	m.ask(1)
	for range 50 {
		m.now += 2*minute + second
		m.refuse(9, "a", 30*time.Second)
	}
	l := m.limit()
	assert.GreaterOrEqual(t, l.level, 1.0)
	assert.Equal(t, 1, l.allowed())
	m.now += 30 * second
	assert.True(t, m.ask(2).Granted)
	assert.False(t, m.ask(3).Granted)
}

// TestLevelClimbs by a tenth of the limit in each window, holds below the level
// that failed, and forgets that after ten windows.
func TestLevelClimbs(t *testing.T) {
	m := grownUp(t, 0)
	for range 4 {
		m.refuse(9, "a", 30*time.Second)
		m.now += 4 * second
	}
	l := m.limit()
	low := l.level
	assert.InDelta(t, 60*0.8*0.8*0.8*0.8, low, 0.01)
	failed := l.failedAt
	for window := int64(1); window <= 9; window++ {
		m.now = failed + window*minute
		m.tell(quota.Replay, 0)
		assert.InDelta(t, low, l.level, 1e-9, "%d", window) // it failed there
	}
	for window, want := range []float64{low + 6, low + 12, low + 18, low + 24, low + 30, 60, 60} {
		m.now = failed + int64(10+window)*minute
		m.tell(quota.Replay, 0)
		assert.InDelta(t, want, l.level, 1e-9, "%d", window)
	}
	assert.Equal(t, 10, l.burst)
}

// TestBurstDoublesInEachQuietWindow.
func TestBurstDoublesInEachQuietWindow(t *testing.T) {
	m := grownUp(t, 0)
	m.refuse(9, "a", 30*time.Second)
	for _, want := range []int{1, 2, 4, 8, 10, 10} {
		assert.Equal(t, want, m.limit().burst)
		m.now += minute
		m.tell(quota.Replay, 0)
	}
}

// TestLongQuietTimeIsCaughtUp, but a bounded number of windows in one step.
func TestLongQuietTimeIsCaughtUp(t *testing.T) {
	m := grownUp(t, 0)
	m.refuse(9, "a", 30*time.Second)
	m.now += 1000 * day
	m.tell(quota.Replay, 0)
	assert.Equal(t, 60.0, m.limit().level)
	assert.Equal(t, 10, m.limit().burst)
}

func TestLearningCanBeLeftOut(t *testing.T) {
	m := newMachine(t, Tuning{NoLearning: true}, limitOf("a", 60, time.Minute), limitOf("d", 20, 24*time.Hour))
	m.take(10)
	m.refuse(9, "a", time.Second)
	assert.Equal(t, 10, m.limit().burst)
	m.refuse(9, "d", time.Second)
	assert.Equal(t, unknown, m.State.limits[1].kind)
	m.wantWait(time.Second, m.ask(10))
	m.now += hour
	m.take(10)
	m.now += hour
	assert.False(t, m.ask(11).Granted, "no probe")
}

// TestLowerLimitIsFound by a machine that was told too much.
func TestLowerLimitIsFound(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	var sent []int64
	refusals, grants := 0, 0
	for m.now < epoch+2*hour {
		id := m.newID()
		if answer := m.ask(id); !answer.Granted {
			m.now += answer.Wait.Microseconds()
			m.tell(quota.Unused, id)
			continue
		}
		grants++
		if n := len(sent); n >= 40 && sent[n-40] > m.now-minute {
			refusals++
			m.refuse(id, "a", time.Duration(sent[n-40]+minute-m.now)*time.Microsecond)
			continue
		}
		sent = append(sent, m.now)
	}
	assert.Less(t, float64(refusals)/float64(grants), 0.02)
	assert.Greater(t, float64(len(sent)), 0.9*40*120)
}
