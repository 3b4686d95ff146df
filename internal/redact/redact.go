// Package redact takes secrets out of what the service, a proxy or a transport
// said. It imports nothing of the module. The tests of the client, in secret_test.go,
// are its tests.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Redactor hides what a call has sent. The zero value hides nothing.
type Redactor struct {
	keys  secrets // of both keys
	words string
}

const (
	// minSecret is the length in bytes below which a secret is not searched for:
	// to replace "a" everywhere would destroy the text and hide nothing.
	minSecret = 6
	// A text that shows this many first bytes of a key counts as showing it, and one with
	// this many letters of its base64, or of that of a person's words. An answer shows a
	// part of a key with as many letters and digits in a row, and an identifier, which may
	// have a word in common with a key such as "provider-1", with minKeyInName. Words of
	// a person have more in common with those of any answer: several ordinary words.
	minKey         = 8
	minKeyInName   = 16
	minWords       = 20
	minKeyBase64   = 10
	minWordsBase64 = 32
)

// New returns a Redactor that hides an API key.
func New(apiKey string) Redactor {
	return Redactor{keys: secrets{}.plus(apiKey, minKey, minKeyBase64)}
}

// With returns a Redactor that also hides the provider key and the words of a
// person that a call has sent. Either may be empty.
func (r Redactor) With(providerKey, words string) Redactor {
	return Redactor{keys: r.keys.plus(providerKey, minKey, minKeyBase64), words: words}
}

// Text hides keys and words in a sentence, or in whatever else a person may read.
func (r Redactor) Text(text string) string {
	if text == "" {
		return ""
	}
	return r.all().hide(text)
}

// Answer is Text for the words of an answer, which may quote a part of what was sent.
func (r Redactor) Answer(text string) string { return r.hideParts(text, minWords) }

// hideParts hides all that Text hides, and so many letters and digits of a person's
// words in a row.
func (r Redactor) hideParts(text string, leastWords int) string {
	text = r.keys.hideParts(r.all().hide(text), minKey)
	return secrets{}.plusWords(r.words).hideParts(text, leastWords)
}

func (r Redactor) all() secrets { return r.keys.plusWords(r.words) }

func (s secrets) plusWords(words string) secrets { return s.plus(words, len(words), minWordsBase64) }

// Identifier hides keys, whole or in part, in a name that programs switch on, such as a
// limit_key. A word of a message that is a part of it, such as "minute", stays. What does
// not look like an identifier is the words of an answer.
func (r Redactor) Identifier(name string) string {
	if len(name) > maxIdentifier || strings.Trim(name, identifierLetters) != "" {
		return r.Answer(name)
	}
	return r.keys.hideParts(r.keys.hide(name), minKeyInName)
}

const (
	maxIdentifier     = 128
	identifierLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-./:_=+"
)

// JSON hides secrets in a JSON value. Where that leaves no JSON, as in a number, it
// hides all of the value.
func (r Redactor) JSON(value json.RawMessage) json.RawMessage {
	text := r.Answer(string(value))
	if !json.Valid([]byte(text)) {
		text = `"` + Redacted + `"`
	}
	return json.RawMessage(text)
}

// Header returns a copy without secrets in names and values.
func (r Redactor) Header(header http.Header) http.Header {
	shown, secrets := header.Clone(), r.all()
	for name, values := range shown {
		for i := range values {
			values[i] = secrets.hide(values[i])
		}
		if clean := r.Identifier(name); clean != name {
			delete(shown, name)
			shown[clean] = values
		}
	}
	return shown
}

// secrets are searched for, each as it is and in base64.
type secrets struct {
	whole    []string
	letters  []string // of each
	prefixes []string // of each form, folded: an echo may be cut short
}

// plus returns s and another secret. A text shows that secret if it has the first bytes
// of it (least), or the first letters of its base64 (leastBase64). In base64, three bytes
// are four letters: what comes before the secret decides whether its first, second or
// third byte begins such a group.
func (s secrets) plus(secret string, least, leastBase64 int) secrets {
	if len(secret) < minSecret {
		return s
	}
	s.whole = append(slices.Clip(s.whole), secret)
	s.letters = append(slices.Clip(s.letters), strings.Map(letter, secret))
	s.prefixes = append(slices.Clip(s.prefixes), fold(secret[:min(least, len(secret))]))
	for skip := range 3 {
		part := secret[skip:min(len(secret), skip+leastBase64)]
		encoded := base64.RawStdEncoding.EncodeToString([]byte(part))
		letters := min(leastBase64, len(part)*8/6) // without one that the next byte has a part in
		s.prefixes = append(s.prefixes, fold(encoded[:letters]))
	}
	return s
}

// hide replaces secrets that are whole and not encoded. Where others are, it replaces
// all of the text.
func (s secrets) hide(text string) string {
	if !s.showIn(text) {
		return text
	}
	var patterns []string
	for _, secret := range s.whole {
		patterns = append(patterns, regexp.QuoteMeta(secret))
	}
	whole, err := regexp.Compile("(?i)" + strings.Join(patterns, "|"))
	if err != nil { // a secret that is not UTF-8
		return Redacted
	}
	whole.Longest() // a secret may be the beginning of another one
	if text = whole.ReplaceAllLiteralString(text, Redacted); s.showIn(text) {
		return Redacted
	}
	return text
}

func (s secrets) showIn(text string) bool {
	for layer := range layers(text) {
		folded := fold(layer)
		for _, prefix := range s.prefixes {
			if strings.Contains(folded, prefix) {
				return true
			}
		}
	}
	return false
}

// hideParts replaces at least so many letters and digits in a row that are in a secret.
// Where they are escaped, it replaces all of the text.
func (s secrets) hideParts(text string, least int) string {
	around := strings.Split(text, Redacted)
	for i := range around {
		around[i] = s.hidePartsOf(around[i], least)
	}
	text = strings.Join(around, Redacted)
	for layer := range layers(text) {
		if layer != text && s.hidePartsOf(layer, least) != layer {
			return Redacted
		}
	}
	return text
}

func (s secrets) hidePartsOf(text string, least int) string {
	if !s.holdPart(strings.Map(letter, text), least) {
		return text
	}
	var shown strings.Builder
	done := 0 // bytes of the text that are shown or hidden
	// The last letters only, and where each comes from: a text may be long.
	part, from := make([]rune, 0, least+1), make([]int, 0, least+1)
	for i, c := range text {
		if letter(c) < 0 {
			continue
		}
		part, from = append(part, letter(c)), append(from, i)
		if len(part) > least {
			part, from = slices.Delete(part, 0, 1), slices.Delete(from, 0, 1)
		}
		isIn := func(sent string) bool { return strings.Contains(sent, string(part)) }
		if len(part) < least || !slices.ContainsFunc(s.letters, isIn) {
			continue
		}
		if shown.Len() == 0 || from[0] > done {
			shown.WriteString(text[done:from[0]] + Redacted)
		}
		done = i + utf8.RuneLen(c)
	}
	return shown.String() + text[done:]
}

// holdPart reports whether a secret has that many bytes of the letters in a row. Without
// them it cannot have as many letters, which take longer to look for.
func (s secrets) holdPart(letters string, least int) bool {
	for from := range max(0, len(letters)-least+1) {
		part := letters[from : from+least]
		if slices.ContainsFunc(s.letters, func(sent string) bool { return strings.Contains(sent, part) }) {
			return true
		}
	}
	return false
}

// letter is a letter or digit in lower case, and less than 0 for anything else.
func letter(c rune) rune {
	if unicode.IsLetter(c) || unicode.IsNumber(c) {
		return unicode.ToLower(c)
	}
	return -1
}

// maxLayers is how many escapes inside one another are taken off.
const maxLayers = 4

// layers are the text and what is left of it without its escapes, again and again.
func layers(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range maxLayers + 1 {
			if !yield(text) || !strings.ContainsAny(text, `%\&`) {
				return
			}
			text = escape.ReplaceAllStringFunc(text, unescape)
		}
	}
}

// fold makes one letter of those that become one another: net/http changes the case
// of header names, "+" is a space in a query, and "-" and "_" are + and / in the base64
// of URLs.
func fold(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case 'A' <= c && c <= 'Z':
			return c + 'a' - 'A'
		case c <= ' ' || c == '+':
			return '-'
		case c == '/':
			return '_'
		}
		return c
	}, text)
}

// escape matches the escapes of URLs, of JSON and of HTML, and \x of Go.
var escape = regexp.MustCompile(`(?i)%[0-9a-f]{2}|\\x[0-9a-f]{2}|\\ud[89ab]..\\ud[c-f]..|\\u[0-9a-f]{4}|\\["\\/nrt]|&(?:amp|lt|gt|quot|apos);|&#[0-9]{1,7};|&#x[0-9a-f]{1,6};`)

// named are the names that keys and JSON need in HTML. Package html, which knows
// all, would add 80 KiB to every program.
var named = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&apos;": "'"}

func unescape(escape string) string {
	escape = strings.ToLower(escape)
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

const maxQuote = 160

var (
	htmlTitle = regexp.MustCompile(`<title>([^<]*)</title>`)
	// sentence has none of what JSON, HTML, forms and escapes need, and no word that is
	// long enough to be a whole secret in any encoding.
	sentence = regexp.MustCompile(`^([\pL\pN.,:;!?'()/|-]{1,32}( |$))+$`)
)

// Quote is what a proxy says in place of the documented body, as one line: the title of
// an HTML page, or the whole of a short text. It is empty where it may come from a
// request: proxies echo requests, whole or in part.
func (r Redactor) Quote(text string) string {
	if title := htmlTitle.FindStringSubmatch(text); title != nil {
		text = title[1]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuote || !sentence.MatchString(text) || r.hideParts(text, minKey) != text {
		return ""
	}
	return text
}

// Error redacts err and other causes. errors.Is finds all of them; errors.As and Unwrap
// only those without secrets. nil stays nil.
func (r Redactor) Error(err error, others ...error) error {
	if err == nil {
		return nil
	}
	e := &redactedError{text: r.Text(err.Error()), is: func(target error) bool { return holds(err, target) }}
	e.causes, _ = r.clean(err)
	for _, other := range others {
		if other != nil && !holds(err, other) {
			e.causes = append(e.causes, r.Error(other))
		}
	}
	return e
}

// holds is errors.Is, but for errors that cannot be compared, such as a struct with a
// slice in an interface: errors.Is panics there.
func holds(err, target error) (found bool) {
	defer func() { _ = recover() }()
	return errors.Is(err, target)
}

// clean returns err where neither it nor what it wraps shows a secret, and otherwise
// what it wraps, as far as that is clean.
func (r Redactor) clean(err error) (causes []error, whole bool) {
	shown := fmt.Sprintf("%s\n%+v\n%#v", err.Error(), err, err)
	whole = r.Text(shown) == shown
	for _, inner := range unwrap(err) {
		some, all := r.clean(inner)
		causes, whole = append(causes, some...), whole && all
	}
	if whole {
		return []error{err}, true
	}
	return causes, false
}

// unwrap returns what err wraps.
func unwrap(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if inner := errors.Unwrap(err); inner != nil {
		return []error{inner}
	}
	return nil
}

// redactedError is a pointer, so that it can be compared and be the key of a map.
type redactedError struct {
	text   string
	causes []error
	is     func(error) bool // of the error itself, which may show a secret
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) GoString() string     { return e.text }
func (e *redactedError) Unwrap() []error      { return e.causes }
func (e *redactedError) Is(target error) bool { return e.is(target) }
