package fakeserver

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-messaging-service/agentmessaging-go/internal/spec"
)

// redactedKey stands where a key stood.
const redactedKey = "[redacted]"

// redactedText stands where somebody's words stood.
func redactedText(s string) string {
	return "[redacted, " + strconv.Itoa(utf8.RuneCountInString(s)) + " characters]"
}

// redaction is what Calls shows instead of a field's value, "" where it shows
// the value.
func (p *parser) redaction(f *spec.Field, value string) string {
	switch f {
	case spec.LLMAPIKey, spec.BYOKAPIKey:
		return redactedKey
	case spec.SystemPrompt, spec.MessageText:
		if !p.texts {
			return redactedText(value)
		}
	}
	return ""
}

// maxHeaderNames and maxHeaderValue bound the header of a record: that of a
// call may take a megabyte.
const (
	maxHeaderNames = 100
	maxHeaderValue = 4 << 10
)

// headerLines are a header as a record keeps it: a map costs more, and most
// records are never looked at.
type headerLines []headerLine

type headerLine struct {
	name   string
	values []string
}

// header is a copy as Calls shows it.
func (lines headerLines) header() http.Header {
	if lines == nil {
		return nil
	}
	h := make(http.Header, len(lines))
	for _, l := range lines {
		h[l.name] = slices.Clone(l.values)
	}
	return h
}

// redactHeader copies a header without what must not be kept: the values of
// headers that are named like a secret, and the call's secrets wherever they
// stand.
func redactHeader(h http.Header, secrets []string) headerLines {
	if h == nil {
		return nil
	}
	if len(h) > maxHeaderNames {
		h = firstNames(h)
	}
	lower, lines := lowered(secrets), make(headerLines, 0, len(h))
	values := make([]string, 0, len(h)) // of all lines: few have more than one
	for name, sent := range h {
		from := len(values)
		switch n := nameOf(name); {
		case containsAny(n.lower, lower): // net/http has changed its case
			name, values = redactedKey, append(values, redactedKey)
		case n.secret:
			values = append(values, redactedKey)
		default:
			for _, v := range sent {
				values = append(values, clip(scrub(v, secrets), maxHeaderValue))
			}
		}
		lines = append(lines, headerLine{name, values[from:len(values):len(values)]})
	}
	return lines
}

func firstNames(h http.Header) http.Header {
	first := make(http.Header, maxHeaderNames)
	for _, name := range slices.Sorted(maps.Keys(h))[:maxHeaderNames] {
		first[name] = h[name]
	}
	return first
}

func lowered(texts []string) []string {
	lower := make([]string, len(texts))
	for i, text := range texts {
		lower[i] = strings.ToLower(text)
	}
	return lower
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// headerName is what a header's name tells.
type headerName struct {
	name   string
	lower  string
	secret bool // it is named like one that carries a secret
}

// usualNames are in almost every call, and reading each name anew is slow.
var usualNames = []headerName{
	{"Accept-Encoding", "accept-encoding", false},
	{"Authorization", "authorization", true},
	{"Content-Length", "content-length", false},
	{"Content-Type", "content-type", false},
	{"User-Agent", "user-agent", false},
}

func nameOf(name string) headerName {
	for _, usual := range usualNames {
		if usual.name == name {
			return usual
		}
	}
	lower := strings.ToLower(name)
	return headerName{name, lower, containsAny(lower, secretNames)}
}

// secretNames are parts of the names of headers that carry a secret.
var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}
