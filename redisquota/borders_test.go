package redisquota_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/internal/pacing"
	"github.com/agent-messaging-service/agentmessaging-go/quota"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// moment is a step, and the time since the one before it.
type moment struct {
	after time.Duration
	step  quota.Step
}

func asks(after time.Duration, ids ...uint64) (moments []moment) {
	for i, id := range ids {
		if i > 0 {
			after = 0
		}
		moments = append(moments, moment{after, quota.Step{Kind: quota.Ask, ID: id, Spends: 1}})
	}
	return moments
}

func batch(moments []moment) []moment {
	for i := range moments {
		moments[i].step.Batch = true
	}
	return moments
}

func refusal(after time.Duration, id uint64, retryAfter time.Duration) []moment {
	return []moment{{after, quota.Step{Kind: quota.Refused, ID: id, Spends: 1, RetryAfter: retryAfter}}}
}

func replayed(age time.Duration, id uint64) []moment {
	return []moment{{0, quota.Step{Kind: quota.Replay, Grants: []quota.Grant{{ID: id, Age: age, Spends: 1}}}}}
}

// TestTwinBorders plays what random histories hardly meet: the microsecond at
// which a rule begins to hold.
func TestTwinBorders(t *testing.T) {
	const guard = 400 * time.Millisecond
	history := func(parts ...[]moment) (all []moment) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}
	waits := func(id uint64, times int) (all []moment) { // keeps its ticket
		for range times {
			all = append(all, batch(asks(5*time.Second, id))...)
		}
		return all
	}
	for name, test := range map[string]struct {
		max     int
		window  time.Duration
		history []moment
	}{
		"a batch call that is older by just enough goes first": {1, 200 * time.Second, history(
			asks(0, 1), batch(asks(0, 2)), waits(2, 12), asks(500*time.Millisecond, 3, 2, 3))},
		"one that is not does not": {1, 200 * time.Second, history(
			asks(0, 1), batch(asks(0, 2)), waits(2, 11), asks(4900*time.Millisecond, 3, 2, 3))},
		"the oldest call that is replayed": {2, time.Minute, history(
			asks(0, 1), asks(61*time.Second, 2), replayed(time.Minute+guard, 3),
			refusal(0, 2, 61500*time.Millisecond), asks(62*time.Second, 4, 5))},
		"the next correction": {60, time.Minute, history(
			asks(0, 1, 2), refusal(0, 1, time.Second), refusal(2*time.Second, 2, time.Second), asks(2*time.Second, 3, 4, 5, 6, 7))},
		"a state that is as old as a window": {1, time.Minute, history(
			asks(0, 1), refusal(time.Minute, 1, 30*time.Second), asks(time.Minute, 2), refusal(time.Second, 2, 0), asks(0, 3))},
		"a state that is not quite": {20, time.Minute, history(
			asks(0, 1, 2, 3, 4, 5), refusal(time.Minute, 1, 30*time.Second), asks(31*time.Second, 6, 7, 8, 9))},
		"half of a fixed window": {4, time.Hour, history(
			asks(0, 1, 2), refusal(time.Second, 2, 40*time.Minute), asks(41*time.Minute, 3, 4),
			refusal(0, 4, 45*time.Minute), asks(46*time.Minute, 5, 6, 7, 8, 9))},
		"the last moment at which an ID is known": {1, 2 * time.Minute, history(
			asks(0, 1), asks(time.Minute, 1), asks(0, 2), asks(time.Microsecond, 1))},
		"a probe that nobody knows is accepted": {2, time.Hour, history(
			asks(0, 1, 2), asks(time.Minute, 3), refusal(0, 3, 59*time.Minute),
			[]moment{{0, quota.Step{Kind: quota.Accepted, Spends: 1}}}, asks(0, 4))},
		"a sixth that is no whole number": {71, time.Minute, history(
			asks(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13))},
		"the end of a small burst": {60, time.Minute, history(
			asks(0, 1), refusal(0, 1, time.Second), asks(30*time.Minute, 2, 3, 4, 5, 6, 7, 8, 9, 10))},
		"a process that was last seen a minute ago": {60, time.Minute, history(
			asks(0, 1), asks(time.Minute, 1<<32), asks(time.Microsecond, 1<<32+1))},
	} {
		t.Run(name, func(t *testing.T) {
			playMoments(t, []quota.Limit{{Key: "limit", Max: test.max, Window: test.window}}, test.history)
		})
	}
}

func playMoments(t *testing.T, limits []quota.Limit, moments []moment) {
	now := int64(1_763_700_000_123_456)
	twin, err := redisquota.New(clocked{redisquota.GoRedis(newServer(t).client(t)), &now}, canary)
	require.NoError(t, err)
	model := pacing.New(limits, pacing.Tuning{})
	for n, m := range moments {
		now += m.after.Microseconds()
		m.step.Limits = limits
		require.Equal(t, model.Do(now, m.step), do(t, twin, m.step), "step %d: %+v", n, m.step)
	}
}
