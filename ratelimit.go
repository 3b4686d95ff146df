package agentmessaging

import (
	"context"
	"time"
)

// What a client and a limiter exchange, and the Clock by which both wait.

// A Limiter decides when an attempt may be sent, so that calls wait here
// instead of being refused there (interface 8). Every attempt, retries
// included, acquires a [Permit] first, also after the wait that Retry-After
// asked for. Implementations are safe for concurrent use.
//
// A Limiter of yours is asked in addition to the client's cool-down, and after it: a 429
// parks the callers of the limit that it names until its Retry-After has passed.
// [WithoutCoolDown] turns that off. A Pacer of package pacer takes the place of the
// cool-down, since it does the same itself.
//
// docs/migration.md of the repository has one around a rate.Limiter of golang.org/x/time.
type Limiter interface {
	// Acquire waits until the attempt may be sent, callers of the same kind
	// in about the order in which they came. It waits by the attempt's Clock
	// and returns ctx's error as soon as ctx ends. ctx has the caller's
	// deadline, if any, and none of [WithTimeout]. Where the wait would pass
	// it, or nobody could go for longer than the attempt's MaxWait, Acquire
	// returns at once, with an [*Error] of status 429 that has RetryAfter set,
	// which the caller of the method gets with Local set. Any other error is
	// the cause of an [*Error] with Local set.
	Acquire(ctx context.Context, attempt LimitedAttempt) (Permit, error)
}

// LimitedAttempt describes an attempt to a [Limiter].
type LimitedAttempt struct {
	// Method and Path name the endpoint; Path is the template, such as
	// /v1/agents/{agent_id}.
	Method, Path string
	// Number counts the attempts of the call from 1.
	Number int
	// SetsBYOK is true where the call also spends the BYOK set limit:
	// SetBYOK, and CreateAgent with LLM.APIKey (interface 8.1).
	SetsBYOK bool
	// MaxWait is the client's [RetryPolicy].MaxWait; 0 means 90 s. Refuse the
	// attempt at once when a limit lets nobody pass for longer than that. A long
	// line before it is no reason: a caller waits for its turn as long as its
	// context lasts.
	MaxWait time.Duration
	// Clock is the client's; nil means real time.
	Clock Clock
}

// A Permit is the leave to send one attempt. Done is called exactly once, even
// where the transport panics or Acquire returns an error with the permit. The client
// measures how long Acquire took, for [LimiterWait] and [CallInfo].
type Permit interface {
	// Done reports how the attempt ended. An attempt with Sent false has
	// spent nothing: it gives its permit back. It must not block.
	Done(AttemptOutcome)
}

// AttemptOutcome is how a permitted attempt ended.
type AttemptOutcome struct {
	// StatusCode is the answer's status; 0 means that there was none.
	StatusCode int
	// Sent is false where it is certain that the service saw no request.
	Sent bool
	// LimitKey and RetryAfter come from a 429: the limiter that refused, in the
	// service's words (interface 7), and the wait that it asks for. Either is
	// zero where the answer did not tell.
	LimitKey   string
	RetryAfter time.Duration
}

// A Clock tells a client the time and waits for it; see [WithClock]. It is
// used by many goroutines at once. The client calls Now while it holds a lock, so
// Now must not call the client or its limiter.
type Clock interface {
	// Now is the present time. Cool-downs, and the waits that the client
	// reports, are measured by it.
	Now() time.Time
	// Sleep returns nil when Now has moved on by d, and ctx's error as soon as
	// ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}
