// Package redisstore keeps the state of pacers in Redis or Valkey, so that all
// processes that use one API key share its limits.
//
//	store := redisstore.New(redisClient) // of go-redis
//	p, err := pacer.New(pacer.PreviewLimits(), pacer.WithStore(store, apiKey))
//	if err != nil {
//		return err
//	}
//	client, err := agentmessaging.NewClient(baseURL, apiKey, agentmessaging.WithLimiter(p))
//
// README.md of this module lists the options of the client that matter, and the servers on
// which the package was tested.
package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agent-messaging-service/agentmessaging-go/pacer"
)

// Store is a pacer.Store in Redis. It is safe for concurrent use. It opens no connection, so
// it needs no Close.
type Store struct{ client redis.Scripter }

var _ pacer.Store = (*Store)(nil)

// New returns a store that uses a client of go-redis, for one server, Sentinel or a Cluster.
// New opens no connection. For a nil client, New returns nil, and pacer.WithStore reports that
// as an error.
func New(client redis.Scripter) *Store {
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return &Store{client}
}

// versionLength is the length in bytes of a version. The value in Redis is the version, followed
// by the pacer's value.
const versionLength = 26

var (
	load = redis.NewScript(`local time = redis.call('TIME')
return {redis.call('GET', KEYS[1]) or '', time[1], time[2]}`)

	swap = redis.NewScript(`if redis.call('GETRANGE', KEYS[1], 0, #ARGV[2] - 1) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3], 'PX', ARGV[4])
return 1`)
)

// Load returns the value, the value's version and the server's time. If the server does not
// have the key, value and version are empty and err is nil. An error begins with
// "redisstore: ", and wraps the error of go-redis or of ctx.
func (s *Store) Load(ctx context.Context, key string) (value []byte, version string, now time.Time, err error) {
	reply, err := load.Run(ctx, s.client, []string{key}).StringSlice()
	if err != nil {
		return nil, "", time.Time{}, fmt.Errorf("redisstore: %w", err)
	}
	seconds, _ := strconv.ParseInt(reply[1], 10, 64)
	micros, _ := strconv.ParseInt(reply[2], 10, 64)
	n := min(len(reply[0]), versionLength)
	return []byte(reply[0][n:]), reply[0][:n], time.Unix(seconds, micros*1000), nil
}

// Swap sets the value if the key still has the version. An empty version means that the server
// does not have the key. The value expires after ttl, in whole milliseconds, and after one at
// the earliest. If the key has another version, swapped is false and err is nil. An error begins
// with "redisstore: ", and wraps the error of go-redis or of ctx. After an error, the value may
// or may not be set.
func (s *Store) Swap(ctx context.Context, key, version string, value []byte, ttl time.Duration) (swapped bool, err error) {
	n, err := swap.Run(ctx, s.client, []string{key}, version, rand.Text()[:versionLength], value, max(1, ttl.Milliseconds())).Int()
	if err != nil {
		return false, fmt.Errorf("redisstore: %w", err)
	}
	return n == 1, nil
}
