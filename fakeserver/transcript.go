package fakeserver

import (
	"fmt"
	"strings"
	"time"
)

// maxTranscript is how many calls a failed test shows.
const maxTranscript = 50

// transcribe logs the newest calls of a test that failed.
func (s *Server) transcribe() {
	if s.tb == nil || !s.tb.Failed() {
		return
	}
	s.tb.Helper()
	calls, total := s.Calls(), s.TotalCalls()
	shown := calls[max(0, len(calls)-maxTranscript):]
	if len(shown) > 0 {
		s.tb.Logf("fakeserver: %s", transcript(shown, total))
	}
}

// transcript is a line for each call, with the time since the first that is
// shown: more than a second between two is often where a test went wrong.
func transcript(shown []Call, total int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the last %d of %d calls:", len(shown), total)
	for _, c := range shown {
		since := c.Time.Sub(shown[0].Time).Round(time.Millisecond)
		fmt.Fprintf(&b, "\n%+10.3fs  %s", since.Seconds(), c)
	}
	return b.String()
}
