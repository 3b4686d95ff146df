package redisquota_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/quota"
	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// recorder is a Redis that notes what it is asked and answers as it is told.
type recorder struct {
	calls      []string // evalsha or eval, the script, the keys and the arguments
	keys, args []string
	reply      []int64
	err        error // of EvalSha
}

func (r *recorder) EvalSha(_ context.Context, digest string, keys, args []string) ([]int64, error) {
	r.calls = append(r.calls, "evalsha "+digest)
	r.keys, r.args = keys, args
	return r.reply, r.err
}

func (r *recorder) Eval(_ context.Context, script string, keys, args []string) ([]int64, error) {
	sum := sha1.Sum([]byte(script))
	r.calls = append(r.calls, "eval "+hex.EncodeToString(sum[:]))
	r.keys, r.args = keys, args
	return r.reply, nil
}

func newCoordinator(tb testing.TB, r *recorder) *redisquota.Coordinator {
	tb.Helper()
	c, err := redisquota.New(r, canary)
	require.NoError(tb, err)
	return c
}

func TestNewRefuses(t *testing.T) {
	ok := &recorder{}
	for _, test := range []struct {
		client redisquota.Scripter
		key    string
		option redisquota.Option
		want   string
	}{
		{nil, canary, redisquota.WithPrefix("p"), "redisquota: the client is nil"},
		{redisquota.GoRedis(nil), canary, redisquota.WithPrefix("p"), "redisquota: the client is nil"},
		{ok, "", redisquota.WithPrefix("p"), "redisquota: the API key is empty"},
		{ok, canary, redisquota.WithPrefix(""), "redisquota: the prefix is empty or holds a brace"},
		{ok, canary, redisquota.WithPrefix("a{b"), "redisquota: the prefix is empty or holds a brace"},
		{ok, canary, redisquota.WithPrefix("a}b"), "redisquota: the prefix is empty or holds a brace"},
		{ok, canary, nil, "redisquota: an option is nil"},
	} {
		_, err := redisquota.New(test.client, test.key, test.option)
		assert.EqualError(t, err, test.want)
	}
}

// TestWire spells out what is sent for a step. There is no time in it.
func TestWire(t *testing.T) {
	r := &recorder{reply: []int64{1, 1, 2_000_000, 900_000, 1, 7, 1_763_700_000_123_456, 1_500_000}}
	answer, err := newCoordinator(t, r).Do(t.Context(), quota.Step{
		Kind: quota.Ask, Limits: limits, Spends: quota.SetOf(0, 1), ID: 1<<64 - 1, Batch: true,
		LimitKey: "day", RetryAfter: 1500 * time.Millisecond,
		Grants: []quota.Grant{{ID: 1<<63 + 1, Age: time.Second, Spends: quota.SetOf(1)}},
	})
	require.NoError(t, err)
	assert.Equal(t, quota.Answer{
		Granted: true, Probe: true, Wait: 2 * time.Second, Gap: 900 * time.Millisecond,
		Limit: 1, Fleet: 7, Epoch: 1_763_700_000_123_456, Alone: 1500 * time.Millisecond,
	}, answer)
	assert.Equal(t, []string{
		"1", "ask", "18446744073709551615", "4294967295", "3", "1", "day", "1500000",
		"key_minute", "60", "60000000", "key_day", "1000", "86400000000",
		"1", "9223372036854775809", "1000000", "2",
	}, r.args)
	require.Len(t, r.keys, 3)
	tag, _, _ := strings.Cut(r.keys[1], ":log:")
	assert.Regexp(t, `^agentmessaging:\{[0-9a-f]{32}\}$`, tag)
	assert.Regexp(t, `:state:1:[0-9a-f]+$`, r.keys[0])
	assert.Equal(t, []string{tag + ":log:key_minute:60000", tag + ":log:key_day:86400000"}, r.keys[1:])
}

func TestKeysDependOnWhatIsShared(t *testing.T) {
	keys := func(apiKey, prefix string, limits []quota.Limit) string {
		r := &recorder{}
		c, err := redisquota.New(r, apiKey, redisquota.WithPrefix(prefix))
		require.NoError(t, err)
		c.Do(t.Context(), quota.Step{Kind: quota.Ask, Limits: limits, Spends: 1, ID: 1})
		return strings.Join(r.keys, " ")
	}
	same := keys("a", "p", limits)
	assert.Equal(t, same, keys("a", "p", limits))
	assert.NotEqual(t, same, keys("b", "p", limits))
	assert.NotEqual(t, same, keys("a", "q", limits))
	assert.NotEqual(t, same, keys("a", "p", limits[:1]))
}

// TestUnknownScript: the script itself goes over the wire only where the
// server does not know it.
func TestUnknownScript(t *testing.T) {
	r := &recorder{reply: make([]int64, 8)}
	c := newCoordinator(t, r)
	do(t, c, ask(limits, 1))
	require.Len(t, r.calls, 1)
	digest := strings.TrimPrefix(r.calls[0], "evalsha ")
	r.err = errors.New("NOSCRIPT No matching script. Please use EVAL.")
	do(t, c, ask(limits, 1))
	assert.Equal(t, []string{"evalsha " + digest, "evalsha " + digest, "eval " + digest}, r.calls)
}

func TestErrorsExplain(t *testing.T) {
	for in, want := range map[string]string{
		"READONLY You can't write":    "redisquota: this Redis is a replica; connect to its primary: READONLY You can't write",
		"NOREPLICAS Not enough":       "redisquota: Redis refuses writes until enough replicas are connected: NOREPLICAS Not enough",
		"MISCONF Redis is configured": "redisquota: Redis refuses writes because it cannot save: MISCONF Redis is configured",
		"ERR Error running script (call to f_1): @user_script:9: OOM command": "redisquota: Redis has no memory left for the quota: " +
			"ERR Error running script (call to f_1): @user_script:9: OOM command",
		"WRONGTYPE Operation":  "redisquota: a key of the quota holds something else; choose another prefix: WRONGTYPE Operation",
		"NOPERM this user has": "redisquota: this Redis user may not run scripts on the keys of the quota: NOPERM this user has",
		"i/o timeout":          "redisquota: i/o timeout",
	} {
		cause := errors.New(in)
		r := &recorder{err: cause}
		_, err := newCoordinator(t, r).Do(t.Context(), ask(limits, 1))
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, cause)
	}
}

func TestForeignReply(t *testing.T) {
	_, err := newCoordinator(t, &recorder{reply: []int64{1}}).Do(t.Context(), ask(limits, 1))
	assert.EqualError(t, err, "redisquota: the script answered 1 numbers instead of 8")
}

func TestFormat(t *testing.T) {
	c := newCoordinator(t, &recorder{})
	assert.Regexp(t, `^redisquota\.Coordinator\(agentmessaging:\{[0-9a-f]{32}\}\)$`, fmt.Sprint(c))
}

// TestContextEndsBeforeTheStep with a client that reaches nobody.
func TestContextEndsBeforeTheStep(t *testing.T) {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: "/nowhere/redis.sock", MaxRetries: -1})
	defer client.Close()
	c, err := redisquota.New(redisquota.GoRedis(client), canary)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Do(ctx, ask(limits, 1))
	assert.Error(t, err)
}

// TestNoticeNamesEveryModule holds NOTICE to go.mod.
func TestNoticeNamesEveryModule(t *testing.T) {
	gomod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	notice, err := os.ReadFile("../NOTICE")
	require.NoError(t, err)
	modules := regexp.MustCompile(`(?m)^\t(\S+ v\S+)`).FindAllStringSubmatch(string(gomod), -1)
	require.NotEmpty(t, modules)
	for _, m := range modules {
		if strings.HasPrefix(m[1], "github.com/agent-messaging-service/") {
			continue // the client itself
		}
		assert.True(t, strings.Contains(string(notice), m[1]+"\n"), "NOTICE lacks %s", m[1])
	}
}
