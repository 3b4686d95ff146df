package fakeserver

import "slices"

// keep completes the record of a call, puts it into the journal, and tells
// those who wait for it or watch. Whoever begins to wait finds the call in the
// journal or is told, since both sides take the lock once.
func (s *Server) keep(req *request, a answer) {
	s.complete(req, a)
	var waiters []*waiter
	var watchers []*watcher
	s.locked(func(*world) {
		s.answered++
		req.record.call.Seq = s.answered
		j := &req.world.journal
		j.add(req.record, j.limit)
		waiters, watchers = s.waiters, s.watchers
	})
	for _, w := range waiters {
		if w.since <= req.world.resets {
			s.tell(w, req.record)
		}
	}
	for _, w := range watchers {
		s.show(w, req.record)
	}
}

func (s *Server) complete(req *request, a answer) {
	c := &req.record.call
	c.Status, c.Code, c.LimitKey = a.Status, a.code, a.limitKey
	c.Took = max(0, s.now().Sub(c.Time)) // a clock of the machine may be set back
	c.Reason = scrub(a.reason, req.secrets)
	c.ReplyBody = clip(scrubJSON(a.shown, req.secrets), s.config.bodyLimit)
}

// records returns the kept calls, oldest first.
func (s *Server) records() []*record {
	return look(s, func(w *world) []*record { return w.journal.all() })
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

// Calls returns copies of the calls so far that all matchers match, in the
// order in which they were answered: the newest 1,000, or WithCallLimit. A
// call is in it, complete, before its client has the answer.
func (s *Server) Calls(matchers ...Matcher) []Call {
	return copiedCalls(s.matching("Calls", matchers))
}

// CallCount is the number of calls that Calls would return.
func (s *Server) CallCount(matchers ...Matcher) int { return len(s.matching("CallCount", matchers)) }

// transcribe logs the newest calls of a test that failed.
func (s *Server) transcribe() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls, total := s.Calls(), look(s, func(w *world) int { return w.journal.total() })
	shown := calls[max(0, len(calls)-maxTranscript):]
	if len(shown) > 0 {
		s.tb.Logf("fakeserver: %s", transcript(shown, total))
	}
}
