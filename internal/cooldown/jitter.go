package cooldown

import "time"

// What a client that sets no agentmessaging.RetryPolicy goes by, and a limiter for it.
const (
	DefaultMinWait = 500 * time.Millisecond
	DefaultMaxWait = 90 * time.Second
)

// Jitter spreads out callers that were refused together: by half of the
// backoff, and by a tenth of a long Retry-After, within half of the room.
func Jitter(asked, backoff, room time.Duration, random float64) time.Duration {
	return min(time.Duration(random*(float64(asked)/10+float64(backoff)/2)), room/2)
}

func (g *gate) jitter() time.Duration { return Jitter(g.asked, DefaultMinWait, longestShut, g.random) }
