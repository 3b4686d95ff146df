package redisquota

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Scripter runs Lua scripts on Redis: what a Coordinator needs of a client.
// Errors of the server keep its words, NOSCRIPT in front where it does not
// know the digest. Where the client repeats commands after a lost connection,
// it may repeat these: every step may arrive twice.
type Scripter interface {
	// EvalSha runs the script of this SHA-1, in hexadecimal.
	EvalSha(ctx context.Context, digest string, keys, args []string) ([]int64, error)
	// Eval runs the script, and makes the server remember it.
	Eval(ctx context.Context, script string, keys, args []string) ([]int64, error)
}

// GoRedis adapts a client of go-redis: *redis.Client, *redis.ClusterClient or
// *redis.Ring. Nil gives nil, which [New] refuses.
//
// By default that client tries for many seconds and does not look at a
// context's deadline. The pacer gives up on its own, but the attempts go on in
// the background; see the package documentation for options that suit.
func GoRedis(client redis.UniversalClient) Scripter {
	if client == nil {
		return nil
	}
	return goRedis{client}
}

type goRedis struct{ client redis.UniversalClient }

func (r goRedis) EvalSha(ctx context.Context, digest string, keys, args []string) ([]int64, error) {
	return r.client.EvalSha(ctx, digest, keys, anys(args)...).Int64Slice()
}

func (r goRedis) Eval(ctx context.Context, script string, keys, args []string) ([]int64, error) {
	return r.client.Eval(ctx, script, keys, anys(args)...).Int64Slice()
}

func anys(args []string) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		out[i] = arg
	}
	return out
}
