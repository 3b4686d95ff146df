// Package redact takes secrets out of what the service, a proxy or a transport
// said. It imports nothing of the module.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Redactor hides what a call has sent. The zero value hides nothing.
type Redactor struct {
	apiKey, providerKey, words string
	keys                       []secret
}

// secret is what is searched for, folded: a secret as it is, or in base64.
type secret struct {
	text   string
	least  int // an echo may be cut short: so many bytes from the first on are enough
	base64 bool
}

const (
	// minSecret is the length in bytes below which a secret is not searched for:
	// to replace "a" everywhere would destroy the text and hide nothing.
	minSecret = 6
	// So many bytes from the beginning of a key give it away, and in base64 so many
	// letters of a key, or of what a person wrote.
	minKey         = 8
	minKeyBase64   = 10
	minWordsBase64 = 32
)

// New returns a Redactor that hides an API key.
func New(apiKey string) Redactor {
	return Redactor{apiKey: apiKey, keys: add(nil, apiKey, minKey, minKeyBase64)}
}

// With returns a Redactor that also hides the provider key and the words of a
// person that a call has sent. Either may be empty.
func (r Redactor) With(providerKey, words string) Redactor {
	r.providerKey, r.words = providerKey, words
	r.keys = add(r.keys, providerKey, minKey, minKeyBase64)
	return r
}

// add returns the list with a secret, as it is and in base64. What comes before it in a
// group of three bytes decides which letters it has there; those that other bytes have
// a part in, at either end, are left out. The longest is first, since a secret may hold
// another one, whose replacement would leave the rest of it to be seen.
func add(secrets []secret, text string, least, leastBase64 int) []secret {
	if len(text) < minSecret {
		return secrets
	}
	secrets = append(slices.Clip(secrets), secret{fold(text), min(least, len(text)), false})
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), text...))
		encoded = fold(encoded[(before*8+5)/6 : (before+len(text))*8/6])
		secrets = append(secrets, secret{encoded, min(leastBase64, len(encoded)), true})
	}
	for i := range secrets { // a dozen: slices.SortFunc would add 5 KiB to every program
		for j := i; j > 0 && len(secrets[j].text) > len(secrets[j-1].text); j-- {
			secrets[j], secrets[j-1] = secrets[j-1], secrets[j]
		}
	}
	return secrets
}

// Text hides keys and words in a sentence, or in whatever else a person may read.
func (r Redactor) Text(text string) string { return hide(text, r.secrets()) }

func (r Redactor) secrets() []secret { return add(r.keys, r.words, len(r.words), minWordsBase64) }

// Identifier hides keys in a name that programs switch on, such as a limit_key. A
// word of a message that is a part of it, such as "minute", stays. What does not
// look like an identifier is a Text.
func (r Redactor) Identifier(name string) string {
	if len(name) > maxIdentifier || strings.ContainsFunc(name, notInIdentifiers) {
		return r.Text(name)
	}
	return hide(name, r.keys)
}

const maxIdentifier = 128

func notInIdentifiers(c rune) bool {
	return !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '-' <= c && c <= ':' || c == '_' || c == '=' || c == '+')
}

// JSON hides secrets in a JSON value. Where that leaves no JSON, as in a number, it
// hides all of the value.
func (r Redactor) JSON(value json.RawMessage) json.RawMessage {
	text := r.Text(string(value))
	if !json.Valid([]byte(text)) {
		text = `"` + Redacted + `"`
	}
	return json.RawMessage(text)
}

// Header returns a copy without secrets in names and values.
func (r Redactor) Header(header http.Header) http.Header {
	shown, secrets := header.Clone(), r.secrets()
	for name, values := range shown {
		for i := range values {
			values[i] = hide(values[i], secrets)
		}
		if clean := r.Identifier(name); clean != name {
			delete(shown, name)
			shown[clean] = values
		}
	}
	return shown
}

// fold makes one letter of those that become one another: net/http changes the case
// of header names, "+" is a space in a query, and "-" and "_" are + and / in the base64
// of URLs. The length stays.
func fold(text string) string {
	folded := []byte(text)
	for i, c := range folded {
		switch {
		case 'A' <= c && c <= 'Z':
			folded[i] += 'a' - 'A'
		case c <= ' ' || c == '+' || c == '-':
			folded[i] = ' '
		case c == '_':
			folded[i] = '/'
		}
	}
	return string(folded)
}

// maxLayers is how many escapes inside one another are taken off.
const maxLayers = 4

// hide replaces secrets, cut short or not. Where escapes are, a part of one may go
// on behind an escape, and one that shows only without them has no place in the
// text: then all of the text is replaced.
func hide(text string, secrets []secret) string {
	bare, escaped := fold(text), strings.ContainsAny(text, `%\&`)
	for _, s := range secrets {
		part := s.text[:s.least]
		if escaped {
			part = s.text
		}
		if strings.Contains(bare, part) {
			text = s.replace(text, part)
			bare = fold(text)
		}
	}
	for layer := 0; escaped && layer <= maxLayers; layer++ {
		for _, s := range secrets {
			if strings.Contains(bare, s.text[:s.least]) {
				return Redacted
			}
		}
		size := len(bare)
		bare = fold(escape.ReplaceAllStringFunc(bare, unescape))
		escaped = len(bare) < size // another layer may be left
	}
	return text
}

// replace replaces the secret where a part of it is, and what follows of it. In base64
// it replaces all letters around, since more of them may be of the secret.
func (s secret) replace(text, part string) string {
	folded := fold(text)
	for begin := strings.Index(folded, part); begin >= 0; begin = strings.Index(folded, part) {
		end := begin + len(part)
		for end < len(folded) && end-begin < len(s.text) && folded[end] == s.text[end-begin] {
			end++
		}
		if s.base64 {
			begin = len(strings.TrimRight(text[:begin], base64Letters))
			end = len(text) - len(strings.TrimLeft(text[end:], base64Letters))
		}
		text = text[:begin] + Redacted + text[end:]
		folded = folded[:begin] + strings.ToUpper(Redacted) + folded[end:] // in letters that are not searched for
	}
	return text
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"

// escape matches the escapes of URLs, of JSON and of HTML, and \x of Go, folded.
var escape = regexp.MustCompile(`%[0-9a-f]{2}|\\x[0-9a-f]{2}|\\ud[89ab]..\\ud[c-f]..|\\u[0-9a-f]{4}|\\["\\/nrt]|&(?:amp|lt|gt|quot|apos);|&#[0-9]{1,7};|&#x[0-9a-f]{1,6};`)

// named are the names that keys and JSON need in HTML. Package html, which knows
// all, would add 80 KiB to every program.
var named = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&apos;": "'"}

func unescape(escape string) string {
	if text, ok := named[escape]; ok {
		return text
	}
	if escape[0] == '\\' && escape[1] != 'x' {
		var text string
		_ = json.Unmarshal([]byte(`"`+escape+`"`), &text) // escape matches valid ones only
		return text
	}
	base := 16
	if escape[0] == '&' && escape[2] != 'x' {
		base = 10
	}
	code, _ := strconv.ParseUint(strings.Trim(escape, `%\x&#;`), base, 31) // escape matches valid ones only
	if escape[0] == '&' {
		return string(rune(code))
	}
	return string([]byte{byte(code)})
}

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
	secrets := lettersOf(r.apiKey) + "\n" + lettersOf(r.providerKey) + "\n" + lettersOf(r.words)
	for i := 0; i+minKey <= len(text); i++ {
		if strings.Contains(secrets, text[i:i+minKey]) {
			return true
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
