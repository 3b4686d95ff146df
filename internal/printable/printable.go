// Package printable makes foreign text, and numbers of things, fit for a log line or an
// error message. It imports nothing of the module.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name makes a foreign name, such as a limit_key, fit to be kept and shown.
func Name(text string) string { return Line(text, MaxName) }

// MaxName is the length of a name in bytes.
const MaxName = 64

// Line makes foreign text fit for a log: valid UTF-8, no line breaks or
// other control characters, at most limit bytes.
func Line(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) <= limit {
		return text
	}
	const ellipsis = "..."
	return Clip(text, limit-len(ellipsis)) + ellipsis
}

// Clip cuts a text to at most limit bytes, between characters. The result does not keep a
// longer text in memory.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit])
}

// Plural counts things in words: "1 call", "2 calls".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
