package fakeserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered; without matchers, all calls. The fake keeps the newest
// 1,000 calls (WithCallLimit keeps more or fewer).
//
// A call is in Calls before its client has the answer. While an answer is being
// sent, as with DripReply and Hang, each copy shows in Sent how far it got.
// UnderWay has the calls that are not answered yet. A zero Matcher panics.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return snapshots(s.matching("Calls", matchers))
}

// CallCount returns the number of calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// UnderWay returns copies of the calls that have arrived and whose answer has not
// been sent to its end, in the order of arrival: calls that wait for a Latency or
// a ReplyFunc, and calls whose answer drips or hangs. A call that is not answered
// yet has no Seq, Status and Sent.
func (s *Server) UnderWay() []Call {
	defer s.lock().Unlock()
	return snapshots(s.generation.log.underWay)
}

// matching returns the kept calls that all matchers match.
func (s *Server) matching(method string, matchers []Matcher) []*entry {
	checkMatchers(method, matchers)
	return slices.DeleteFunc(s.kept(), func(e *entry) bool { return !matchesAll(matchers, e) })
}

// kept returns a copy of the list of kept calls, so that matchers run without the lock.
func (s *Server) kept() []*entry {
	defer s.lock().Unlock()
	return slices.Clone(s.generation.log.kept)
}

// snapshots copies calls for a user, who may keep and change them.
func snapshots(entries []*entry) []Call {
	calls := make([]Call, len(entries))
	for i, e := range entries {
		calls[i] = e.snapshot()
	}
	return calls
}

// WriteCalls writes the calls that Calls returns to w as JSON Lines: one JSON
// object and a line feed for each call, redacted as in Calls. The members keep
// their names and this order in every version:
//
//	seq time endpoint? method url path agent_id? created? key address header body?
//	body_bytes took_ns sent status code? reason? member? limit_key? reply_body?
//	fault? why? trace_id
//
// Members with a question mark are left out when empty. The fields of Call say
// what each holds. time is RFC 3339, header an object of lists of strings. An
// error of w is wrapped and returned. A zero Matcher panics.
func (s *Server) WriteCalls(w io.Writer, matchers ...Matcher) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, e := range s.matching("WriteCalls", matchers) {
		if err := encoder.Encode(e.snapshot()); err != nil {
			return fmt.Errorf("fakeserver: WriteCalls: %w", err)
		}
	}
	return nil
}

// maxTranscript is how many calls the log of a failed test shows.
const maxTranscript = 50

// logCalls logs the newest calls of a test that failed, with the time since the first:
// a gap of more than a second often shows where a test went wrong.
func (s *Server) logCalls() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	dropped, calls := s.droppedCalls(), s.Calls()
	shown := calls[max(0, len(calls)-maxTranscript):]
	var b strings.Builder
	for _, c := range shown {
		fmt.Fprintf(&b, "\n%+10.3fs  %s", c.Time.Sub(shown[0].Time).Round(time.Millisecond).Seconds(), c)
	}
	s.tb.Logf("fakeserver: the last %d of %d calls:%s", len(shown), dropped+len(calls), b.String())
}

// droppedCalls counts the calls since New or Reset that Calls no longer returns.
func (s *Server) droppedCalls() int {
	defer s.lock().Unlock()
	return s.generation.log.total - len(s.generation.log.kept)
}

// AwaitCalls waits until n calls that all matchers match have been answered, and returns
// the first n of them. Earlier calls count if Calls still has them. Later calls count
// even if Calls has dropped them by then. AwaitCalls does not poll: each call that is
// answered is matched once.
//
// A call counts before its client has the answer, so a client may still be busy
// when AwaitCalls returns.
//
// When ctx ends first, AwaitCalls returns the calls that came, and an error
// that says how many came and wraps ctx.Err(). It also returns early if a matcher panics
// or ends its goroutine, as require does, which fails the test. Calls that were counted
// before a Reset still count. A nil ctx, an n below 1 and a zero Matcher panic.
//
// In a synctest bubble, call AwaitCalls in the bubble that makes the calls: the Go
// runtime ends a program in which one bubble wakes another, or code outside wakes
// a bubble. If bubbles share a fake, pass ByKey to wait for the calls of one.
func (s *Server) AwaitCalls(ctx context.Context, n int, matchers ...Matcher) ([]Call, error) {
	checkContext("AwaitCalls", ctx)
	if n < 1 {
		misuse("AwaitCalls", "n is %d; it must be at least 1", n)
	}
	checkMatchers("AwaitCalls", matchers)
	var mu sync.Mutex // guards found, to which the goroutines of later calls append
	var found []*entry
	ended := make(chan struct{}) // belongs to the caller's synctest bubble: only a call made in that bubble may close it
	end := sync.OnceFunc(func() { close(ended) })
	w := &watcher{name: "a matcher of AwaitCalls(" + s.config.namesOf(matchers) + ") at " + callerLine(2), matchers: slices.Clone(matchers), failed: end}
	w.show = func(e *entry) {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, e)
		if len(found) == n {
			end()
		}
	}
	defer s.removeWatcher(w)
	s.showTo(w, s.addWatcher(w)...)
	select {
	case <-ended:
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	// Calls that are answered at the same time may have been found in another order.
	slices.SortFunc(found, func(a, b *entry) int { return a.record.Seq - b.record.Seq })
	calls := snapshots(found[:min(n, len(found))])
	if len(calls) == n { // even if the last call came as ctx ended
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w",
		len(calls), n, cmp.Or(s.config.namesOf(matchers), "every call"), cmp.Or(ctx.Err(), errors.New("a matcher failed")))
}

// addWatcher shows w every later call, and returns the earlier calls. A call that is
// answered meanwhile is either returned or shown, never both, because addToLog adds a
// call and reads the watchers under one lock.
func (s *Server) addWatcher(w *watcher) []*entry {
	defer s.lock().Unlock()
	s.watchers = append(slices.Clip(s.watchers), w)
	return slices.Clone(s.generation.log.kept)
}

// removeWatcher ends a watcher. A call that read the list of watchers earlier is still
// shown to this watcher.
func (s *Server) removeWatcher(w *watcher) {
	defer s.lock().Unlock()
	s.watchers = without(s.watchers, w)
}

// OnCall calls watch with each call that all matchers match, as Calls would return it,
// until stop is called. watch runs on a separate goroutine, after Calls has the call and
// before the call's client has the answer. It may call the fake, and should return soon.
// Concurrent calls run it concurrently, and perhaps in another order than their Seq. A
// call that was under way during a Reset is shown too. A panic in watch fails the test. A
// failing require does the same, since it may only end the goroutine of a test: use
// assert. The call goes on.
//
// A nil watch and a zero Matcher panic. Calling stop again does nothing.
func (s *Server) OnCall(watch func(Call), matchers ...Matcher) (stop func()) {
	if watch == nil {
		misuse("OnCall", "the function is nil")
	}
	checkMatchers("OnCall", matchers)
	name := "the function of OnCall(" + s.config.namesOf(matchers) + ") at " + callerLine(2)
	w := &watcher{name: name, matchers: slices.Clone(matchers), show: func(e *entry) { watch(e.snapshot()) }}
	s.addWatcher(w)
	return func() { s.removeWatcher(w) }
}
