package fakeserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// canned is the answer of a fault.
type canned struct {
	status      int
	body        string  // "", unless raw: the fake's own error body
	raw         bool    // no header but contentType, Content-Length and Date
	contentType string  // of a raw one; "" sends none
	retryAfter  *string // in place of the fake's own; "" sends none
}

func (c *canned) answer(s *Server, req *request) answer {
	a := s.compose(req, nil, &failure{
		status: c.status, code: codeOf(c.status), reason: "injected by the test",
		limit: c.limit(), wait: 1,
	})
	if c.raw || c.body != "" {
		a.Body = []byte(c.body)
	}
	a.Header["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	if c.raw {
		a.Header = http.Header{
			"Content-Type": {c.contentType}, "Content-Length": a.Header["Content-Length"], "Date": a.Header["Date"],
		}
	}
	if c.retryAfter != nil {
		a.Header["Retry-After"] = []string{*c.retryAfter}
	}
	return c.bodiless(a.withoutEmpty())
}

func (c *canned) limit() spec.LimitKey {
	if c.status == http.StatusTooManyRequests {
		return spec.KeyMinute
	}
	return ""
}

// withoutEmpty leaves out the headers that are not to be sent. Content-Type
// stays as one without values, or net/http would guess it.
func (a answer) withoutEmpty() answer {
	for name, values := range a.Header {
		if values[0] == "" {
			delete(a.Header, name)
		}
	}
	if _, has := a.Header["Content-Type"]; !has {
		a.Header["Content-Type"] = nil
	}
	return a
}

// bodiless takes the body off an answer whose status allows none (RFC 9110,
// 6.4.1).
func (c *canned) bodiless(a answer) answer {
	if c.status == http.StatusNoContent || c.status == http.StatusNotModified {
		a.Body, a.Header["Content-Type"] = nil, nil
		delete(a.Header, "Content-Length")
	}
	return a
}

// codeOf is the error identifier for a status that a fault answers: the fake's
// own, or the name of the status.
func codeOf(status int) string {
	if code, ok := codes[status]; ok {
		return code
	}
	if name := http.StatusText(status); name != "" {
		return strings.ReplaceAll(strings.ToLower(name), " ", "_")
	}
	return "status_" + strconv.Itoa(status)
}
