package agentmessaging

import (
	"context"
	"time"
)

// This file has the types that a client and a limiter exchange, and the Clock by which
// both wait.

// A Limiter decides when an attempt may be sent, so that calls wait in the program
// instead of being refused by the service (interface 8). Every attempt, retries
// included, acquires a [Permit] first, also after the wait that Retry-After
// asked for. Implementations must be safe for concurrent use.
//
// The client asks your Limiter after its own cool-down, in which calls wait after a 429
// until Retry-After has passed. [WithoutCoolDown] turns the cool-down off. A Pacer of
// package pacer takes the place of the cool-down, because it does the same itself.
//
// docs/migration.md in the repository wraps a rate.Limiter of golang.org/x/time.
type Limiter interface {
	// Acquire waits until the attempt may be sent. It lets attempts of the same kind go
	// in about the order in which they came, waits by the attempt's Clock, and returns
	// ctx's error as soon as ctx ends. ctx has the caller's deadline, if any, but none
	// for [WithTimeout].
	//
	// If the wait would pass that deadline, or a limit lets no attempt go for longer than
	// MaxWait, Acquire returns at once with an [*Error] of status 429 that has RetryAfter
	// set. The client's method returns that error with Local set. Any other error becomes
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
	// SetsBYOK is true if the call also spends the BYOK set limit:
	// SetBYOK, and CreateAgent with LLM.APIKey (interface 8.1).
	SetsBYOK bool
	// MaxWait is the client's [RetryPolicy].MaxWait; 0 means 90 s. Refuse the attempt at
	// once if a limit lets no attempt go for longer than that. Do not refuse it because
	// many others wait: it waits for its turn until its context ends.
	MaxWait time.Duration
	// Clock is the client's clock; nil means real time.
	Clock Clock
}

// A Permit allows one attempt to be sent. The client calls Done exactly once, even
// if the transport panics, or if Acquire returned an error together with the permit.
type Permit interface {
	// Done receives the outcome of the attempt. An attempt with Sent false has spent
	// nothing, so the limiter may give its place to another. Done must not block.
	Done(AttemptOutcome)
}

// AttemptOutcome says how a permitted attempt ended.
type AttemptOutcome struct {
	// StatusCode is the answer's status; 0 means that there was none.
	StatusCode int
	// Sent is false if the service certainly saw no request.
	Sent bool
	// LimitKey and RetryAfter come from a 429: the service's name of the limiter that
	// refused (interface 7), and the wait that the service asks for. Each is zero if the
	// answer does not have it.
	LimitKey   string
	RetryAfter time.Duration
}

// A Clock tells the time by which a client waits; see [WithClock]. Many goroutines use it
// at once.
type Clock interface {
	// Now returns the present time. The client measures cool-downs and reported waits by
	// this time.
	Now() time.Time
	// Sleep returns nil once Now has moved on by d, and ctx's error as soon as
	// ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}
