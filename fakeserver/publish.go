package fakeserver

import (
	"context"
	"net/http"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/mask"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/wire"
	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// This file keeps the record of a call that is answered, and shows it to watchers. record.go has
// the types.

// publish completes the record of a call, puts it into the log, and shows it to
// watchers. The call is added and the watchers are read under one lock, so an AwaitCalls
// that begins meanwhile sees the call exactly once (see addWatcher). publish runs
// before the first byte of the answer is sent, so that a client that has its answer finds
// the call in Calls.
func (s *Server) publish(ctx context.Context, c *call) {
	now := s.Now()
	record := &c.record
	record.Fault, record.Status = strings.Join(c.faultNames, ", "), c.fromService.Status
	record.Took = max(0, now.Sub(record.Time)) // negative if the machine's clock was set back
	record.ReplyBody = c.fromService.Show(len(c.fromService.Body), c.Secrets, s.config.messageTexts)
	c.clientLeft = c.neverArrived || ctx.Err() != nil
	record.Why = c.why()
	// An answer that drips or hangs is not sent when publish returns. Its record says
	// that nothing was sent so far, and progress updates it.
	part, _ := c.delivery.Part(c.toClient.Body)
	ended := c.clientLeft || c.delivery.Ends != memnet.Hangs && c.delivery.Drip == 0
	if !ended {
		part = nil
	}
	record.Sent = s.sentSoFar(c, len(part), ended)
	for _, w := range s.addToLog(c, ended) {
		s.showTo(w, c.entry)
	}
}

// why returns the Why of the record: the service's reason for a refusal, and after it what a
// fault did and that the client left.
func (c *call) why() string {
	why := c.record.Why
	if c.failed != "" {
		why = c.failed + " failed, so there was no answer."
	} else if c.fault != nil {
		why += " " + c.fault.why(c.Endpoint == spec.SendMessage, c.fromService.Status, len(c.toClient.Body))
	}
	if c.clientLeft {
		why = strings.TrimSpace(why) + " " + wire.WhyLeft(c.record.Took, !c.neverArrived)
	}
	return strings.TrimSpace(why)
}

// addToLog puts a call into the log and returns the watchers that it must be shown to. From
// now on only Sent changes in the record. A call that has ended is no longer under way; an
// answer that drips or hangs has not ended. Beyond its limit the log drops the oldest call;
// on average this costs the same for any number of calls.
func (s *Server) addToLog(c *call, ended bool) []*watcher {
	defer s.lock().Unlock()
	s.activity++
	s.answered++
	c.record.Seq = s.answered
	c.entry.record = c.record
	l := &c.generation.log
	if ended {
		l.endLocked(c.entry)
	}
	l.total++
	l.kept = append(l.kept, c.entry)
	if len(l.kept) > l.limit {
		clear(l.kept[:1]) // so that the array does not keep the dropped call in memory
		l.kept = l.kept[1:]
	}
	return s.watchers
}

// showTo shows calls to a watcher, until the watcher fails. Then the test fails, and a
// call that is under way goes on.
func (s *Server) showTo(w *watcher, entries ...*entry) {
	failed := s.runCallback(func() string { return w.name }, func() {
		for _, e := range entries {
			if matchesAll(w.matchers, e) {
				w.show(e)
			}
		}
	})
	if failed != "" && w.failed != nil {
		w.failed()
	}
}

// sentSoFar returns the record of an answer after n bytes of its body were sent. It is
// called once for an answer that is sent at once, and for each part of an answer that
// drips.
func (s *Server) sentSoFar(c *call, n int, ended bool) (sent Sent) {
	if ended {
		sent.Ended = s.Now()
	}
	body := c.toClient.Body
	if c.record.Method == http.MethodHead { // HTTP sends only the body's length
		n, body = 0, nil
	}
	_, whole := c.delivery.Part(body)
	switch {
	case c.fault != nil && c.fault.phase == beforeConnecting:
		return Sent{Ended: sent.Ended, Broke: brokeRefused}
	case c.clientLeft:
		return Sent{Ended: sent.Ended, Broke: brokeLeft}
	case !whole:
		sent.Broke = broke[c.delivery.Ends]
	case ended && n < len(body):
		sent.Broke = brokeLeft
	}
	// The connection broke before the header, so there is no status and no body.
	if c.delivery.Sent == memnet.Nothing {
		return sent
	}
	sent.Status, sent.Bytes, sent.Header, sent.Body = c.toClient.Status, n, c.toClient.Header, c.record.ReplyBody
	// Otherwise the client got the service's whole body, which ReplyBody holds already
	// masked.
	if c.fault != nil || n < len(c.toClient.Body) {
		sent.Body = c.toClient.Show(n, c.Secrets, s.config.messageTexts)
	}
	if c.fault != nil {
		sent.Header = mask.AnswerHeader(c.toClient.Header, !s.config.messageTexts)
	}
	return sent
}

// progress records how much of an answer was sent. memnet calls it while an answer drips
// or hangs, and if the client did not take a whole answer. It counts each part of a drip
// before the part is sent.
func (s *Server) progress(c *call, n int, ended bool) {
	defer s.recovered(c)
	if ended { // deferred, so that it also happens if the clock ends the goroutine
		defer s.end(c)
	}
	sent := s.sentSoFar(c, n, ended)
	c.entry.sent.Store(&sent)
}
