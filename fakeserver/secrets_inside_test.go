package fakeserver

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

// net/http changes the case of a header's name, and so of a key that has got
// into it. What was sent, what is recorded and what is shown share no memory.
func TestRedactHeader(t *testing.T) {
	const secret = "Sk-MiXed/0123"
	sent := http.Header{
		"Authorization":   {"Bearer " + secret, "Bearer another"},
		"X-Sk-Mixed/0123": {"1"},
		"X-Api-Key":       {"short", "keys"},
		"Content-Type":    {"application/json"},
		"X-Note":          {"about " + secret + ".", "about nothing", strings.Repeat("a", maxHeaderValue+1)},
	}
	want := func() http.Header {
		return http.Header{
			"Authorization": {"[redacted]"},
			"[redacted]":    {"[redacted]"},
			"X-Api-Key":     {"[redacted]"},
			"Content-Type":  {"application/json"},
			"X-Note":        {"about [redacted].", "about nothing", strings.Repeat("a", maxHeaderValue)},
		}
	}
	lines := redactHeader(sent, []string{secret})
	sent["Content-Type"][0] = "changed"
	shown := lines.header()
	shown["X-Note"][1] = "changed"
	shown["X-Api-Key"] = append(shown["X-Api-Key"], "more")
	delete(shown, "Authorization")
	assert.True(t, assert.ObjectsAreEqual(want(), lines.header()), "%.80v", lines)
	for _, l := range lines {
		assert.NotContains(t, strings.Join(l.values[:cap(l.values)], " "), secret, "nor behind the values")
	}
	assert.Nil(t, redactHeader(nil, nil).header())
	assert.NotNil(t, redactHeader(http.Header{}, nil).header())
}

// The names that are known before they are read are known rightly.
func TestUsualNames(t *testing.T) {
	for _, n := range usualNames {
		lower := strings.ToLower(n.name)
		assert.Equal(t, headerName{n.name, lower, containsAny(lower, secretNames)}, n)
	}
}

// Whatever isKeyName accepts is seen by mayNameKey, plain and escaped.
func TestMayNameKey(t *testing.T) {
	for _, letter := range "api_key" {
		for r := unicode.SimpleFold(letter); r != letter; r = unicode.SimpleFold(r) {
			name := strings.Replace("api_key", string(letter), string(r), 1)
			assert.True(t, isKeyName(name) && mayNameKey([]byte(name)), name)
		}
	}
	assert.True(t, mayNameKey([]byte(`{"\u0061pi\u005fkey":1}`)))
	assert.False(t, mayNameKey([]byte(message)), "or every message would be read twice")
}
