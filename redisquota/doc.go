// Package redisquota shares the limits of one API key among all processes that
// use it, through Redis or Valkey.
//
//	client := redis.NewClient(&redis.Options{
//		Addr:                  "redis:6379",
//		ContextTimeoutEnabled: true, // or steps that were given up go on for seconds
//		DialTimeout:           250 * time.Millisecond,
//		ReadTimeout:           250 * time.Millisecond,
//		MaxRetries:            -1,
//	})
//	coordinator, err := redisquota.New(redisquota.GoRedis(client), apiKey)
//	...
//	pacer, err := agentmessaging.NewPacer(agentmessaging.PreviewLimits(), agentmessaging.WithCoordinator(coordinator))
//	...
//	messenger, err := agentmessaging.NewClient(baseURL, apiKey, agentmessaging.WithLimiter(pacer))
//
// Every attempt of every process asks for leave first. One Lua script decides,
// atomically over all limits and by the clock of Redis, so the clocks of the
// processes do not matter. Who is turned away keeps a place in the fleet's
// queue, and is told how long to wait. What the service refuses all the same
// is a lesson for the whole fleet.
//
// # Outages
//
// The pacer gives a step up after 200 ms and goes on with the process's share
// of the limits. It looks for Redis every two seconds, and tells it then what
// was sent meanwhile. The same happens when Redis has lost its state.
//
// # Redis
//
// Redis 5 or later, or any Valkey: a single server, Sentinel, or a Cluster, as
// all keys of an API key share one hash slot. The commands are GET, SET,
// SETRANGE, PEXPIRE, TIME, ZADD, ZREM, ZREMRANGEBYSCORE, ZCARD, ZRANGE, ZSCORE,
// EVAL and EVALSHA. Every key expires when it has not been used for twice its
// longest window and an hour. The names of keys hold a digest of the API key,
// and their values hold neither it nor any text of a message.
package redisquota
