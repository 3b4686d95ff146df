package fakeserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered: the newest 1,000, or WithCallLimit. A call is
// complete here before its client has the answer. Of an answer that drips or
// hangs, Sent goes on to grow. UnderWay has the calls that are not answered yet.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount counts the calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// UnderWay returns copies of the calls that have arrived and that nobody has had
// the whole answer of, in the order of arrival: those that wait for a Latency or a
// ReplyFunc, whose answer drips or hangs. A call that is not answered yet has no
// Seq, Status and Sent.
func (s *Server) UnderWay() []Call {
	var calls []Call
	defer s.lock().Unlock()
	for _, e := range s.gen.log.UnderWay() {
		if e.sent.Load() != nil { // it is in the log, and changes no more
			calls = append(calls, e.copied())
			continue
		}
		calls = append(calls, e.arrived())
	}
	return calls
}

func (s *Server) entries() []*entry {
	defer s.lock().Unlock()
	return s.gen.log.All()
}

// matching returns the kept calls that all matchers match. Matchers run on a
// snapshot without the lock.
func (s *Server) matching(method string, matchers []Matcher) []*entry {
	checkMatchers(method, matchers)
	return slices.DeleteFunc(s.entries(), func(e *entry) bool { return !matchesAll(matchers, e) })
}

func copiedCalls(entries []*entry) []Call {
	calls := make([]Call, len(entries))
	for i, e := range entries {
		calls[i] = e.copied()
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
// what each holds. time is RFC 3339, header an object of lists of strings.
// WriteCalls returns the error of w.
func (s *Server) WriteCalls(w io.Writer, matchers ...Matcher) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, e := range s.matching("WriteCalls", matchers) {
		if err := encoder.Encode(e.copied()); err != nil {
			return fmt.Errorf("fakeserver: WriteCalls: %w", err)
		}
	}
	return nil
}

const maxTranscript = 50

// logCalls logs the newest calls of a test that failed.
func (s *Server) logCalls() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls := s.Calls()
	if shown := calls[max(0, len(calls)-maxTranscript):]; len(shown) > 0 {
		s.tb.Logf("fakeserver: %s", transcript(shown, s.totalCalls()))
	}
}

func (s *Server) totalCalls() int {
	defer s.lock().Unlock()
	return s.gen.log.Total()
}

// transcript prints a line for each call, with the time since the first: a gap
// of more than a second often shows where a test went wrong.
func transcript(shown []Call, total int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the last %d of %d calls:", len(shown), total)
	for _, c := range shown {
		since := c.Time.Sub(shown[0].Time).Round(time.Millisecond)
		fmt.Fprintf(&b, "\n%+10.3fs  %s", since.Seconds(), c)
	}
	return b.String()
}

// watcher is shown each call that is recorded: one OnCall, or one AwaitCalls
// under way.
type watcher struct {
	name     string // for messages
	matchers []Matcher
	since    int // the first generation whose calls it is shown, unless always
	always   bool
	see      func(*entry)
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
	found := &gathering{server: s, need: n, enough: make(chan struct{})}
	w := &watcher{name: "a matcher of AwaitCalls", matchers: slices.Clone(matchers), see: found.add}
	earlier := s.enroll(w)
	defer s.dismiss(w)
	for _, e := range earlier {
		if matchesAll(matchers, e) {
			found.add(e)
		}
	}
	select {
	case <-found.enough:
	case <-ctx.Done():
	}
	calls := copiedCalls(found.inOrder())
	if len(calls) == n { // even if the last came as ctx ended
		return calls, nil
	}
	return calls, fmt.Errorf("fakeserver: AwaitCalls: %d of %d calls came that match %s: %w", len(calls), n, listed(matchers), ctx.Err())
}

// enroll shows w every later call of this generation and the next, and returns
// the earlier ones. A call that is answered meanwhile is either among them or
// shown, and never both: keep adds a call and reads the watchers under one lock.
func (s *Server) enroll(w *watcher) []*entry {
	defer s.lock().Unlock()
	w.since = s.gen.number
	s.watchers = append(slices.Clip(s.watchers), w)
	return s.gen.log.All()
}

func (s *Server) dismiss(w *watcher) {
	defer s.lock().Unlock()
	s.watchers = without(s.watchers, w)
}

// gathering holds what one AwaitCalls has found. The fake reaches it through a
// function only: its channel belongs to the bubble of the caller.
type gathering struct {
	server *Server
	need   int
	enough chan struct{}
	found  []*entry // the server's lock guards it
}

func (g *gathering) add(e *entry) {
	defer g.server.lock().Unlock()
	if len(g.found) == g.need {
		return
	}
	g.found = append(g.found, e)
	if len(g.found) == g.need {
		close(g.enough)
	}
}

// inOrder returns what was found in the order of the answers. Calls that are
// answered at the same time may have been found in another order.
func (g *gathering) inOrder() []*entry {
	defer g.server.lock().Unlock()
	return slices.SortedFunc(slices.Values(g.found), func(a, b *entry) int { return a.call.Seq - b.call.Seq })
}

// OnCall calls watch with each call that all matchers match, as Calls would
// return it, until stop is called. watch runs on the goroutine of the call,
// after Calls has the call and before its client has the answer. It runs
// without any lock: it may call the fake, concurrent calls call it
// concurrently, and it should return soon. Calls that a Reset has forgotten
// meanwhile are shown too. A panic in watch fails the test, and the call goes
// on. Concurrent calls may be shown in another order than their Seq.
//
// A nil watch and a zero Matcher panic. Calling stop again does nothing.
func (s *Server) OnCall(watch func(Call), matchers ...Matcher) (stop func()) {
	if watch == nil {
		misuse("OnCall", "the function is nil")
	}
	checkMatchers("OnCall", matchers)
	w := &watcher{name: "the function of OnCall", always: true, matchers: slices.Clone(matchers), see: func(e *entry) { watch(e.copied()) }}
	s.enroll(w)
	return func() { s.dismiss(w) }
}

// show shows a call to a watcher. A panic fails the test, and the call goes on.
func (s *Server) show(w *watcher, e *entry) {
	defer func() {
		if p := recover(); p != nil {
			s.reportf("%s (%s) panicked: %v", w.name, listed(w.matchers), p)
		}
	}()
	if matchesAll(w.matchers, e) {
		w.see(e)
	}
}
