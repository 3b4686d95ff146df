package fakeserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
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

// WriteHAR writes the calls that Calls returns to w as an HTTP archive (HAR
// 1.2), which the developer tools of browsers open. Keys and texts are redacted
// as in Calls. Each response is the one that was sent. Where the service had
// decided something else, the member _decided holds that. WriteHAR returns the
// error of w.
func (s *Server) WriteHAR(w io.Writer, matchers ...Matcher) error {
	entries := []any{} // a HAR without calls has an empty list, not null
	for _, c := range copiedCalls(s.matching("WriteHAR", matchers)) {
		entries = append(entries, harEntry(c))
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{"log": object{
		"version": "1.2",
		"creator": object{"name": "agentmessaging fakeserver", "version": "1"},
		"entries": entries,
	}})
	if err != nil {
		return fmt.Errorf("fakeserver: WriteHAR: %w", err)
	}
	return nil
}

type object map[string]any

func harEntry(c Call) object {
	none := []any{}
	request := object{
		"method": c.Method, "url": c.URL, "httpVersion": "HTTP/1.1",
		"cookies": none, "headers": harHeader(c.Header), "queryString": harQuery(c.URL),
		"headersSize": -1, "bodySize": c.BodyBytes,
	}
	if c.Body != "" {
		request["postData"] = object{"mimeType": mimeOf(c.Header), "params": none, "text": c.Body}
	}
	return object{
		"startedDateTime": c.Time.Format(time.RFC3339Nano), "time": millis(c.Took), "comment": c.String(),
		"request": request, "response": harResponse(c),
		"cache": object{}, "timings": object{"send": 0, "wait": millis(c.Took), "receive": 0},
	}
}

func harResponse(c Call) object {
	response := object{
		"status": c.Sent.Status, "statusText": http.StatusText(c.Sent.Status), "httpVersion": "HTTP/1.1",
		"cookies": []any{}, "headers": harHeader(c.Sent.Header), "redirectURL": "", "headersSize": -1, "bodySize": c.Sent.Bytes,
		"content": object{"size": len(c.Sent.Body), "mimeType": mimeOf(c.Sent.Header), "text": c.Sent.Body},
	}
	if c.Sent.Broke != "" {
		response["comment"] = c.Sent.outcome()
	}
	if c.Status != c.Sent.Status || c.ReplyBody != c.Sent.Body {
		response["_decided"] = object{"status": c.Status, "text": c.ReplyBody}
	}
	return response
}

func mimeOf(h http.Header) string { return cmp.Or(h.Get("Content-Type"), "application/octet-stream") }

func harQuery(address string) []object {
	u, err := url.Parse(address)
	if err != nil {
		return []object{}
	}
	return harHeader(http.Header(u.Query()))
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func harHeader(h http.Header) []object {
	pairs := []object{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[name] {
			pairs = append(pairs, object{"name": name, "value": v})
		}
	}
	return pairs
}

// outcome returns the answer to send: the one that the service decided, or the
// fault's. A callback that panicked has decided nothing.
func (s *Server) outcome(req *request, decided answer) answer {
	if req.fault != nil && req.fault.canned != nil {
		shown := legible{texts: s.config.messageTexts, fields: replyFields, secrets: req.secrets}
		return req.fault.canned.answer(&s.config.decided, req, s.date(), shown)
	}
	return decided
}

// completeSent records what will be sent. Where the client leaves before, it
// gets less.
func (s *Server) completeSent(req *request, out answer) {
	call := &req.record.call
	if req.fault != nil && req.fault.phase == beforeConnecting {
		call.Sent.Broke = refused
		return
	}
	d := req.delivery(out)
	part, whole := d.Part(out.Body)
	if !whole {
		call.Sent.Broke = breaks[d.Ends]
		if d.Sent == memnet.Nothing {
			return
		}
	}
	call.Sent.Status, call.Sent.Bytes, call.Sent.Body = out.Status, len(part), call.ReplyBody
	ofTest := req.fault != nil && req.fault.canned != nil
	if ofTest || !whole {
		call.Sent.Body = clip(scrubJSON(out.shownPart(part), req.secrets), maxRecordedBody)
	}
	req.record.sent = linesOf(out.Header, ofTest && !s.config.messageTexts)
}

// delivery says how an answer leaves. Where a callback of the test panicked, there
// is no answer, and the connection closes.
func (req *request) delivery(out answer) memnet.Delivery {
	switch {
	case req.fault != nil:
		return req.fault.delivery
	case out.Status == 0:
		return clientGone.delivery
	}
	return memnet.Delivery{}
}

// shownPart is a part of the body as Calls shows it. Redacted words are not cut.
func (a answer) shownPart(part []byte) string {
	if a.shown == string(a.Body) {
		return clip(a.shown, len(part))
	}
	return a.shown
}
