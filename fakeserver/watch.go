package fakeserver

import "slices"

// watcher is one OnCall.
type watcher struct {
	matchers []Matcher
	watch    func(Call)
}

// OnCall makes the fake call watch with each call that all matchers match, as
// Calls would return it, until stop. It runs on the goroutine of the call, when
// the call is in Calls and before its client has the answer, without any lock:
// it may call the fake, is called concurrently by concurrent calls, and should
// return soon. Calls that a Reset has forgotten meanwhile are shown too. A panic
// in it fails the test, and the call goes on.
//
// Concurrent calls may be shown in another order than that of Call.Seq: a
// watcher that must not miss one, and may be slow, takes note that there is
// something new and reads CallsAfter on a goroutine of its own.
//
// A nil watch and a zero Matcher panic. Calling stop again does nothing.
func (s *Server) OnCall(watch func(Call), matchers ...Matcher) (stop func()) {
	if watch == nil {
		misuse("OnCall", "the function is nil")
	}
	checkMatchers("OnCall", matchers)
	w := &watcher{slices.Clone(matchers), watch}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(slices.Clip(s.watchers), w)
	return func() { s.unwatch(w) }
}

func (s *Server) unwatch(w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = slices.DeleteFunc(slices.Clone(s.watchers), func(other *watcher) bool { return other == w })
}

// show shows a call to a watcher. A panic is the watcher's, and the call is
// somebody else's.
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

// CallsAfter returns the first n of the calls that Calls would return and whose
// Seq is greater than seq: what is new since a call, at the cost of what is
// returned. Where Calls has dropped calls in between, their numbers are missing.
// An n below 1 and a zero Matcher panic.
func (s *Server) CallsAfter(seq, n int, matchers ...Matcher) []Call {
	if n < 1 {
		misuse("CallsAfter", "%d calls is less than 1", n)
	}
	checkMatchers("CallsAfter", matchers)
	var found []*record
	for _, r := range s.recordsAfter(seq) {
		if len(found) < n && matchesAll(matchers, r) {
			found = append(found, r)
		}
	}
	return copiedCalls(found)
}

func (s *Server) recordsAfter(seq int) []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.world.journal.since(func(r *record) bool { return r.call.Seq > seq })
}

// LastSeq is the Seq of the newest call, 0 before the first. Reset does not
// start it again.
func (s *Server) LastSeq() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}
