package loadsim

import (
	"sync/atomic"
	"time"
)

// Event is something that happened in a World.
type Event struct {
	Kind    Kind
	At      time.Duration // since midnight of the first day
	Load    int           // the load of the call: an index of Scenario.Loads
	Wait    time.Duration // since the call began
	process int
}

// Kind is the kind of an Event. The service accepts or refuses an attempt. In the end a call
// is done or lost.
type Kind int

// The kinds. The last four belong to no Load: an accepted call from elsewhere, and the
// operations of the store.
const (
	Accepted Kind = iota
	Refused
	Done
	Lost
	elsewhere
	loaded
	swapped
	conflicted
)

// midnight is the time at which the clock of a synctest bubble starts.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time since midnight of the first day.
func clock() time.Duration { return time.Since(midnight) }

// deadline is a time of the clock.
type deadline struct{ at atomic.Int64 }

func (d *deadline) set(in time.Duration) { d.at.Store(int64(clock() + in)) }

// left returns the time until the deadline; less than 0 if it has passed.
func (d *deadline) left() time.Duration { return time.Duration(d.at.Load()) - clock() }
