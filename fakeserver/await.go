package fakeserver

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// waiter is one AwaitCalls under way.
type waiter struct {
	matchers []Matcher
	need     int
	since    int // resets of the world in which the wait began; calls before the last Reset are ignored
	// wake ends the wait. It is a function because its channel belongs to the
	// bubble of the waiter, and the fake must hold none.
	wake func()

	mu    sync.Mutex
	found []*record
}

// AwaitCalls waits until n calls that all matchers match have been answered,
// and returns the first n of them. Earlier calls count if Calls still has them.
// Later calls count even if Calls drops them again. It looks at each call once,
// when it is answered, and does not poll.
//
// A call counts before its client has the answer, so a client may still be busy
// when AwaitCalls returns.
//
// When ctx ends first, AwaitCalls returns the calls that came, and an error
// that counts them and wraps ctx.Err(). Matchers run on the goroutines of the
// calls. Reset does not take back what has been counted. An n below 1 and a
// zero Matcher panic.
//
// In a synctest bubble, wait in the bubble that makes the calls: the Go runtime
// ends a program in which one bubble wakes another, or the outside does. Where
// bubbles share a fake, ByKey keeps their calls apart.
func (s *Server) AwaitCalls(ctx context.Context, n int, matchers ...Matcher) ([]Call, error) {
	if n < 1 {
		misuse("AwaitCalls", "%d calls cannot be waited for; at least 1", n)
	}
	checkMatchers("AwaitCalls", matchers)
	enough := make(chan struct{})
	w := &waiter{matchers: slices.Clone(matchers), need: n, wake: func() { close(enough) }}
	earlier := s.enroll(w)
	defer s.dismiss(w)
	for _, r := range earlier {
		if matchesAll(matchers, r) {
			w.add(r)
		}
	}
	select {
	case <-enough:
		return w.calls(), nil
	case <-ctx.Done():
		return w.outcome(ctx)
	}
}

// outcome is the result of a wait whose context has ended. The last call may
// have come at the same moment: it counts.
func (w *waiter) outcome(ctx context.Context) ([]Call, error) {
	calls := w.calls()
	if len(calls) == w.need {
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w",
		len(calls), w.need, listed(w.matchers), ctx.Err())
}

// enroll shows w every later call, and returns the earlier ones.
func (s *Server) enroll(w *waiter) []*record {
	return look(s, func(now *world) []*record {
		w.since = now.resets
		s.waiters = append(slices.Clip(s.waiters), w)
		return now.journal.all()
	})
}

func (s *Server) dismiss(w *waiter) {
	s.locked(func(*world) { s.waiters = without(s.waiters, w) })
}

// tell shows a call to a waiter. A matcher that panics fails the test, and the
// call goes on.
func (s *Server) tell(w *waiter, r *record) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("a matcher of AwaitCalls (%s) panicked: %v", listed(w.matchers), p)
		}
	}()
	if matchesAll(w.matchers, r) {
		w.add(r)
	}
}

func (w *waiter) add(r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.found) == w.need {
		return
	}
	w.found = append(w.found, r)
	if len(w.found) == w.need {
		w.wake()
	}
}

// calls returns copies in the order of the answers. Calls that are answered at
// the same time may have been found in another order.
func (w *waiter) calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.found, func(a, b *record) int { return a.call.Seq - b.call.Seq })
	return copiedCalls(w.found)
}

// watcher is one OnCall.
type watcher struct {
	matchers []Matcher
	watch    func(Call)
}

// OnCall calls watch with each call that all matchers match, as Calls would
// return it, until stop is called. watch runs on the goroutine of the call,
// after Calls has the call and before its client has the answer. It runs
// without any lock: it may call the fake, concurrent calls call it
// concurrently, and it should return soon. Calls that a Reset has forgotten
// meanwhile are shown too. A panic in watch fails the test, and the call goes
// on.
//
// Concurrent calls may be shown in another order than their Seq. A slow watcher
// that must not miss a call notes that something is new, and reads
// Admin.CallsAfter on its own goroutine.
//
// A nil watch and a zero Matcher panic. Calling stop again does nothing.
func (s *Server) OnCall(watch func(Call), matchers ...Matcher) (stop func()) {
	if watch == nil {
		misuse("OnCall", "the function is nil")
	}
	checkMatchers("OnCall", matchers)
	w := &watcher{slices.Clone(matchers), watch}
	s.locked(func(*world) { s.watchers = append(slices.Clip(s.watchers), w) })
	return func() { s.locked(func(*world) { s.watchers = without(s.watchers, w) }) }
}

// show shows a call to a watcher. A watcher that panics fails the test, and the
// call goes on.
func (s *Server) show(w *watcher, r *record) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("the function of OnCall (%s) panicked: %v", listed(w.matchers), p)
		}
	}()
	if matchesAll(w.matchers, r) {
		w.watch(r.copied())
	}
}
