package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// HTMLTitle is that of an HTML page.
func HTMLTitle(page []byte) string {
	_, rest, _ := strings.Cut(string(page), "<title>")
	title, _, closed := strings.Cut(rest, "</title>")
	if !closed {
		return ""
	}
	return title
}

const (
	maxSaid = 160
	maxWord = 32 // longer ones may be a secret in any encoding
	maxEcho = 7  // letters and digits of a secret that words may have by chance
)

// Excerpt is what a proxy says in place of the documented body, as one line. They are
// empty where they may come from a request: proxies echo requests, whole or in part.
func (s Redactor) Excerpt(said string) string {
	words := strings.Fields(said)
	said = strings.Join(words, " ")
	isLong := func(word string) bool { return len(word) > maxWord }
	if len(said) > maxSaid || slices.ContainsFunc(words, isLong) || strings.ContainsFunc(said, isCode) || s.Text(said) != said || s.echoed(said) {
		return ""
	}
	return said
}

// isCode reports what a sentence does without, and JSON, HTML, forms and escapes do not.
func isCode(r rune) bool {
	return strings.ContainsRune(`{}[]<>"\%&=+`, r) || r == utf8.RuneError || !unicode.IsPrint(r)
}

func (s Redactor) echoed(said string) bool {
	said = spoken(said)
	for _, secret := range s.secrets {
		secret = spoken(secret)
		for i := 0; i+maxEcho < len(said); i++ {
			if strings.Contains(secret, said[i:i+maxEcho+1]) {
				return true
			}
		}
	}
	return false
}

// spoken leaves letters and digits, in lower case.
func spoken(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}
