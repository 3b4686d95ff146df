package memnet

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// checkSent refuses what a Transport refuses to send, in the same words.
func checkSent(req *http.Request) error {
	switch {
	case req.URL == nil:
		return errors.New("http: nil Request.URL")
	case req.Header == nil:
		return errors.New("http: nil Request.Header")
	case req.Method != "" && !isToken(req.Method):
		return fmt.Errorf("net/http: invalid method %q", req.Method)
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return fmt.Errorf("net/http: invalid header field name %q", name)
		}
		// The value may be a key, so it is not repeated.
		if slices.ContainsFunc(values, HoldsControl) {
			return fmt.Errorf("net/http: invalid header field value for %q", name)
		}
	}
	return nil
}

// isToken reports whether a text is a name as RFC 9110, 5.6.2, allows it.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// HoldsControl reports whether a text holds a control character, which could
// end the line of a header.
func HoldsControl(value string) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// servedHeader is a header as it arrives: without the headers that a Transport
// writes by itself, and with those that it adds.
func servedHeader(req *http.Request) http.Header {
	h := arrived(req.Header)
	agent, given := req.Header["User-Agent"]
	if !given {
		agent = []string{"Go-http-client/1.1"}
	}
	if len(agent) > 0 && textproto.TrimString(agent[0]) != "" {
		h["User-Agent"] = append([]string{textproto.TrimString(agent[0])}, h["User-Agent"]...)
	}
	if req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && req.Method != http.MethodHead {
		h["Accept-Encoding"] = append(h["Accept-Encoding"], "gzip")
	}
	switch {
	case hasBody(req) && req.ContentLength > 0:
		h["Content-Length"] = []string{strconv.FormatInt(req.ContentLength, 10)}
	case !hasBody(req) && namesLength(req.Method):
		h["Content-Length"] = []string{"0"}
	}
	return h
}

// arrived makes the names canonical and trims the values. It goes through the
// names in order, as a Transport does.
func arrived(sent http.Header) http.Header {
	h := make(http.Header, len(sent)+3)
	names := slices.AppendSeq(make([]string, 0, len(sent)), maps.Keys(sent))
	slices.Sort(names)
	for _, name := range names {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if ownWay(name, canonical) {
			continue
		}
		for _, v := range sent[name] {
			h[canonical] = append(h[canonical], textproto.TrimString(v))
		}
	}
	return h
}

// ownWay reports whether a Transport writes a header by itself. In another case
// of letters it would send User-Agent twice, and the others in a form that no
// server accepts.
func ownWay(name, canonical string) bool {
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return name == "User-Agent"
}
