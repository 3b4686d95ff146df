package fakeserver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Now returns the fake's time in UTC: time.Now or WithClock, and what Advance
// and Sleep have added. It has no monotonic reading: readings of a synctest
// bubble and of the outside cannot be compared.
func (s *Server) Now() time.Time { return s.config.clock().UTC().Add(time.Duration(s.offset.Load())) }

// Advance moves the fake's clock forward by d. Windows of limits close, and the
// times in later answers, the Date header included, are later by d. It ends
// each Sleep whose time has come. Other waits, such as a Latency, are not
// shortened. A client's cool-down ends by the client's clock: give the client
// agentmessaging.WithClock(fake). A negative d panics.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		misuse("Advance", "%v is negative; the clock only moves forward", d)
	}
	defer s.lock().Unlock()
	if int64(d) > math.MaxInt64-s.offset.Load() {
		misuse("Advance", "%v more would be beyond what a time.Duration holds", d)
	}
	s.moveTo(s.offset.Load() + int64(d))
}

// moveTo moves the clock to an offset, but never back, and wakes the sleepers whose
// time has come. The lock is held.
func (s *Server) moveTo(offset int64) {
	s.offset.Store(max(offset, s.offset.Load()))
	s.rouse()
}

// rewind takes the clock back to where no Advance has moved it.
func (s *Server) rewind() {
	defer s.lock().Unlock()
	s.offset.Store(0)
}

// Sleep waits until the fake's clock is d later, without waiting for that long:
// when everything that runs has come to rest, it moves the clock to the wake
// time. So a Server is an agentmessaging.Clock, and a client with
// agentmessaging.WithClock(fake) waits out a daily limit in a millisecond.
//
// Of several sleepers the one with the earliest wake time moves the clock, and
// all whose time has come with it return: ten sleepers of a minute move it by
// one minute. Advance ends the waits that it passes. When ctx ends first, Sleep
// returns ctx.Err() and leaves the clock alone. Deadlines of contexts count
// real time, or that of the synctest bubble, and never the fake's. A clock that
// cannot move that far, about 292 years in all, is an error.
//
// Callers that still run get the chance to sleep too before the clock moves. In
// a synctest bubble that is exact. Outside, Sleep looks for running goroutines
// until there are none. In a program that never rests it waits until nothing has
// reached the fake at 200 looks, of 50 microseconds or more each, and for 10,000
// looks at most.
func (s *Server) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	me := &sleeper{wake: s.Now().Add(d)}
	if begun := time.Now(); !isNanosecond(ctx, begun) {
		me.turn = make(chan struct{}, 1)
	}
	if err := s.beginSleep(me, d); err != nil {
		return err
	}
	defer s.endSleep(me)
	for s.Now().Before(me.wake) {
		first := s.isNext(me)
		me.nap(ctx, first)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if first && s.isNext(me) && (me.turn == nil || me.mayMove(s.touches.Load())) {
			s.wakeAt(me.wake.Sub(s.config.clock()))
		}
	}
	return nil
}

// isNanosecond reports whether the caller is in a synctest bubble: outside, no
// pause is as short as this one.
func isNanosecond(ctx context.Context, begun time.Time) bool {
	memnet.Pause(ctx, time.Nanosecond)
	return time.Since(begun) == time.Nanosecond
}

const (
	napTime    = 50 * time.Microsecond // between two looks
	minRests   = 3                     // looks in a row at which everything else rests
	quietLooks = 200                   // looks in a row at which nothing has reached the fake
	busyLooks  = 10_000                // the most looks in a program that never rests
)

// sleeper is one Sleep under way.
type sleeper struct {
	wake time.Time
	// turn gets a value when the sleeper becomes the first in line, and when the
	// clock moves. It is nil in a synctest bubble, whose channels nobody outside may
	// use: there a nap ends when nothing else runs, and costs nothing.
	turn    chan struct{}
	until   int64 // the offset of the clock at which it wakes: unlike a time it means the same in every bubble
	looks   int   // while it was the first in line
	quiet   int   // looks in a row at which nothing had reached the fake
	rested  int   // looks in a row at which everything else rested
	touches int64 // at the last look
}

func (me *sleeper) nap(ctx context.Context, first bool) {
	if first || me.turn == nil {
		memnet.Pause(ctx, napTime)
		return
	}
	select {
	case <-me.turn:
	case <-ctx.Done():
	}
}

func (s *Server) beginSleep(me *sleeper, d time.Duration) error {
	s.touches.Add(1)
	defer s.lock().Unlock()
	offset := s.offset.Load()
	if int64(d) > math.MaxInt64-offset {
		return fmt.Errorf("fakeserver: Sleep: the clock cannot move by another %v", d)
	}
	me.until = offset + int64(d)
	s.sleepers = append(s.sleepers, me)
	slices.SortStableFunc(s.sleepers, func(a, b *sleeper) int { return cmp.Compare(a.until, b.until) })
	return nil
}

func (s *Server) wakeAt(offset time.Duration) {
	defer s.lock().Unlock()
	s.moveTo(int64(offset))
}

// endSleep forgets a sleeper. Until then no sleeper that wakes later moves the
// clock.
func (s *Server) endSleep(me *sleeper) {
	s.touches.Add(1)
	defer s.lock().Unlock()
	s.sleepers = without(s.sleepers, me)
	s.rouse()
}

// rouse wakes the first in line, and those whose time has come. The lock is
// held.
func (s *Server) rouse() {
	for i, sl := range s.sleepers {
		if i > 0 && sl.until > s.offset.Load() {
			return
		}
		select {
		case sl.turn <- struct{}{}:
		default: // it is awake already, or in a bubble
		}
	}
}

// isNext reports whether no other sleeper wakes earlier, or as early and began
// before, unless that one is in another bubble.
func (s *Server) isNext(me *sleeper) bool {
	defer s.lock().Unlock()
	first := s.sleepers[0]
	return first == me || me.turn == nil && first.until == me.until
}

// mayMove looks once more, and reports whether everything else has rested at the
// last looks, or the sleeper has waited long enough for a program that never
// rests. What is on its way between two sockets is not seen at once.
func (me *sleeper) mayMove(touches int64) bool {
	me.looks++
	me.quiet++
	me.rested++
	if touches != me.touches {
		me.touches, me.quiet, me.rested = touches, 0, 0
	}
	if !rests() {
		me.rested = 0
	}
	return me.rested >= minRests || me.quiet >= quietLooks || me.looks >= busyLooks
}

// rests reports whether no goroutine but the caller's runs or could. A thread
// that looks for work counts as running for some microseconds. Runtimes before
// Go 1.26 do not tell: there nothing ever rests.
func rests() bool {
	samples := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	for range 200 {
		metrics.Read(samples)
		switch {
		case samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Uint64() > 0:
			return false
		case samples[0].Value.Uint64() == 1:
			return true
		}
	}
	return false
}
