package redact

import (
	"regexp"
	"strings"
	"unicode"
)

var htmlTitle = regexp.MustCompile(`<title>([^<]*)</title>`)

// HTMLTitle is the title of an HTML page.
func HTMLTitle(page []byte) string {
	if match := htmlTitle.FindSubmatch(page); match != nil {
		return string(match[1])
	}
	return ""
}

const maxExcerpt = 160

// noSentence matches what JSON, HTML, forms and escapes have and sentences do
// without, and a word that is long enough to be a secret in any encoding.
var noSentence = regexp.MustCompile(`[{}\[\]<>"\\%&=+\x{FFFD}]|[^\pL\pM\pN\pP\pS ]|[^ ]{33}`)

// Excerpt is what a proxy says in place of the documented body, as one line. It is
// empty where it may come from a request: proxies echo requests, whole or in part.
func (r Redactor) Excerpt(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxExcerpt || noSentence.MatchString(text) || r.Text(text) != text || r.echoed(text) {
		return ""
	}
	return text
}

// echoed reports whether a secret and the text have minKey letters and digits in a
// row in common.
func (r Redactor) echoed(text string) bool {
	text = lettersOf(text)
	for _, secret := range []string{r.apiKey, r.providerKey, r.words} {
		secret = lettersOf(secret)
		for i := 0; i+minKey <= len(text); i++ {
			if strings.Contains(secret, text[i:i+minKey]) {
				return true
			}
		}
	}
	return false
}

// lettersOf is the letters and digits of the text, in lower case.
func lettersOf(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsNumber(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, text)
}
