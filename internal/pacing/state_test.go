package pacing

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// TestClockThatIsSetBackGoesOn from the latest time that was seen.
func TestClockThatIsSetBackGoesOn(t *testing.T) {
	m := newMachine(t, Tuning{NoSmoothing: true}, limitOf("a", 1, time.Minute))
	m.ask(1)
	m.now -= 3600 * second
	m.wantWait(60400*time.Millisecond, m.ask(2))
	m.now += 30 * second
	m.wantWait(30400*time.Millisecond, m.ask(2))
}

func TestEpochIsTheFirstStep(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 1, time.Minute))
	assert.Equal(t, epoch, m.ask(1).Epoch)
	m.now += second
	assert.Equal(t, epoch, m.ask(2).Epoch)
	assert.Equal(t, epoch, m.step(quota.Step{Kind: quota.Replay}).Epoch)
}

// TestFleet counts processes of the last minute, by whatever step they took.
func TestFleet(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 60, time.Minute))
	assert.Equal(t, 1, m.ask(1<<32).Fleet)
	assert.Equal(t, 1, m.ask(1<<32|1).Fleet)
	m.now += 30 * second
	assert.Equal(t, 2, m.step(quota.Step{Kind: quota.Unused, ID: 2 << 32}).Fleet)
	m.now += 30 * second
	assert.Equal(t, 3, m.step(quota.Step{Kind: quota.Refused, ID: 3 << 32}).Fleet)
	m.now++
	assert.Equal(t, 2, m.step(quota.Step{Kind: quota.Replay, ID: 3 << 32}).Fleet)
}

func TestShare(t *testing.T) {
	limit := func(most int, window time.Duration) quota.Limit { return limitOf("a", most, window) }
	for _, tt := range []struct {
		limit quota.Limit
		fleet int
		want  quota.Limit
	}{
		{limit(60, time.Minute), 1, limit(60, time.Minute)},
		{limit(60, time.Minute), 4, limit(15, time.Minute)},
		{limit(60, time.Minute), 7, limit(8, 56*time.Second)},
		{limit(60, time.Minute), 60, limit(1, time.Minute)},
		{limit(10, time.Minute), 16, limit(1, 96*time.Second)},
		{limit(1, time.Second), 90, limit(1, 90*time.Second)},
		{limit(1000, 24*time.Hour), 4, limit(1000, 24*time.Hour)},
		{limit(3, time.Hour), 16, limit(3, time.Hour)},
		{limit(60, time.Minute), 0, limit(60, time.Minute)},
		{limit(60, time.Minute), -5, limit(60, time.Minute)},
		{limit(2_000_000_000, time.Minute), 4, limit(500_000_000, time.Minute)},
		{limit(1, 59*time.Minute), math.MaxInt, limit(1, time.Hour-time.Microsecond)},
	} {
		assert.Equal(t, []quota.Limit{tt.want}, Share([]quota.Limit{tt.limit}, tt.fleet), "%+v of %d", tt.limit, tt.fleet)
	}
}

// TestSharesOfAFleetAreTheLimit, neither less nor more.
func TestSharesOfAFleetAreTheLimit(t *testing.T) {
	for fleet := 1; fleet < 130; fleet++ {
		share := Share([]quota.Limit{limitOf("a", 60, time.Minute)}, fleet)[0]
		perMinute := float64(share.Max*fleet) * float64(time.Minute) / float64(share.Window)
		assert.InDelta(t, 60, perMinute, 0.000001, "%d", fleet)
	}
}

// TestHostileInput neither panics nor overflows, nor lets a wait be shorter
// than a millisecond or longer than can be added to.
func TestHostileInput(t *testing.T) {
	years := 365 * 24 * time.Hour
	for _, limit := range []quota.Limit{
		{}, limitOf("a", 1, time.Millisecond), limitOf("a", 1, 10*years), limitOf("a", math.MaxInt, 10*years),
		limitOf("a", math.MaxInt, time.Second), limitOf("a", -1, -1), limitOf("a", 1, math.MaxInt64),
		limitOf("a", math.MaxInt/2, time.Hour), limitOf("a", math.MaxInt>>10+2, time.Minute),
	} {
		m := newMachine(t, Tuning{}, limit, limitOf("", 3, time.Minute))
		for _, retryAfter := range []time.Duration{0, -1, math.MinInt64, 1, time.Hour, 100 * years, math.MaxInt64} {
			for _, spends := range []quota.Set{0, 1, 2, 3, 1 << 29, 1 << 31, 1<<32 - 1} {
				for _, id := range []uint64{0, 1, math.MaxUint64} {
					m.hostile(quota.Step{Spends: spends, ID: id, RetryAfter: retryAfter, Limits: m.limits})
				}
			}
			m.now += 400 * hour
		}
	}
}

func (m *machine) hostile(step quota.Step) {
	step.Grants = []quota.Grant{{}, {ID: 1, Age: math.MinInt64, Spends: 1<<32 - 1}, {ID: 2, Age: math.MaxInt64, Spends: 1}}
	for _, kind := range []quota.Kind{quota.Ask, quota.Accepted, quota.Refused, quota.Ask, quota.Unused, quota.Replay, "", "other"} {
		step.Kind = kind
		answer := m.Do(m.now, step)
		if kind == quota.Ask && !answer.Granted {
			assert.GreaterOrEqual(m.t, answer.Wait, time.Millisecond)
			assert.LessOrEqual(m.t, answer.Wait, 100*365*24*time.Hour)
			assert.GreaterOrEqual(m.t, answer.Gap, time.Duration(0))
		}
	}
}

// TestHugeLimitIsNone: MaxInt is more than a float64 holds.
func TestHugeLimitIsNone(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", math.MaxInt, time.Minute))
	assert.Equal(t, 5000, m.take(5000))
}

func TestTimeBeforeTheFirst(t *testing.T) {
	m := newMachine(t, Tuning{}, limitOf("a", 1, time.Minute))
	m.now = 0
	assert.NotPanics(t, func() { m.ask(1) })
	m.now = -5
	assert.NotPanics(t, func() { m.ask(2) })
}
