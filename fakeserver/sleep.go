package fakeserver

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Sleep waits until the fake's clock is d later, without waiting for that long:
// when everything that runs has come to rest, it moves the clock to the wake
// time. So a Server is an agentmessaging.Clock, and a client with
// agentmessaging.WithClock(fake) waits out a daily limit in microseconds.
//
// Of several sleepers the one with the earliest wake time moves the clock, and
// all whose time has come with it return: ten sleepers of a minute move it by
// one minute. Advance ends the waits that it passes. When ctx ends first, Sleep
// returns ctx.Err() and leaves the clock alone. Deadlines of contexts count
// real time, or that of the synctest bubble, and never the fake's.
//
// Callers that still run get the chance to sleep too before the clock moves. In
// a synctest bubble that is exact. Outside, Sleep looks for running goroutines
// until there are none, and in a busy program for at most 20 milliseconds; a
// goroutine in a system call counts as one that waits.
func (s *Server) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	me := &sleeper{wake: s.now().Add(d)}
	s.beginSleep(me, d)
	defer s.endSleep(me)
	begun := time.Now()
	memnet.Pause(ctx, time.Nanosecond)
	me.bubble = time.Since(begun) == time.Nanosecond // outside it is never so short
	for s.now().Before(me.wake) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.await(ctx, me)
	}
	return nil
}

// sleeper is one Sleep under way.
type sleeper struct {
	wake   time.Time
	until  int64 // the offset of the clock at which it wakes: unlike a time it means the same in every bubble
	bubble bool  // called in a synctest bubble, where a timer fires when nothing runs
	looks  int   // how often it was the next to wake, without a break
	first  time.Time
}

const (
	busyTime = 20 * time.Millisecond // how long Sleep lets a program run that never rests
	napTime  = 50 * time.Microsecond // between two looks of the second in line; more for those behind
)

// await moves the clock if it is the sleeper's turn and everything else rests,
// and lets others run if not.
func (s *Server) await(ctx context.Context, me *sleeper) {
	ahead := s.sleepersBefore(me)
	switch {
	case ahead > 0:
		me.looks = 0
		me.nap(ctx, min(napTime*time.Duration(ahead), 100*napTime))
	case me.looks == 0: // whoever was first before may be running still
		me.looks, me.first = 1, time.Now()
		me.nap(ctx, 0)
	case me.bubble || rests(me.looks) || time.Since(me.first) > busyTime:
		s.moveClock(me.wake)
	default:
		me.looks++
		me.nap(ctx, 0)
	}
}

// nap lets others run, for d at least. In a bubble a nanosecond will do: it
// ends when nothing runs any more.
func (me *sleeper) nap(ctx context.Context, d time.Duration) {
	switch {
	case me.bubble:
		memnet.Pause(ctx, time.Nanosecond)
	case d > 0:
		memnet.Pause(ctx, d)
	default:
		runtime.Gosched()
	}
}

func (s *Server) beginSleep(me *sleeper, d time.Duration) {
	s.sleepMu.Lock()
	defer s.sleepMu.Unlock()
	offset := s.offset.Load()
	me.until = offset + min(int64(d), math.MaxInt64-offset)
	i, _ := slices.BinarySearchFunc(s.sleepers, me.until+1, byWake)
	s.sleepers = slices.Insert(s.sleepers, i, me)
}

// endSleep forgets a sleeper. Until then nobody who wakes later moves the clock.
func (s *Server) endSleep(me *sleeper) {
	s.sleepMu.Lock()
	defer s.sleepMu.Unlock()
	i := slices.Index(s.sleepers, me)
	s.sleepers = slices.Delete(s.sleepers, i, i+1)
}

// sleepersBefore is how many wake before. Of those that wake together only one
// is the first outside a bubble, so that the others can look like they rest.
func (s *Server) sleepersBefore(me *sleeper) int {
	s.sleepMu.Lock()
	defer s.sleepMu.Unlock()
	i, _ := slices.BinarySearchFunc(s.sleepers, me.until, byWake)
	if me.bubble {
		return i
	}
	return i + slices.Index(s.sleepers[i:], me)
}

func byWake(one *sleeper, until int64) int { return cmp.Compare(one.until, until) }

// moveClock sets the clock to a time, unless it is there already.
func (s *Server) moveClock(to time.Time) {
	s.sleepMu.Lock()
	defer s.sleepMu.Unlock()
	if d := to.Sub(s.now()); d > 0 {
		s.Advance(d)
	}
}

// rests reports whether no goroutine but the caller's runs or could. A thread
// that looks for work counts as running for some microseconds. Runtimes before
// Go 1.26 do not tell: there it is a number of looks, each of which lets others
// run.
func rests(looks int) bool {
	samples := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	for range 200 {
		metrics.Read(samples)
		switch {
		case samples[0].Value.Kind() != metrics.KindUint64:
			return looks > 100
		case samples[1].Value.Uint64() > 0:
			return false
		case samples[0].Value.Uint64() == 1:
			return true
		}
	}
	return false
}
