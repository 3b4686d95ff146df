package redisquota_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
)

var limits = []quota.Limit{
	{Key: "key_minute", Max: 60, Window: time.Minute},
	{Key: "key_day", Max: 1000, Window: 24 * time.Hour},
}

const canary = "ams-live-canary-0123456789abcdef"

// allSteps takes one step of each kind, so that everything is written.
func allSteps(tb testing.TB, c quota.Coordinator) {
	tb.Helper()
	for _, step := range []quota.Step{
		ask(limits, 1<<32), ask(limits, 1<<32+1),
		{Kind: quota.Refused, Limits: limits, Spends: 3, ID: 1 << 32, LimitKey: "minute", RetryAfter: time.Second},
		ask(limits, 1<<32+2), // waits now
		{Kind: quota.Accepted, Limits: limits, Spends: 3, ID: 1<<32 + 1},
		{Kind: quota.Unused, Limits: limits, Spends: 3, ID: 1<<32 + 1},
		{Kind: quota.Replay, Limits: limits, ID: 2 << 32, Grants: []quota.Grant{{ID: 2<<32 + 1, Age: time.Second, Spends: 3}}},
	} {
		do(tb, c, step)
	}
}

func do(tb testing.TB, c quota.Coordinator, step quota.Step) quota.Answer {
	tb.Helper()
	answer, err := c.Do(tb.Context(), step)
	require.NoError(tb, err)
	return answer
}

func keysOf(tb testing.TB, client *redis.Client) []string {
	tb.Helper()
	keys, err := client.Keys(tb.Context(), "*").Result()
	require.NoError(tb, err)
	return keys
}

func TestKeysExpireAndShareASlot(t *testing.T) {
	server := newServer(t)
	client := server.client(t)
	allSteps(t, server.coordinator(t, canary))
	keys := keysOf(t, client)
	require.Len(t, keys, 3)
	tag := regexp.MustCompile(`^agentmessaging:\{[0-9a-f]{32}\}:`)
	for _, key := range keys {
		assert.Equal(t, tag.FindString(keys[0]), tag.FindString(key))
		assert.Regexp(t, tag, key)
		left, err := client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		assert.Greater(t, left, 24*time.Hour, key)
		assert.LessOrEqual(t, left, 49*time.Hour, key)
	}
}

// TestEveryWriteExpires takes the expiry away before each step.
func TestEveryWriteExpires(t *testing.T) {
	server := newServer(t)
	client := server.client(t)
	c := server.coordinator(t, canary)
	for id := range uint64(5) {
		for _, key := range keysOf(t, client) {
			require.NoError(t, client.Persist(t.Context(), key).Err())
		}
		require.True(t, do(t, c, ask(limits, id+1)).Granted)
		for _, key := range keysOf(t, client) {
			assert.Positive(t, client.PTTL(t.Context(), key).Val(), key)
		}
	}
}

func TestAPIKeyIsNowhere(t *testing.T) {
	server := newServer(t)
	client := server.client(t)
	c := server.coordinator(t, canary)
	allSteps(t, c)
	for _, key := range keysOf(t, client) {
		value, err := client.Dump(t.Context(), key).Result()
		require.NoError(t, err)
		assert.NotContains(t, key+value, canary)
	}
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := c.Do(t.Context(), ask(limits, 7<<32))
	require.Error(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		printed := fmt.Sprintf(verb, c) + fmt.Sprintf(verb, *c) + fmt.Sprintf(verb, struct{ any }{c}) + fmt.Sprintf(verb, err)
		assert.NotContains(t, printed, canary)
		assert.NotContains(t, printed, fmt.Sprintf("%x", canary))
	}
}

func TestScriptIsLoadedAgain(t *testing.T) {
	server := newServer(t)
	c := server.coordinator(t, canary)
	epoch := do(t, c, ask(limits, 1)).Epoch
	require.NoError(t, server.client(t).ScriptFlush(t.Context()).Err())
	assert.Equal(t, epoch, do(t, c, ask(limits, 2)).Epoch)
}

func TestLostStateChangesTheEpoch(t *testing.T) {
	state := func(client *redis.Client) string {
		return client.Keys(context.Background(), "*:state:*").Val()[0]
	}
	for name, lose := range map[string]func(*redis.Client) error{
		"flush":   func(client *redis.Client) error { return client.FlushAll(context.Background()).Err() },
		"nothing": func(client *redis.Client) error { return client.Set(context.Background(), state(client), "", 0).Err() },
		"garbage": func(client *redis.Client) error {
			return client.Set(context.Background(), state(client), "\xc1garbage", 0).Err()
		},
		"cut": func(client *redis.Client) error {
			blob := client.Get(context.Background(), state(client)).Val()
			return client.Set(context.Background(), state(client), blob[:len(blob)/2], 0).Err()
		},
		"a number": func(client *redis.Client) error {
			return client.Set(context.Background(), state(client), "\x07", 0).Err()
		},
		"another version": func(client *redis.Client) error {
			return client.Eval(context.Background(), `redis.call('SET', KEYS[1], cmsgpack.pack({version = '0', limits = {}}))`,
				[]string{state(client)}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			c, client := server.coordinator(t, canary), server.client(t)
			epoch := do(t, c, ask(limits, 1)).Epoch
			if err := lose(client); err != redis.Nil { // that script returns nothing
				require.NoError(t, err)
			}
			assert.Greater(t, do(t, c, ask(limits, 2)).Epoch, epoch)
		})
	}
}

// TestIdempotentAsk: a client may send a step again when its answer was lost.
func TestIdempotentAsk(t *testing.T) {
	server := newServer(t)
	c, client := server.coordinator(t, canary), server.client(t)
	for range 3 {
		require.True(t, do(t, c, ask(limits, 1<<63+5)).Granted)
	}
	for _, key := range client.Keys(t.Context(), "*:log:*").Val() {
		assert.Equal(t, []string{"9223372036854775813"}, client.ZRange(t.Context(), key, 0, -1).Val())
	}
}

// TestNeverMoreThanMax lets many clients ask at once. An hour is not smoothed,
// so that all of it is there to be taken; one more is a probe.
func TestNeverMoreThanMax(t *testing.T) {
	server := newServer(t)
	hour := []quota.Limit{{Key: "hour", Max: 100, Window: time.Hour}}
	var granted, probes, next atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		c := server.coordinator(t, canary)
		group.Go(func() {
			for range 100 {
				answer, err := c.Do(t.Context(), ask(hour, uint64(next.Add(1))))
				switch {
				case !assert.NoError(t, err):
				case answer.Probe:
					probes.Add(1)
				case answer.Granted:
					granted.Add(1)
				}
			}
		})
	}
	group.Wait()
	assert.EqualValues(t, 100, granted.Load())
	assert.EqualValues(t, 1, probes.Load())
}

// TestLimitsShareLogs: while a fleet moves to other limits, those that have
// moved see the calls of those that have not.
func TestLimitsShareLogs(t *testing.T) {
	server := newServer(t)
	c := server.coordinator(t, canary)
	old := []quota.Limit{{Key: "hour", Max: 3, Window: time.Hour}}
	moved := []quota.Limit{{Key: "minute", Max: 60, Window: time.Minute}, {Key: "hour", Max: 4, Window: time.Hour}}
	for id := range uint64(3) {
		require.True(t, do(t, c, ask(old, id+1)).Granted)
	}
	assert.False(t, do(t, c, ask(moved, 4)).Probe)
	assert.True(t, do(t, c, ask(moved, 5)).Probe, "the hour is full")
}

// TestNamelessLimits keeps a log for each.
func TestNamelessLimits(t *testing.T) {
	server := newServer(t)
	c, client := server.coordinator(t, canary), server.client(t)
	nameless := []quota.Limit{{Max: 60, Window: time.Minute}, {Max: 10, Window: time.Minute}, {Max: 5, Window: time.Minute}}
	step := ask(nameless, 1)
	step.Spends = quota.SetOf(1)
	require.True(t, do(t, c, step).Granted)
	logs := client.Keys(t.Context(), "*:log:*").Val()
	require.Len(t, logs, 1)
	assert.True(t, strings.HasSuffix(logs[0], "::60000:again"), logs[0])
	do(t, c, ask(nameless, 2))
	assert.Len(t, client.Keys(t.Context(), "*:log:*").Val(), 3)
}
