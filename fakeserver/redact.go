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

// redactHeader copies a header without what must not be kept: the values of
// headers that are named like a secret, and the call's secrets wherever they
// stand.
func redactHeader(h http.Header, secrets []string) http.Header {
	if len(h) > maxHeaderNames {
		h = firstNames(h)
	}
	shown := h.Clone()
	for name, values := range shown {
		for i, v := range values {
			values[i] = clip(scrub(v, secrets), maxHeaderValue)
		}
		if isSecret(name) {
			shown[name] = []string{redactedKey}
		}
		if holds(name, secrets) {
			delete(shown, name)
			shown[redactedKey] = []string{redactedKey}
		}
	}
	return shown
}

func firstNames(h http.Header) http.Header {
	first := make(http.Header, maxHeaderNames)
	for _, name := range slices.Sorted(maps.Keys(h))[:maxHeaderNames] {
		first[name] = h[name]
	}
	return first
}

// holds reports whether a secret stands in the name of a header, whose case
// net/http has changed.
func holds(name string, secrets []string) bool {
	if len(name) < minScrubbed {
		return false
	}
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(secret))
	})
}

// isSecret reports whether a header is named like one that carries a secret.
func isSecret(name string) bool {
	switch name {
	case "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent":
		return false // in every call, and a search of its own is slow
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) })
}

// secretNames are parts of the names of such headers.
var secretNames = []string{"authorization", "cookie", "key", "token", "secret"}
