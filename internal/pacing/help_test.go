package pacing

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

const (
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
	// epoch is when the tests begin, as late as real clocks are.
	epoch = 1_763_700_000 * second
)

func limitOf(key string, most int, window time.Duration) quota.Limit {
	return quota.Limit{Key: key, Max: most, Window: window}
}

// machine is a state with a clock, and answers in short.
type machine struct {
	t *testing.T
	*State
	limits []quota.Limit
	now    int64
	ids    uint64
}

func newMachine(t *testing.T, tuning Tuning, limits ...quota.Limit) *machine {
	return &machine{t: t, State: New(limits, tuning), limits: limits, now: epoch}
}

func (m *machine) all() quota.Set { return quota.Set(1)<<len(m.limits) - 1 }

func (m *machine) step(step quota.Step) quota.Answer {
	step.Limits = m.limits
	if step.Spends == 0 {
		step.Spends = m.all()
	}
	return m.Do(m.now, step)
}

func (m *machine) ask(id uint64) quota.Answer { return m.step(quota.Step{Kind: quota.Ask, ID: id}) }

func (m *machine) askFor(id uint64, limits ...int) quota.Answer {
	return m.step(quota.Step{Kind: quota.Ask, ID: id, Spends: quota.SetOf(limits...)})
}

func (m *machine) batch(id uint64) quota.Answer {
	return m.step(quota.Step{Kind: quota.Ask, ID: id, Batch: true})
}

func (m *machine) tell(kind quota.Kind, id uint64) { m.step(quota.Step{Kind: kind, ID: id}) }

func (m *machine) refuse(id uint64, key string, retryAfter time.Duration) {
	m.step(quota.Step{Kind: quota.Refused, ID: id, LimitKey: key, RetryAfter: retryAfter})
}

func (m *machine) newID() uint64 {
	m.ids++
	return 1<<32 | m.ids
}

// take is how many new calls go at once.
func (m *machine) take(most int) (n int) {
	for n < most {
		id := m.newID()
		if !m.ask(id).Granted {
			m.tell(quota.Unused, id)
			return n
		}
		n++
	}
	return n
}

// saturate asks for one call after the other, each as soon as it was told,
// until d has passed, and returns the times of the grants.
func (m *machine) saturate(d int64) (grants []int64) {
	for end := m.now + d; m.now < end; {
		id := m.newID()
		for m.now < end {
			answer := m.ask(id)
			if answer.Granted {
				grants = append(grants, m.now)
				break
			}
			m.now += answer.Wait.Microseconds()
		}
	}
	return grants
}

// limit is the machine's first.
func (m *machine) limit() *limit { return &m.State.limits[0] }

func (m *machine) wantWait(want time.Duration, answer quota.Answer) {
	m.t.Helper()
	assert.False(m.t, answer.Granted)
	assert.Equal(m.t, want, answer.Wait)
}

// most is the largest number of times within any span, its end excluded.
func most(times []int64, span int64) (n int) {
	from := 0
	for i := range times {
		for times[i]-times[from] >= span {
			from++
		}
		n = max(n, i-from+1)
	}
	return n
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
