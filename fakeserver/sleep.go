package fakeserver

import (
	"cmp"
	"context"
	"math"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Sleep waits until the fake's clock is d later, without waiting for that long:
// when everything that runs has come to rest, it moves the clock to the wake
// time. So a Server is an agentmessaging.Clock, and a client with
// agentmessaging.WithClock(fake) waits out a daily limit in a millisecond.
//
// Of several sleepers the one with the earliest wake time moves the clock, and
// all whose time has come with it return: ten sleepers of a minute move it by
// one minute. Advance ends the waits that it passes. When ctx ends first, Sleep
// returns ctx.Err() and leaves the clock alone. Deadlines of contexts count
// real time, or that of the synctest bubble, and never the fake's.
//
// Callers that still run get the chance to sleep too before the clock moves. In
// a synctest bubble that is exact. Outside, Sleep looks for running goroutines
// until there are none. In a program that never rests it waits until nothing
// has reached the fake for 20 milliseconds, and for a second at most.
func (s *Server) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	me := &sleeper{wake: s.now().Add(d)}
	s.beginSleep(me, d)
	defer s.endSleep(me)
	s.detectBubble(ctx, me)
	for s.now().Before(me.wake) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.await(ctx, me)
	}
	return nil
}

type sleeper struct {
	wake  time.Time
	until int64 // the offset of the clock at which it wakes: unlike a time it means the same in every bubble
	// turn gets a value when it becomes the first in line, or its time has come. It
	// is nil in a synctest bubble: there a timer fires when nothing runs, and
	// goroutines outside may not use a channel of the bubble.
	turn    chan struct{}
	looks   int       // since something reached the fake, while it was the first in line
	rested  int       // at so many looks in a row everything else rested
	touches int64     // at the last look
	begun   time.Time // when its turn began
	quiet   time.Time // since when nothing has reached the fake
}

const (
	napTime   = 50 * time.Microsecond // between two looks
	quietTime = 20 * time.Millisecond // how long nothing has to reach the fake in a program that never rests
	busyTime  = time.Second           // the longest wait for a program that never rests
	minLooks  = 20                    // each lets others run, however little time this program gets
	minRests  = 3                     // looks in a row at which everything else rests
)

func (s *Server) beginSleep(me *sleeper, d time.Duration) {
	s.touches.Add(1)
	s.held(func() {
		offset := s.offset.Load()
		me.until = offset + min(int64(d), math.MaxInt64-offset)
		i, _ := slices.BinarySearchFunc(s.sleepers, me.until+1, byWake)
		s.sleepers = slices.Insert(s.sleepers, i, me)
	})
}

// endSleep forgets a sleeper. Until then no sleeper that wakes later moves the
// clock.
func (s *Server) endSleep(me *sleeper) {
	s.touches.Add(1)
	s.held(func() {
		i := slices.Index(s.sleepers, me)
		s.sleepers = slices.Delete(s.sleepers, i, i+1)
		s.rouse()
	})
}

// detectBubble finds out whether the sleeper is in a synctest bubble: outside, no
// pause is as short as this one.
func (s *Server) detectBubble(ctx context.Context, me *sleeper) {
	begun := time.Now()
	memnet.Pause(ctx, time.Nanosecond)
	if time.Since(begun) != time.Nanosecond {
		s.held(func() { me.turn = make(chan struct{}, 1) })
	}
}

// rouse tells the first in line, and those whose time has come. The lock is
// held.
func (s *Server) rouse() {
	for i, sl := range s.sleepers {
		if i > 0 && sl.until > s.offset.Load() {
			return
		}
		select {
		case sl.turn <- struct{}{}:
		default: // it was told, or is in a bubble
		}
	}
}

// await moves the clock if it is the sleeper's turn and everything else rests,
// and lets others run if not.
func (s *Server) await(ctx context.Context, me *sleeper) {
	bubble := me.turn == nil
	switch ahead := s.sleepersBefore(me); {
	case ahead > 0 && bubble:
		me.looks = 0
	case ahead > 0:
		me.looks = 0
		select {
		case <-me.turn:
		case <-ctx.Done():
		}
		return
	case me.looks == 0: // the sleeper that was first before may still be running
		me.looks, me.rested, me.begun, me.quiet = 1, 0, time.Now(), time.Now()
	case bubble || s.mayMove(me):
		offset := me.wake.Sub(s.config.clock())
		s.move(func(time.Duration) time.Duration { return offset })
		return
	}
	nap := napTime
	if bubble {
		nap = time.Nanosecond // ends when nothing runs any more
	}
	memnet.Pause(ctx, nap)
}

// sleepersBefore is how many wake before. Of those that wake together only one
// is the first outside a bubble.
func (s *Server) sleepersBefore(me *sleeper) (n int) {
	s.held(func() {
		n, _ = slices.BinarySearchFunc(s.sleepers, me.until, byWake)
		if me.turn != nil {
			n += slices.Index(s.sleepers[n:], me)
		}
	})
	return n
}

func byWake(one *sleeper, until int64) int { return cmp.Compare(one.until, until) }

// mayMove looks once more, and reports whether everything else has rested at the
// last looks, or the sleeper has waited long enough for a program that never
// rests. What is on its way between two sockets is not seen at once.
func (s *Server) mayMove(me *sleeper) bool {
	me.looks++
	me.rested++
	if touches := s.touches.Load(); touches != me.touches {
		me.touches, me.looks, me.rested, me.quiet = touches, 1, 0, time.Now()
	}
	if !rests(me.looks) {
		me.rested = 0
	}
	return me.rested >= minRests || time.Since(me.begun) > busyTime ||
		me.looks > minLooks && time.Since(me.quiet) > quietTime
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
