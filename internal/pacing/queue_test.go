package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// one is a machine that lets a call go every 60.4 s, with one gone.
func one(t *testing.T) *machine {
	m := newMachine(t, Tuning{}, limitOf("a", 1, time.Minute))
	m.ask(1000)
	return m
}

const turn = 60_400_000

// served are the ids in the order in which they get their turns, when all ask
// as often as they may.
func (m *machine) served(turns int, ask func(id uint64) quota.Answer, ids ...uint64) (order []uint64) {
	for _, id := range ids {
		ask(id)
	}
	for end := m.now + int64(turns)*turn; m.now <= end; m.now += patience / 10 {
		for _, id := range ids {
			if !contains(order, id) && ask(id).Granted {
				order = append(order, id)
			}
		}
	}
	return order
}

func contains(ids []uint64, id uint64) bool {
	for _, other := range ids {
		if other == id {
			return true
		}
	}
	return false
}

func TestQueueIsServedInOrder(t *testing.T) {
	m := one(t)
	assert.Equal(t, []uint64{3, 1, 2}, m.served(4, m.ask, 3, 1, 2))
}

func TestQueueCanBeLeftOut(t *testing.T) {
	m := newMachine(t, Tuning{NoQueue: true}, limitOf("a", 1, time.Minute))
	m.ask(1000)
	m.ask(1)
	m.wantWait(60400*time.Millisecond, m.ask(2))
}

// TestWaitCountsThoseAhead, each of them with a turn of its own.
func TestWaitCountsThoseAhead(t *testing.T) {
	m := one(t)
	m.wantWait(60400*time.Millisecond, m.ask(1))
	m.wantWait(2*60400*time.Millisecond, m.ask(2))
	m.wantWait(3*60400*time.Millisecond, m.ask(3))
	three := newMachine(t, Tuning{NoSmoothing: true}, limitOf("a", 3, time.Minute))
	three.take(2)
	three.now += 10 * second
	three.take(1)
	for id, want := range []time.Duration{50400, 50400, 60400, 50400 + 60400} {
		three.wantWait(want*time.Millisecond, three.ask(uint64(100+id)))
	}
}

// TestWaitOfAFreshWindow: where none of the log is in the way, the rounds of
// those ahead are.
func TestWaitOfAFreshWindow(t *testing.T) {
	m := newMachine(t, Tuning{NoSmoothing: true}, limitOf("a", 2, time.Minute))
	m.ask(1)
	m.refuse(1, "a", 10*time.Second)
	m.tell(quota.Unused, 1)
	for id, want := range []time.Duration{10000, 10000, 60000, 60000, 120000} {
		m.wantWait(want*time.Millisecond, m.ask(uint64(100+id)))
	}
}

// TestSmoothedWaitCountsThoseAhead, a distance for each.
func TestSmoothedWaitCountsThoseAhead(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	m.take(10)
	m.wantWait(970*time.Millisecond, m.ask(100))
	m.wantWait(1940*time.Millisecond, m.ask(101))
	m.wantWait(2910*time.Millisecond, m.ask(102))
}

func TestInteractiveGoesFirst(t *testing.T) {
	m := one(t)
	m.now += turn - second
	m.batch(1)
	m.ask(2)
	m.now += second
	assert.False(t, m.batch(1).Granted)
	assert.True(t, m.ask(2).Granted)
}

// TestBatchAges: it goes before interactive ones that are a minute younger.
func TestBatchAges(t *testing.T) {
	for _, tt := range []struct {
		younger int64
		want    bool
	}{{aging - 1, false}, {aging, true}} {
		m := newMachine(t, Tuning{}, limitOf("a", 1, 2*time.Minute))
		m.ask(1000)
		m.batch(1)
		m.keep(tt.younger, m.batch, 1)
		m.ask(2)
		m.keep(2*minute+400_000-tt.younger, m.ask2(2), 1)
		assert.Equal(t, tt.want, m.batch(1).Granted, "%d", tt.younger)
	}
}

// keep lets time pass while id asks now and then.
func (m *machine) keep(d int64, ask func(id uint64) quota.Answer, id uint64) {
	for end := m.now + d; m.now < end; m.now = min(end, m.now+patience) {
		ask(id)
	}
}

// ask2 asks for another one beside a batch call.
func (m *machine) ask2(other uint64) func(id uint64) quota.Answer {
	return func(id uint64) quota.Answer {
		m.ask(other)
		return m.batch(id)
	}
}

// TestTicketTakesItsPriorityFromTheLastAsk.
func TestTicketTakesItsPriorityFromTheLastAsk(t *testing.T) {
	m := one(t)
	m.batch(1)
	m.now += second
	m.ask(2)
	m.ask(1)
	m.wantWait(2*60400*time.Millisecond-time.Second, m.ask(2))
}

// TestDeadTicketLosesItsPlace a second after it was to ask again.
func TestDeadTicketLosesItsPlace(t *testing.T) {
	m := one(t)
	m.ask(1) // to come back in 5 s at the latest
	m.now += patience + lease
	assert.Equal(t, 2*turn-patience-lease, m.ask(2).Wait.Microseconds())
	m.now++
	assert.Equal(t, turn-patience-lease-1, m.ask(2).Wait.Microseconds())
}

func TestShortWaitHasAShortLease(t *testing.T) {
	m := one(t)
	m.now += turn - second
	m.ask(1)
	m.now += second + lease + 1
	assert.True(t, m.ask(2).Granted)
}

// TestAskingKeepsTheLease.
func TestAskingKeepsTheLease(t *testing.T) {
	m := one(t)
	m.ask(1)
	m.ask(2)
	m.keep(turn, m.ask, 1)
	assert.False(t, m.ask(2).Granted)
	assert.True(t, m.ask(1).Granted)
}

func TestWithdrawnTicketIsGone(t *testing.T) {
	m := one(t)
	m.ask(1)
	m.tell(quota.Unused, 1)
	m.wantWait(60400*time.Millisecond, m.ask(2))
}

// TestGreedyProcessGetsNoMore: it has one ticket at a time like the others.
func TestGreedyProcessGetsNoMore(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	grants := map[uint64]int{}
	tickets := map[uint64]uint64{1: 1 << 32, 2: 2 << 32, 3: 3 << 32}
	for m.now < epoch+10*minute {
		for process := uint64(1); process <= 3; process++ {
			for range map[bool]int{true: 20, false: 1}[process == 1] { // asks far too often
				if m.ask(tickets[process]).Granted {
					grants[process]++
					tickets[process]++
				}
			}
		}
		m.now += 50_000
	}
	for process, n := range grants {
		assert.InDelta(t, 200, n, 10, "%d", process)
	}
}

// TestThoseKeptByAnotherLimitAreNotAhead: a spent day holds up nobody else.
func TestThoseKeptByAnotherLimitAreNotAhead(t *testing.T) {
	m := newMachine(t, Tuning{NoLearning: true}, limitOf("minute", 60, time.Minute), limitOf("day", 1, 24*time.Hour))
	m.askFor(1, 0, 1)
	for id := uint64(2); id < 30; id++ {
		assert.Equal(t, 1, m.askFor(id, 0, 1).Limit)
	}
	assert.True(t, m.askFor(100, 0).Granted)
}

// TestThoseWhoseTurnIsNotLaterAreAhead, although they spend more limits.
func TestThoseWhoseTurnIsNotLaterAreAhead(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 1, time.Minute), limitOf("b", 1, time.Minute))
	m.ask(1)
	m.ask(2)
	m.wantWait(2*60400*time.Millisecond, m.askFor(3, 0))
}

// TestCrowdIsOfTheLimit: those who wait for another one do not disturb.
func TestCrowdIsOfTheLimit(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("b", 1, time.Minute))
	m.askFor(1, 1)
	m.askFor(2, 1)
	for id := uint64(10); id < 20; id++ {
		assert.True(t, m.askFor(id, 0).Granted)
	}
}

// TestDeniedAskConsumesNothing: it can ask as often as it likes.
func TestDeniedAskConsumesNothing(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute), limitOf("b", 1, time.Minute))
	m.ask(1)
	before := m.State.limits[0].log
	for range 100 {
		m.now += 1000
		assert.False(t, m.ask(2).Granted)
	}
	assert.Equal(t, before, m.State.limits[0].log)
	assert.Equal(t, int64(turn-100_000), m.ask(2).Wait.Microseconds())
}
