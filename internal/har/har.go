// Package har writes the calls of a fake as an HTTP archive.
package har

import (
	"cmp"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver"
)

// Write writes calls as an HTTP archive (HAR 1.2), which the developer tools of browsers
// open. It needs the memory of one call only. Each response is the one that was sent. If a
// fault replaced the answer that the fake had decided on, that is in the member _decided.
func Write(w io.Writer, calls iter.Seq[fakeserver.Call]) error {
	if _, err := io.WriteString(w, `{"log":{"version":"1.2","creator":{"name":"agentmessaging fakeserver","version":"1"},"entries":[`); err != nil {
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	between := ""
	for c := range calls {
		if _, err := io.WriteString(w, between); err != nil {
			return err
		}
		if err := encoder.Encode(harEntry(c)); err != nil {
			return err
		}
		between = ","
	}
	_, err := io.WriteString(w, "]}}\n")
	return err
}

type object map[string]any

// harEntry returns the entry of a call. Sizes that the fake does not know are -1, as the
// format demands. All of the time is waiting time, because the fake does not measure
// sending and receiving. No query is listed, because records redact it.
func harEntry(c fakeserver.Call) object {
	none := []any{}
	request := object{
		"method": c.Method, "url": c.URL, "httpVersion": "HTTP/1.1",
		"cookies": none, "headers": harHeader(c.Header), "queryString": none,
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

// harResponse returns the response that the client got. The format allows programs to add
// members whose names begin with _.
func harResponse(c fakeserver.Call) object {
	response := object{
		"status": c.Sent.Status, "statusText": http.StatusText(c.Sent.Status), "httpVersion": "HTTP/1.1",
		"cookies": []any{}, "headers": harHeader(c.Sent.Header), "redirectURL": "", "headersSize": -1, "bodySize": c.Sent.Bytes,
		"content": object{"size": len(c.Sent.Body), "mimeType": mimeOf(c.Sent.Header), "text": c.Sent.Body},
	}
	if c.Sent.Broke != "" {
		response["comment"] = c.Sent.Broke
	}
	if c.Status != c.Sent.Status || c.ReplyBody != c.Sent.Body {
		response["_decided"] = object{"status": c.Status, "text": c.ReplyBody}
	}
	return response
}

func mimeOf(h http.Header) string { return cmp.Or(h.Get("Content-Type"), "application/octet-stream") }

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
