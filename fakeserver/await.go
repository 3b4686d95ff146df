package fakeserver

import (
	"context"
	"fmt"
	"slices"
)

// watcher is shown each call that is recorded: one OnCall, or one AwaitCalls
// under way.
type watcher struct {
	name     string // for messages
	matchers []Matcher
	since    int // resets of the first world whose calls it is shown
	see      func(*record)
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
	found := &gathering{need: n, enough: make(chan struct{})}
	add := func(r *record) { s.locked(func(*world) { found.add(r) }) }
	w := &watcher{name: "a matcher of AwaitCalls", matchers: slices.Clone(matchers), see: add}
	earlier := s.enroll(w)
	defer s.dismiss(w)
	for _, r := range earlier {
		if matchesAll(matchers, r) {
			add(r)
		}
	}
	select {
	case <-found.enough:
	case <-ctx.Done():
	}
	calls := copiedCalls(look(s, func(*world) []*record { return found.inOrder() }))
	if len(calls) == n { // even if the last came as ctx ended
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w", len(calls), n, listed(matchers), ctx.Err())
}

// enroll shows w every later call of this world and the next, and returns the
// earlier ones.
func (s *Server) enroll(w *watcher) []*record {
	return look(s, func(now *world) []*record {
		w.since = now.resets
		s.watchers = append(slices.Clip(s.watchers), w)
		return now.log.all()
	})
}

func (s *Server) dismiss(w *watcher) {
	s.locked(func(*world) { s.watchers = without(s.watchers, w) })
}

// gathering holds what one AwaitCalls has found. The fake reaches it through a
// function only: its channel belongs to the bubble of the caller.
type gathering struct {
	need   int
	enough chan struct{}
	found  []*record // the server's lock guards it
}

func (g *gathering) add(r *record) {
	if len(g.found) == g.need {
		return
	}
	g.found = append(g.found, r)
	if len(g.found) == g.need {
		close(g.enough)
	}
}

// inOrder returns what was found in the order of the answers. Calls that are
// answered at the same time may have been found in another order.
func (g *gathering) inOrder() []*record {
	return slices.SortedFunc(slices.Values(g.found), func(a, b *record) int { return a.call.Seq - b.call.Seq })
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
	w := &watcher{name: "the function of OnCall", matchers: slices.Clone(matchers), see: func(r *record) { watch(r.copied()) }}
	s.locked(func(*world) { s.watchers = append(slices.Clip(s.watchers), w) })
	return func() { s.dismiss(w) }
}

// show shows a call to a watcher. A panic fails the test, and the call goes on.
func (s *Server) show(w *watcher, r *record) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("%s (%s) panicked: %v", w.name, listed(w.matchers), p)
		}
	}()
	if matchesAll(w.matchers, r) {
		w.see(r)
	}
}
