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
	"strings"
	"time"
)

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

const maxTranscript = 50

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
