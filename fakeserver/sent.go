package fakeserver

import (
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"

	"github.com/agent-messaging-service/agentmessaging-go/fakeserver/internal/memnet"
)

// Sent is what a client was sent of an answer: the one that the service decided,
// or what a fault made of it.
type Sent struct {
	Status int         `json:"status"`           // 0: not even a header was sent
	Header http.Header `json:"header,omitempty"` // without what net/http adds, such as Connection
	Body   string      `json:"body,omitempty"`   // at most 64 KiB, or WithBodyLimit
	Bytes  int         `json:"bytes"`            // of the body; Content-Length says how many were announced
	Broke  Break       `json:"broke,omitempty"`  // how it broke off; "" where it was sent whole
}

// Break is how an answer broke off.
type Break string

// The ways in which an answer breaks off.
const (
	BreakClosed Break = "closed" // the connection was closed
	BreakReset  Break = "reset"  // the connection was reset
	BreakHung   Break = "hung"   // nothing more came; the connection stayed open until the client left
)

var breaks = map[memnet.Ending]Break{memnet.Closes: BreakClosed, memnet.Resets: BreakReset, memnet.Hangs: BreakHung}

// outcome is what the client got, in a few words.
func (s Sent) outcome() string {
	switch {
	case s.Broke == "":
		return strconv.Itoa(s.Status)
	case s.Status == 0:
		return "no answer, " + string(s.Broke)
	}
	return fmt.Sprintf("%d, %s after %d bytes", s.Status, s.Broke, s.Bytes)
}

// outcome is what is sent for an answer that the service decided: that answer,
// or the fault's. A callback that panicked has decided nothing.
func (s *Server) outcome(req *request, decided answer) answer {
	if req.fault != nil && req.fault.canned != nil {
		return req.fault.canned.answer(s, req)
	}
	return decided
}

// completeSent records what will be sent. Where the client leaves before, it
// gets less.
func (s *Server) completeSent(req *request, out answer) {
	var d memnet.Delivery
	if req.fault != nil {
		d = req.fault.delivery
	} else if out.Status == 0 {
		d = clientGone.delivery
	}
	sent := &req.record.call.Sent
	whole := d.Ends == memnet.Stays || d.Ends == memnet.Leaves || d.Sent >= len(out.Body)
	if !whole {
		sent.Broke = breaks[d.Ends]
	}
	if d.Sent == memnet.Nothing && !whole {
		return
	}
	shown := out.shown
	if len(out.Body) == 0 {
		shown = ""
	}
	if sent.Bytes = len(out.Body); !whole {
		sent.Bytes = d.Sent
		if shown == string(out.Body) {
			shown = clip(shown, d.Sent)
		}
	}
	sent.Status, sent.Body = out.Status, clip(scrubJSON(shown, req.secrets), s.config.bodyLimit)
	req.record.sent = slices.DeleteFunc(redactHeader(out.Header, req.secrets), func(l headerLine) bool { return len(l.values) == 0 })
	if s.config.messageTexts || req.fault == nil || req.fault.canned == nil {
		return
	}
	for _, line := range req.record.sent { // of a fault, these are words of the test
		if line.name == "Retry-After" || line.name == "Content-Type" {
			line.values[0] = tellingHeader(line.values[0])
		}
	}
}

// tellingHeader is the value of a header that is a number, a date or a media
// type, and else its length.
func tellingHeader(value string) string {
	_, notNumber := strconv.ParseFloat(value, 64)
	_, notDate := http.ParseTime(value)
	kind, _, notMedia := mime.ParseMediaType(value)
	if notNumber == nil || notDate == nil || notMedia == nil && mediaTypes.MatchString(kind) {
		return value
	}
	return redactedText(value)
}

var mediaTypes = regexp.MustCompile(`^(application|text|image)/[a-z+.-]+$`)
