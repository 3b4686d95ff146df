package fakeserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Now returns the fake's time in UTC: the time of time.Now or of WithClock's function,
// plus the time that Advance and Sleep have added. It has no monotonic reading, since
// readings from inside and outside a synctest bubble cannot be compared.
func (s *Server) Now() time.Time { return s.config.clock().UTC().Add(time.Duration(s.offset.Load())) }

// Advance moves the fake's clock forward by d. Limits whose window ends in that time
// open. The times in later answers, including the Date header, are later by d. Each Sleep
// that would have ended by then returns. Other waits, such as a Latency, are not
// shortened. A client that waits after a 429 goes by the client's clock: give the client
// agentmessaging.WithClock(fake). A negative d panics, and so does a d that would move
// the clock by more than 292 years in all.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		misuse("Advance", "%v is negative; the clock only moves forward", d)
	}
	defer s.lock().Unlock()
	to := s.offset.Load() + int64(d)
	if to < 0 { // the sum has overflowed
		misuse("Advance", "%v more would be beyond what a time.Duration holds", d)
	}
	s.moveToLocked(to)
}

// moveToLocked moves the clock to an offset, but never back.
func (s *Server) moveToLocked(offset int64) { s.offset.Store(max(offset, s.offset.Load())) }

// Sleep waits until the fake's clock is d later, without waiting for that long:
// when nothing has reached the fake for a moment, it moves the clock to the wake
// time. So a Server is an agentmessaging.Clock, and a client with
// agentmessaging.WithClock(fake) waits out a minute limit in milliseconds, and a
// daily one if its RetryPolicy.MaxWait is a day.
//
// If several goroutines sleep, the clock moves to the earliest wake time, and
// every Sleep that ends by then returns: ten goroutines that sleep a minute move
// it by one minute. Advance ends each Sleep that it passes. When ctx ends first,
// Sleep returns ctx.Err() and does not move the clock. Deadlines of contexts go by
// real time, or by the synctest bubble's, and never by the fake's. Sleep returns an
// error if the clock would have moved by more than 292 years in all. A nil ctx panics.
//
// In a synctest bubble the clock moves only when everything in the bubble waits. To see
// that, a sleeper waits for a few milliseconds of the bubble's time, 2 ms if it is the only
// one, and wakes that much after its time, the same in every run. Outside, Go cannot tell
// whether a goroutine still works, so the clock moves when no call has arrived for 2 ms: a
// caller that computes for longer between two calls may find the clock later than
// expected. If calls never stop, the clock moves after half a second. For a test of exact
// times, take a bubble, and a client without agentmessaging.WithClock.
func (s *Server) Sleep(ctx context.Context, d time.Duration) error {
	checkContext("Sleep", ctx)
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	wake, err := s.beginSleep(d)
	if err != nil {
		return err
	}
	defer s.endSleep(wake)
	seen, quiet := 0, 0 // the activity at the last check, and the pauses since the activity changed
	for waited := time.Duration(0); ; quiet++ {
		activity, earlier := s.tryWake(wake, seen, quiet >= quietPauses, waited >= patience)
		if s.offset.Load() >= wake {
			return nil
		}
		if activity != seen {
			seen, quiet = activity, 0
		}
		if earlier > 0 {
			waited = 0
		}
		next := pause * time.Duration(min(1+earlier, longestPause))
		waited += next
		memnet.Pause(ctx, next)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// A sleeper checks the activity of the fake after each pause. The program is idle if there
// was none in quietPauses pauses in a row: no call arrived or was answered, and no Sleep
// began or ended. In a bubble a pause ends only when everything else in the bubble waits.
//
// One long pause is not enough. It also ends if the machine has stopped the whole program
// for that time, before any other goroutine runs again. While other sleepers wake
// earlier, a sleeper checks less often, because a thousand sleepers would keep the
// machine busy.
const (
	pause        = 500 * time.Microsecond
	quietPauses  = 4                      // 2 ms
	longestPause = 20                     // pauses, 10 ms
	patience     = 500 * time.Millisecond // after this time the earliest sleeper wakes, even if calls never stop
)

// tryWake moves the clock to the wake time of a sleeper if no other sleeper wakes earlier.
// Unless the sleeper was patient, the program must also be idle, with no activity since the
// last tryWake. tryWake returns the activity until now, and how many sleepers wake earlier.
func (s *Server) tryWake(wake int64, seen int, idle, patient bool) (activity, earlier int) {
	defer s.lock().Unlock()
	for _, other := range s.sleepers {
		if other < wake {
			earlier++
		}
	}
	if earlier == 0 && (idle && s.activity == seen || patient) {
		s.moveToLocked(wake)
	}
	return s.activity, earlier
}

// beginSleep returns the offset of the clock at which a sleeper wakes. Unlike a time, an
// offset means the same in every bubble. Each sleeper polls the offset, since a channel
// of a bubble must not be used outside.
func (s *Server) beginSleep(d time.Duration) (wake int64, err error) {
	defer s.lock().Unlock()
	s.activity++
	wake = s.offset.Load() + int64(d)
	if wake < 0 { // the sum has overflowed
		return 0, fmt.Errorf("fakeserver: Sleep: the clock cannot move by another %v", d)
	}
	s.sleepers = append(s.sleepers, wake)
	return wake, nil
}

// endSleep removes a sleeper. Before that, no sleeper that wakes later moves the clock.
func (s *Server) endSleep(wake int64) {
	defer s.lock().Unlock()
	s.activity++
	i := slices.Index(s.sleepers, wake)
	s.sleepers = slices.Delete(s.sleepers, i, i+1)
}
