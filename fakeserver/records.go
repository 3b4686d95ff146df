package fakeserver

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// keep completes the record of a call, puts it into the log, and shows it
// to watchers. A new AwaitCalls either finds the call in the log or is shown
// it: both happen under the lock.
func (s *Server) keep(req *request, decided, out answer) {
	s.touches.Add(1)
	s.complete(req, decided)
	s.completeSent(req, out)
	var watchers []*watcher
	s.locked(func(*world) {
		s.answered++
		req.record.call.Seq = s.answered
		l := &req.world.log
		l.add(req.record, l.limit)
		watchers = s.watchers
	})
	for _, w := range watchers {
		if w.since <= req.world.resets {
			s.show(w, req.record)
		}
	}
}

func (s *Server) complete(req *request, a answer) {
	c := &req.record.call
	c.Status = a.Status
	c.Took = max(0, s.now().Sub(c.Time)) // somebody may set the machine's clock back
	c.ReplyBody = clip(scrubJSON(a.shown, req.secrets), maxRecordedBody)
}

// records returns the kept calls, oldest first.
func (s *Server) records() []*record {
	return look(s, func(w *world) []*record { return w.log.all() })
}

// matching returns the kept calls that all matchers match. Matchers run on a
// snapshot without the lock.
func (s *Server) matching(method string, matchers []Matcher) []*record {
	checkMatchers(method, matchers)
	return slices.DeleteFunc(s.records(), func(r *record) bool { return !matchesAll(matchers, r) })
}

func copiedCalls(records []*record) []Call {
	calls := make([]Call, len(records))
	for i, r := range records {
		calls[i] = r.copied()
	}
	return calls
}

// Calls returns copies of the calls that all matchers match, in the order in
// which they were answered: the newest 1,000, or WithCallLimit. A call is
// complete here before its client has the answer.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount counts the calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// transcribe logs the newest calls of a test that failed.
func (s *Server) transcribe() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls, total := s.Calls(), look(s, func(w *world) int { return w.log.total() })
	shown := calls[max(0, len(calls)-maxTranscript):]
	if len(shown) > 0 {
		s.tb.Logf("fakeserver: %s", transcript(shown, total))
	}
}

// WriteCalls writes the calls that Calls returns to w as JSON Lines: one JSON
// object and a line feed for each call, redacted as in Calls. The members keep
// their names and this order in every version:
//
//	seq time endpoint? method url path agent_id? created? key address header body?
//	body_bytes took_ns sent status code? reason? member? limit_key? reply_body?
//	fault? trace_id
//
// Members with a question mark are left out when empty. The fields of Call say
// what each holds. time is RFC 3339, header an object of lists of strings.
// WriteCalls returns the error of w.
func (s *Server) WriteCalls(w io.Writer, matchers ...Matcher) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for _, c := range copiedCalls(s.matching("WriteCalls", matchers)) {
		if err := encoder.Encode(c); err != nil {
			return fmt.Errorf("fakeserver: WriteCalls: %w", err)
		}
	}
	return nil
}
