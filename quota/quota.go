// Package quota is what a pacer and a coordinator say to each other, so that
// many processes share the limits of one API key.
//
// Applications need the constructor of a [Coordinator] only, such as that of
// the redisquota module, and hand it to agentmessaging.WithCoordinator. Who
// writes a coordinator for another store keeps one state for each API key and
// carries out each [Step] on it atomically, by the store's own clock.
package quota

import (
	"context"
	"time"
)

// A Coordinator keeps the budget of one API key for all processes that share
// it. It is safe for concurrent use. The pacer bounds each Do by itself, also
// where ctx is ignored, and works on a local share while Do fails.
type Coordinator interface {
	// Do carries out one step, atomically over all limits and processes.
	Do(ctx context.Context, step Step) (Answer, error)
}

// Limit is one budget: at most Max calls in every Window.
type Limit struct {
	// Key names the limit in errors, and finds it where the service's
	// limit_key is the same (interface 7 shows no values).
	Key string
	// Max is at least 1.
	Max int
	// Window is at least a millisecond.
	Window time.Duration
}

// MaxLimits is how many limits a state holds at most.
const MaxLimits = 30

// Set is a set of limits, by their index.
type Set uint32

// SetOf returns the set of the given indexes.
func SetOf(indexes ...int) Set {
	var s Set
	for _, i := range indexes {
		s |= 1 << i
	}
	return s
}

// Has reports whether the limit of index i is in the set.
func (s Set) Has(i int) bool { return s&(1<<i) != 0 }

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	// Ask asks whether an attempt may be sent now. Until it is granted, the
	// same ID keeps its place in the fleet's queue by asking again; asked
	// again after that, the same ID is granted once more and counted once.
	Ask Kind = "ask"
	// Refused tells that the service answered 429.
	Refused Kind = "refused"
	// Accepted tells that it did not refuse an attempt that was a probe.
	Accepted Kind = "accepted"
	// Unused gives back a grant whose attempt was never sent, and withdraws
	// an ID that still waits.
	Unused Kind = "unused"
	// Replay brings in grants that were made while the coordinator was away.
	Replay Kind = "replay"
)

// Step is one message to the coordinator.
type Step struct {
	Kind Kind
	// Limits are all limits of the pacer, the same in every process.
	Limits []Limit
	// Spends are those of Limits that the attempt spends; at least one.
	Spends Set
	// ID is unique to the attempt. Its upper half names the process.
	ID uint64
	// Batch is true where interactive attempts go first. An Ask only.
	Batch bool
	// LimitKey and RetryAfter are those of the 429. Refused only.
	LimitKey   string
	RetryAfter time.Duration
	// Grants are what a Replay brings in.
	Grants []Grant
}

// Grant is an attempt that was sent with leave from elsewhere.
type Grant struct {
	ID     uint64
	Age    time.Duration // since it was granted
	Spends Set
}

// Answer is the coordinator's to an [Ask]; to other steps it holds Fleet and
// Epoch only.
type Answer struct {
	// Granted is the leave to send the attempt.
	Granted bool
	// Probe is true where the answer to the granted attempt teaches what kind
	// of window a limit has: report it with Refused or Accepted.
	Probe bool
	// Wait is how long to wait before asking again; at least a millisecond
	// where nothing is granted.
	Wait time.Duration
	// Alone is the part of Wait that the limits ask for, without that of the
	// attempts that go before.
	Alone time.Duration
	// Gap is the expected time between two grants to this process.
	Gap time.Duration
	// Limit is the index of the limit that keeps the attempt waiting longest.
	Limit int
	// Fleet is how many processes took a step within the last minute.
	Fleet int
	// Epoch changes when the coordinator has lost its state. A process that
	// sees that replays its grants.
	Epoch int64
}
