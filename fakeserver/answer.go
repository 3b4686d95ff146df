package fakeserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
)

// answer is what goes onto the wire, complete.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	shown    string // the body as Calls shows it
	code     string // of an error
	reason   string // of an error
	limitKey string // of a 429
}

// compose makes the answer of a reply, or of a failure.
func (s *Server) compose(req *request, rep reply, flaw *failure) answer {
	h := http.Header{
		"Content-Type": {"application/json"},
		"Date":         {s.now().Format(http.TimeFormat)}, // by the fake's clock, not the machine's
	}
	if flaw != nil {
		return flaw.answer(h, req.traceID)
	}
	rep.trace(req.traceID)
	a := newAnswer(http.StatusOK, h, rep)
	if m, ok := rep.(*messageReply); ok && !s.config.messageTexts {
		a.shown = string(encode(m.redacted()))
	}
	return a
}

func (f *failure) answer(h http.Header, traceID string) answer {
	switch f.status {
	case http.StatusUnauthorized:
		h["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		h["Allow"] = []string{f.allow}
	case http.StatusTooManyRequests:
		h["Retry-After"] = []string{strconv.Itoa(f.wait)}
	}
	body := errorReply{Error: f.code, TraceID: traceID, LimitKey: string(f.limit), Reason: f.reason}
	a := newAnswer(f.status, h, body)
	a.code, a.reason, a.limitKey = body.Error, body.Reason, body.LimitKey
	return a
}

func newAnswer(status int, h http.Header, body any) answer {
	encoded := encode(body)
	h["Content-Length"] = []string{strconv.Itoa(len(encoded))}
	return answer{status: status, header: h, body: encoded, shown: string(encoded)}
}

func encode(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the wire structs hold nothing that JSON does not
	}
	return b
}

func (a answer) write(w http.ResponseWriter) {
	if direct, ok := w.(*directWriter); ok {
		direct.take(a)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may be gone, which is its own affair
}
