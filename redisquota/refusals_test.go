package redisquota_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-messaging-service/agentmessaging-go/redisquota"
)

// TestRefusals are the server's reasons not to write. The state is whole
// afterwards: the same epoch goes on.
func TestRefusals(t *testing.T) {
	set := func(name, value string) func(*redis.Client) error {
		return func(client *redis.Client) error { return client.ConfigSet(context.Background(), name, value).Err() }
	}
	for word, test := range map[string]struct{ begin, end func(*redis.Client) error }{
		"READONLY": {
			func(client *redis.Client) error { return client.SlaveOf(context.Background(), "127.0.0.1", "1").Err() },
			func(client *redis.Client) error { return client.SlaveOf(context.Background(), "NO", "ONE").Err() },
		},
		"NOREPLICAS": {set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0")},
		"OOM":        {set("maxmemory", "1"), set("maxmemory", "0")},
	} {
		t.Run(word, func(t *testing.T) {
			server := newServer(t)
			c, client := server.coordinator(t, canary), server.client(t)
			epoch := do(t, c, ask(limits, 1)).Epoch
			require.NoError(t, test.begin(client))
			_, err := c.Do(t.Context(), ask(limits, 2))
			require.ErrorContains(t, err, word)
			assert.Regexp(t, `^redisquota: [^\n]+$`, err.Error())
			require.NoError(t, test.end(client))
			assert.Equal(t, epoch, do(t, c, ask(limits, 2)).Epoch)
		})
	}
}

func TestForeignKey(t *testing.T) {
	server := newServer(t)
	c, client := server.coordinator(t, canary), server.client(t)
	do(t, c, ask(limits, 1))
	for _, key := range keysOf(t, client) {
		require.NoError(t, client.Del(t.Context(), key).Err())
		require.NoError(t, client.RPush(t.Context(), key, "a list").Err())
		_, err := c.Do(t.Context(), ask(limits, 2))
		assert.ErrorContains(t, err, "redisquota: a key of the quota holds something else; choose another prefix: ")
		require.NoError(t, client.Del(t.Context(), key).Err())
	}
	other, err := redisquota.New(redisquota.GoRedis(client), canary, redisquota.WithPrefix("other"))
	require.NoError(t, err)
	do(t, other, ask(limits, 1))
	assert.Equal(t, 3, strings.Count(strings.Join(keysOf(t, client), "\n"), "other:{"))
}

// TestHungServer: the context bounds a step where the client heeds it.
func TestHungServer(t *testing.T) {
	server := newServer(t)
	c := server.coordinator(t, canary)
	epoch := do(t, c, ask(limits, 1)).Epoch
	server.freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, ask(limits, 2))
	assert.Error(t, err)
	server.thaw(t)
	assert.Equal(t, epoch, do(t, c, ask(limits, 2)).Epoch)
}

func TestRestart(t *testing.T) {
	server := newServer(t)
	c := server.coordinator(t, canary)
	epoch := do(t, c, ask(limits, 1)).Epoch
	server.kill()
	_, err := c.Do(t.Context(), ask(limits, 2))
	require.Error(t, err)
	server.start(t)
	assert.Greater(t, do(t, c, ask(limits, 2)).Epoch, epoch)
}
