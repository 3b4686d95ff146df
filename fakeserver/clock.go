package fakeserver

import (
	"math"
	"time"
)

// now is the fake's time. UTC also drops the monotonic reading: those of a
// synctest bubble and of the outside cannot be compared.
func (s *Server) now() time.Time {
	return s.config.clock().UTC().Add(time.Duration(s.offset.Load()))
}

// Now returns the fake's time: that of time.Now, or of WithClock, and what
// Advance has added, in UTC. A client of the fake that is reached over a socket
// needs it to notice Advance: agentmessaging.WithClock(fake.Now). Those of
// HTTPClient and Direct do so by themselves.
func (s *Server) Now() time.Time { return s.now() }

// Advance moves the fake's clock forward by d: windows of limits close, and
// the times in later answers, the Date header included, are later by d. Waits
// that are under way are not shortened. A negative d panics.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		misuse("Advance", "%v is negative; the clock only moves forward", d)
	}
	for {
		old := s.offset.Load()
		if int64(d) > math.MaxInt64-old {
			misuse("Advance", "%v more would be beyond what a time.Duration holds", d)
		}
		if s.offset.CompareAndSwap(old, old+int64(d)) {
			return
		}
	}
}
