package fakeserver

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// answer is what goes onto the wire, complete.
type answer struct {
	memnet.Response
	shown    string // the body as Calls shows it
	code     string // of an error
	reason   string // of an error
	limitKey string // of a 429
}

// compose makes the answer of a reply, or of a failure.
func (s *Server) compose(req *request, rep reply, flaw *failure) answer {
	date := s.now().Format(http.TimeFormat) // by the fake's clock, not the machine's
	if flaw != nil {
		return flaw.answer(date, req.traceID)
	}
	rep.trace(req.traceID)
	a := newAnswer(http.StatusOK, date, encode(rep))
	if m, ok := rep.(*messageReply); ok && !s.config.messageTexts {
		a.shown = string(encode(m.redacted()))
	} else {
		a.shown = string(a.Body)
	}
	return a
}

func (f *failure) answer(date, traceID string) answer {
	body := encode(errorReply{Error: f.code, TraceID: traceID, LimitKey: string(f.limit), Reason: f.reason})
	a := newAnswer(f.status, date, body)
	a.shown, a.code, a.reason, a.limitKey = string(body), f.code, f.reason, string(f.limit)
	switch f.status {
	case http.StatusUnauthorized:
		a.Header["Www-Authenticate"] = []string{"Bearer"}
	case http.StatusMethodNotAllowed:
		a.Header["Allow"] = []string{f.allow}
	case http.StatusTooManyRequests:
		a.Header["Retry-After"] = []string{strconv.Itoa(f.wait)}
	}
	return a
}

// newAnswer is an answer of which nothing is shown yet.
func newAnswer(status int, date string, body []byte) answer {
	values := []string{"application/json", date, strconv.Itoa(len(body))} // together: one allocation for all
	return answer{Response: memnet.Response{Status: status, Body: body, Header: http.Header{
		"Content-Type":   values[0:1:1],
		"Date":           values[1:2:2],
		"Content-Length": values[2:3:3],
	}}}
}

func encode(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err) // the wire structs hold nothing that JSON does not
	}
	return b
}
