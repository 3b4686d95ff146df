package cooldown

import (
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// Attempt asks to pass.
type Attempt struct {
	Endpoint *spec.Endpoint
	SetsBYOK bool
	Left     int           // attempts of its call after this one
	MaxWait  time.Duration // a limit that is shut for longer refuses it
}

// Seat is the part of a cool-down that each call keeps for it.
type Seat struct {
	class int
	left  int      // attempts of its call after this one
	turns []*turns // that it was let pass in; none: it did not wait
	looks bool     // it goes through a gate that is shut for hours, to see whether that has opened

	// Of the cool-down that its 429 began or joined:
	Parked  bool
	Random  float64       // for the jitter
	jitter  time.Duration // of all that wait for it
	hurried bool          // it has no time for all of that
}

// Waits tells how long the call will wait until it tries again.
func (s *Seat) Waits(asked, wait time.Duration) { s.hurried = wait < asked+s.jitter }

// Outcome is how an attempt that was let pass has ended.
type Outcome struct {
	Refused    bool // with status 429
	Sent       bool // the service may have seen it
	LimitKey   string
	TraceID    string // of the refusal
	RetryAfter time.Duration
}

// A Refusal is the error where a limit is shut for longer than the call may wait.
type Refusal struct {
	LimitKey   string
	TraceID    string        // of the answer that shut it
	RetryAfter time.Duration // until it opens
}

// Error is for callers that do not look at the fields.
func (r *Refusal) Error() string {
	return "limit " + r.LimitKey + " is shut for " + r.RetryAfter.String()
}
