package fakeserver

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// misuse panics with a sentence about a wrong argument of the test's author.
func misuse(method, format string, args ...any) {
	panic("fakeserver: " + method + ": " + fmt.Sprintf(format, args...))
}

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

// digest stands for the text of an API key wherever the fake must recognise
// one, so that nothing in its state shows a key.
type digest [sha256.Size]byte

func digestOf(key string) digest { return sha256.Sum256([]byte(key)) }

const keyKind = "amk_fake"

// keyText is the text of the n-th key of fakes without WithKey. It is made
// when asked for and never stored.
func keyText(n int) string { return numbered(keyKind, n) }

// numbered is kind, an underscore, and n in at least six digits.
func numbered(kind string, n int) string {
	digits := strconv.Itoa(n)
	return kind + "_" + "000000"[min(len(digits), 6):] + digits
}

// labelOf is the label that follows from the text of a key that a fake
// issued. Any other key may be a real one.
func labelOf(key string) string {
	digits, _ := strings.CutPrefix(key, keyKind+"_")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || keyText(n) != key {
		return withheld
	}
	return numbered("key", n)
}

// minScrubbed is the length from which a secret is looked for in other places.
// A shorter one is not worth hiding, and would be found everywhere.
const minScrubbed = 8

func isKeyName(name string) bool { return strings.EqualFold(name, "api_key") }

// maxRecorded bounds what is foreign and has no bound of its own: method, path
// and agent.
const maxRecorded = 256
