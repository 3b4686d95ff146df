package fakeserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"
)

// WriteCalls writes the calls that Calls returns to w as JSON Lines: one JSON
// object and a line feed for each call. They are as redacted as Calls has
// them. The members are, in this order and with their names for good:
//
//	seq time endpoint? method path agent_id? key address header body?
//	body_bytes took_ns status code? reason? limit_key? reply_body? fault?
//	trace_id
//
// Those with a question mark are left out when empty; what they hold is said at
// the fields of Call. time is RFC 3339, header an object of lists of strings.
// The error is that of w.
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
// 1.2), which the developer tools of browsers open. They are as redacted as
// Calls has them; the header of its answer and the query of its address are
// not recorded. The error is that of w.
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
	none, kind := []any{}, "application/json"
	request := object{
		"method": c.Method, "url": "http://" + host + c.Path, "httpVersion": "HTTP/1.1",
		"cookies": none, "headers": harHeader(c.Header), "queryString": none,
		"headersSize": -1, "bodySize": c.BodyBytes,
	}
	if c.Body != "" {
		request["postData"] = object{"mimeType": kind, "params": none, "text": c.Body}
	}
	return object{
		"startedDateTime": c.Time.Format(time.RFC3339Nano), "time": millis(c.Took), "comment": c.String(),
		"request": request,
		"response": object{
			"status": c.Status, "statusText": http.StatusText(c.Status), "httpVersion": "HTTP/1.1",
			"cookies": none, "headers": none, "redirectURL": "", "headersSize": -1, "bodySize": -1,
			"content": object{"size": len(c.ReplyBody), "mimeType": kind, "text": c.ReplyBody},
		},
		"cache": object{}, "timings": object{"send": 0, "wait": millis(c.Took), "receive": 0},
	}
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
