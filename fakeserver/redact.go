package fakeserver

import (
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

// minScrubbed is the length from which a token is looked for in other places.
// A shorter one is not worth hiding, and would be found everywhere.
const minScrubbed = 8

// scrub takes the call's own token out of a text: it ends up in a path when
// the arguments of a client are mixed up, and in a message when they are
// pasted.
func scrub(text, token string) string {
	if len(token) < minScrubbed {
		return text
	}
	return strings.ReplaceAll(text, token, redactedKey)
}

// redactHeader copies a header without what must not be kept: the values of
// headers that are named like a secret, and the token wherever it stands.
func redactHeader(h http.Header, token string) http.Header {
	shown := h.Clone()
	for name, values := range shown {
		for i, v := range values {
			values[i] = scrub(v, token)
		}
		if isSecret(name) {
			shown[name] = []string{redactedKey}
		}
	}
	return shown
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
