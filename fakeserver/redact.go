package fakeserver

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// redactedKey stands where a key stood.
const redactedKey = "[redacted]"

// redactedText stands where somebody's words stood.
func redactedText(s string) string {
	return "[redacted, " + strconv.Itoa(utf8.RuneCountInString(s)) + " characters]"
}

// withheld stands in a sentence where a key stood, or may have stood.
const withheld = "…"

// scrub takes the call's own secrets out of a text: they end up in a path when
// the arguments of a client are mixed up, and in a message when they are
// pasted.
func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, redactedKey)
	}
	return text
}

// scrubPath takes the secrets out of an escaped path, in which they may be
// escaped themselves.
func scrubPath(escaped string, secrets []string) string {
	escaped = scrub(escaped, secrets)
	path, err := url.PathUnescape(escaped)
	if err != nil || scrub(path, secrets) == path {
		return escaped
	}
	pieces := strings.Split(scrub(path, secrets), redactedKey)
	for i, piece := range pieces {
		pieces[i] = (&url.URL{Path: piece}).EscapedPath()
	}
	return strings.Join(pieces, redactedKey)
}

// clip cuts a text to at most limit bytes, between characters. The result does
// not keep the memory of a longer text.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.Clone(text[:limit])
}

// kept bounds a part of the request's first line, and does not keep the memory
// of the rest, which may hold a query of a megabyte.
func kept(part string) string { return strings.Clone(clip(part, maxRecorded)) }

// printable keeps a foreign text from breaking a line or moving a cursor.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// maxQuotedName bounds the foreign text in a reason.
const maxQuotedName = 64

// memberName quotes a member's name, which unlike a value may be repeated,
// unless it may be a key that has got into the wrong place: those have digits.
func memberName(name string) string {
	if len(name) >= minScrubbed && strings.ContainsAny(name, "0123456789") {
		return withheld
	}
	return quoteName(name)
}

// quoteName quotes a foreign name and bounds it.
func quoteName(name string) string {
	if runes := []rune(name); len(runes) > maxQuotedName {
		name = string(runes[:maxQuotedName]) + "..."
	}
	return strconv.Quote(name)
}

// maxShown bounds the parts of a sentence that are foreign, in bytes.
const maxShown = 100

func bounded(text string) string {
	if len(text) > maxShown {
		text = clip(text, maxShown) + "..."
	}
	return strings.Map(printable, text)
}
