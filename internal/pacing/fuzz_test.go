package pacing

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

// FuzzSteps plays steps that are coded in bytes, three for each, and holds the
// state to what must never be otherwise.
func FuzzSteps(f *testing.F) {
	f.Add([]byte("\x00\x01\x10\x00\x02\x20\x01\x01\x33"))
	f.Add([]byte("\x00\x01\x00\x00\x02\x00\x03\x02\xff\x02\x01\x00\x04\x07\x7f"))
	f.Add([]byte("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, code []byte) {
		m := newMachine(t, Tuning{}, limitOf("a", 3, 10*time.Second), limitOf("b", 20, time.Minute), limitOf("c", 4, time.Hour))
		for ; len(code) >= 3; code = code[3:] {
			m.coded(code[0], code[1], code[2])
		}
	})
}

func (m *machine) coded(what, who, much byte) {
	m.now += int64(much) * int64(much) * 1000 * (1 + int64(who%16)*int64(who%16))
	if much == 255 {
		m.now -= hour
	}
	step := quota.Step{
		Limits: m.limits, ID: uint64(who%4)<<32 | uint64(who), Spends: quota.Set(what >> 4), Batch: who&1 == 0,
		LimitKey: []string{"a", "b", "", "x"}[who%4], RetryAfter: time.Duration(much) * time.Duration(who) * time.Second / 8,
		Kind:   []quota.Kind{quota.Ask, quota.Ask, quota.Ask, quota.Refused, quota.Accepted, quota.Unused, quota.Replay}[what%16%7],
		Grants: []quota.Grant{{ID: uint64(much), Age: time.Duration(who) * time.Second, Spends: quota.Set(what >> 4)}},
	}
	answer := m.Do(m.now, step)
	if step.Kind == quota.Ask && !answer.Granted {
		require.GreaterOrEqual(m.t, answer.Wait, time.Millisecond)
		require.Contains(m.t, []int{0, 1, 2}, answer.Limit)
	}
	m.wantSound()
}

// wantSound checks what holds at all times.
func (m *machine) wantSound() {
	for i := range m.State.limits {
		l := &m.State.limits[i]
		require.GreaterOrEqual(m.t, l.level, 1.0)
		require.LessOrEqual(m.t, l.level, float64(l.max))
		require.GreaterOrEqual(m.t, l.burst, 1)
		require.GreaterOrEqual(m.t, l.pace, 1.0)
		require.LessOrEqual(m.t, l.pace, float64(l.max))
		for n := 1; n < len(l.log); n++ {
			require.LessOrEqual(m.t, l.log[n-1].at, l.log[n].at, "the log is in order")
		}
	}
	require.LessOrEqual(m.t, len(m.seen), maxSeen)
	ids := map[uint64]bool{}
	for _, ticket := range m.tickets {
		require.False(m.t, ids[ticket.id], "one ticket for each")
		ids[ticket.id] = true
	}
}
