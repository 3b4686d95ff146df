package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// TestWindow: a window and the guard hold no more than the limit.
func TestWindow(t *testing.T) {
	m := newMachine(t, Tuning{NoSmoothing: true}, limitOf("a", 3, time.Minute))
	assert.Equal(t, 1, m.take(1))
	m.now += 10 * second
	assert.Equal(t, 2, m.take(5))
	m.wantWait(50*time.Second+400*time.Millisecond, m.ask(9))
	m.now += 50*second + 400_000 - 1
	m.wantWait(time.Millisecond, m.ask(9)) // the shortest wait there is
	m.now++
	assert.True(t, m.ask(9).Granted)
	m.wantWait(10*time.Second, m.ask(10))
}

func TestGuardCanBeLeftOut(t *testing.T) {
	m := newMachine(t, Tuning{NoSmoothing: true, NoGuard: true}, limitOf("a", 1, time.Minute))
	m.ask(1)
	m.wantWait(time.Minute, m.ask(2))
}

func TestBurst(t *testing.T) {
	for _, tt := range []struct {
		most   int
		tuning Tuning
		want   int
	}{
		{1, Tuning{}, 1},
		{9, Tuning{}, 9},
		{60, Tuning{}, 10},
		{66, Tuning{}, 11},
		{600, Tuning{}, 100},
		{60, Tuning{Burst: 1}, 1},
		{60, Tuning{Burst: 25}, 25},
		{60, Tuning{NoSmoothing: true}, 60},
	} {
		m := newMachine(t, tt.tuning, limitOf("a", tt.most, time.Minute))
		assert.LessOrEqual(t, m.limit().burst, tt.want, "%+v", tt)
		assert.Equal(t, tt.want, m.take(1000), "%+v", tt)
	}
}

// TestSmoothing: after the burst calls keep 97 % of the even distance.
func TestSmoothing(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	assert.Equal(t, 10, m.take(100))
	m.wantWait(970*time.Millisecond, m.ask(100))
	m.now += 970_000 - 1
	m.wantWait(time.Millisecond, m.ask(100))
	m.now++
	assert.True(t, m.ask(100).Granted)
	m.wantWait(970*time.Millisecond, m.ask(101))
}

// TestCreditIsNoMoreThanTheBurst, however long nobody calls.
func TestCreditIsNoMoreThanTheBurst(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.take(10)
	m.now += 3600 * second
	assert.Equal(t, 10, m.take(100))
	m.now += 1_940_000
	assert.Equal(t, 2, m.take(100))
}

// TestCrowdDrainsEvenly: while somebody waits, little credit is kept.
func TestCrowdDrainsEvenly(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.take(10)
	m.ask(100)
	m.ask(101)
	m.now += 1_940_000
	assert.True(t, m.ask(100).Granted)
	m.wantWait(485*time.Millisecond, m.ask(101)) // half a distance is left of the two
}

// TestLate puts off the first call by its part of a distance.
func TestLate(t *testing.T) {
	m := newMachine(t, Tuning{Burst: 1, Late: 0.5}, limitOf("a", 60, time.Minute))
	m.wantWait(485*time.Millisecond, m.ask(1))
}

func TestCoolDown(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("b", 60, time.Minute))
	m.ask(1)
	m.refuse(1, "b", 7*time.Second)
	m.refuse(1, "b", 3*time.Second) // the longer one stays
	assert.True(t, m.askFor(2, 0).Granted)
	answer := m.ask(3)
	m.wantWait(7*time.Second, answer)
	assert.Equal(t, 1, answer.Limit)
	m.now += 7 * second
	assert.True(t, m.ask(3).Granted)
}

func TestCoolDownCanBeLeftOut(t *testing.T) {
	m := newMachine(t, Tuning{NoCoolDown: true}, limitOf("a", 60, time.Minute))
	m.ask(1)
	m.refuse(1, "a", 7*time.Second)
	assert.True(t, m.ask(2).Granted)
}

// TestLongWindowsAreNotSmoothed, but count.
func TestLongWindowsAreNotSmoothed(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 50, time.Hour))
	assert.Equal(t, 50, m.take(50))
	short := newMachine(t, Tuning{}, limitOf("a", 50, time.Hour-time.Microsecond))
	assert.Equal(t, 10, short.take(50))
}

func TestGap(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("d", 12, 24*time.Hour))
	m.take(10)
	assert.Equal(t, 970*time.Millisecond, m.ask(100).Gap)
	assert.Equal(t, 970*time.Millisecond, m.ask(101).Gap) // with one other
	assert.Equal(t, 1940*time.Millisecond, m.ask(101).Gap)
	m.now += 970_000
	assert.True(t, m.ask(100).Granted)
	m.tell(quota.Unused, 101)
	m.now += 2 * second
	m.ask(102)
	m.ask(103) // the probe
	m.now += second
	answer := m.ask(104)
	assert.Equal(t, 1, answer.Limit)
	assert.Zero(t, answer.Gap)
}

// TestUnused gives back the place in the window and the credit.
func TestUnused(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 2, time.Minute))
	m.ask(1)
	m.ask(2)
	m.tell(quota.Unused, 1)
	assert.True(t, m.ask(3).Granted)
	assert.False(t, m.ask(4).Granted)
	m.tell(quota.Unused, 1) // again
	m.tell(quota.Unused, 99)
	assert.False(t, m.ask(4).Granted)
	m.tell(quota.Unused, 4) // which waits
	m.tell(quota.Unused, 2)
	assert.True(t, m.ask(2).Granted, "it is asked for anew")
	assert.Len(t, m.limit().log, 2)
}

func TestUnusedIsKnownForAMinute(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 2, 10*time.Minute))
	m.ask(1)
	m.now += recall
	m.ask(2)
	m.tell(quota.Unused, 1)
	assert.Len(t, m.limit().log, 1)
	m.now += recall + 1
	m.tell(quota.Unused, 2)
	assert.Len(t, m.limit().log, 1)
}

// TestAskIsIdempotent: a lost answer costs nothing.
func TestAskIsIdempotent(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 2, 10*time.Minute))
	for range 5 {
		assert.True(t, m.ask(1).Granted)
		m.now += 10 * second
	}
	assert.Len(t, m.limit().log, 1)
	m.now += 10*second + 1 // past the minute
	assert.True(t, m.ask(1).Granted)
	assert.Len(t, m.limit().log, 2, "after a minute it is another call")
}

// TestIdempotentAmongOthers: other calls do not make it forgotten earlier.
func TestIdempotentAmongOthers(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, 10*time.Minute))
	m.ask(7)
	for range 3 {
		m.now += 20 * second
		m.take(1)
	}
	n := len(m.limit().log)
	assert.True(t, m.ask(7).Granted)
	assert.Len(t, m.limit().log, n)
}

func TestReplay(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 4, time.Minute), limitOf("b", 9, 2*time.Minute))
	m.ask(1)
	m.now += 30 * second
	m.step(quota.Step{Kind: quota.Replay, ID: 7 << 32, Grants: []quota.Grant{
		{ID: 1, Age: 30 * time.Second, Spends: 3}, // known
		{ID: 2, Age: 10 * time.Second, Spends: 3},
		{ID: 2, Age: 10 * time.Second, Spends: 3}, // twice
		{ID: 3, Age: 61 * time.Second, Spends: 3}, // too old for a
		{ID: 4, Age: 60300 * time.Millisecond, Spends: 3},
		{ID: 5, Age: time.Second, Spends: 2},
		{ID: 6, Age: -time.Hour, Spends: 1},
	}})
	assert.Equal(t, []uint64{4, 1, 2, 6}, idsOf(m.limit().log))
	assert.Equal(t, m.now, m.limit().log[3].at, "nothing was sent in the future")
	assert.Equal(t, []uint64{3, 4, 1, 2, 5}, idsOf(m.State.limits[1].log))
	assert.True(t, m.ask(2).Granted, "a replayed call is known")
	answer := m.ask(8)
	assert.False(t, answer.Granted)
	assert.Equal(t, 0, answer.Limit)
	m.step(quota.Step{Kind: quota.Replay})
	assert.Len(t, m.limit().log, 4)
}

// TestReplayCalms: there may be calls that the state has not been told of yet,
// so that one goes at once, whether the replay brings any or not.
func TestReplayCalms(t *testing.T) {
	replay := quota.Step{Kind: quota.Replay}
	t.Run("a burst", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("b", 600, time.Minute))
		m.step(replay)
		assert.True(t, m.ask(1).Granted)
		m.wantWait(970*time.Millisecond, m.ask(2))
		m.wantWait(97*time.Millisecond, m.askFor(3, 1)) // and not after 2, which waits for a
	})
	t.Run("and the limits that its calls did not spend", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("b", 60, time.Minute))
		m.step(quota.Step{Kind: quota.Replay, Grants: []quota.Grant{{ID: 9, Spends: 1}}})
		assert.True(t, m.askFor(1, 1).Granted)
		m.wantWait(970*time.Millisecond, m.askFor(2, 1))
	})
	t.Run("no one who has saved less", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
		m.take(10)
		m.now += 500_000
		m.step(replay)
		m.wantWait(470*time.Millisecond, m.ask(100))
	})
	t.Run("for the moment", func(t *testing.T) {
		m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
		m.step(replay)
		m.now += 970_000 * 4
		assert.Equal(t, 5, m.take(100))
	})
}

func idsOf(log []entry) (ids []uint64) {
	for _, e := range log {
		ids = append(ids, e.id)
	}
	return ids
}
