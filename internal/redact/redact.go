// Package redact takes secrets out of what the service, a proxy or a transport
// said. It imports nothing of the module. The tests of the client, in secret_test.go,
// are its tests.
package redact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Redactor hides what a call has sent. The zero value hides nothing. Only With may be
// called by several goroutines at once.
type Redactor struct {
	secrets []secret // the keys; then the words, once a text was long enough to show them
	keys    int      // how many of the secrets are keys
	words   string   // that are not among the secrets yet
}

// New returns a Redactor that hides an API key.
func New(apiKey string) *Redactor {
	r := new(Redactor).With(apiKey, "")
	return &r
}

// With returns a Redactor that also hides another key, such as the provider key, and the
// words of a person that a call has sent. Either may be empty.
func (r *Redactor) With(key, words string) Redactor {
	with := Redactor{secrets: r.secrets[:r.keys:r.keys], keys: r.keys}
	if len(key) >= minSecret {
		with.secrets, with.keys = append(with.secrets, newSecret(key, keyParts)), r.keys+1
	}
	if len(words) >= minSecret {
		with.words = words
	}
	return with
}

// minSecret is the length in bytes below which a secret is not searched for: to replace
// "a" everywhere would destroy the text and hide nothing.
const minSecret = 6

// HasKey reports whether a text has a whole key in it.
func (r *Redactor) HasKey(text string) bool {
	return slices.ContainsFunc(r.secrets[:r.keys], func(key secret) bool { return strings.Contains(text, key.text) })
}

// place says where a text comes from. How much of a secret it may show depends on that.
type place int

const (
	inText   place = iota // this machine has made it, such as a Go error
	inAnswer              // the words of an answer, which may quote a part of what was sent
	inName                // a name that programs switch on, such as a limit_key
	inQuote               // what came in place of an answer: nobody knows who wrote it
)

// parts say which part of a secret shows it. What is shorter may be shown.
type parts struct {
	first       int    // so many bytes from its beginning
	firstBase64 int    // so many letters from the beginning of its base64
	letters     [4]int // by place: so many of its letters and digits in a row, whatever is between them
}

// whole is longer than any secret: only the whole of it shows it.
const whole = math.MaxInt

// A name may have a word in common with a key, such as "provider-1", and all of a person's
// words, which are not searched for in names. Other texts have several ordinary words in
// common with them.
var (
	keyParts   = &parts{first: 8, firstBase64: 10, letters: [4]int{inText: whole, inAnswer: 8, inName: 16, inQuote: 8}}
	wordsParts = &parts{first: whole, firstBase64: 32, letters: [4]int{inText: whole, inAnswer: 20, inName: whole, inQuote: 8}}
)

// A secret is a key, or the words of a person.
type secret struct {
	text    string
	parts   *parts
	firsts  [4][]byte // folded: the first bytes of the text, and of its base64
	letters []byte    // of the text, in lower case
}

// newSecret prepares what is searched for. In base64, three bytes are four letters: what
// comes before the secret decides whether its first, second or third byte begins such a
// group.
func newSecret(text string, shown *parts) secret {
	s := secret{text: text, parts: shown, letters: appendLetters(make([]byte, 0, len(text)), text)}
	s.firsts[0] = fold([]byte(text[:min(shown.first, len(text))]))
	for skip := range 3 {
		part := []byte(text[skip:min(len(text), skip+shown.firstBase64)])
		letters := min(shown.firstBase64, len(part)*8/6) // without one that the next byte has a part in
		s.firsts[1+skip] = fold(base64.RawStdEncoding.AppendEncode(nil, part))[:letters]
	}
	return s
}

// fold makes letters that become one another the same, in place: net/http changes the case
// of header names, "+" is a space in a query, and "-" and "_" are + and / in the base64 of
// URLs.
func fold(text []byte) []byte {
	for i, c := range text {
		switch {
		case 'A' <= c && c <= 'Z':
			text[i] += 'a' - 'A'
		case c <= ' ' || c == '+':
			text[i] = '-'
		case c == '/':
			text[i] = '_'
		}
	}
	return text
}

// appendLetters appends the letters and digits of a text, in lower case.
func appendLetters(letters []byte, text string) []byte {
	for _, c := range text {
		if l := letter(c); l >= 0 {
			letters = utf8.AppendRune(letters, l)
		}
	}
	return letters
}

// letter is a letter or digit in lower case, and less than 0 for anything else. It is
// short enough to be inlined, for most are one already.
func letter(c rune) rune {
	if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
		return c
	}
	return lowered(c)
}

func lowered(c rune) rune {
	if unicode.IsLetter(c) || unicode.IsNumber(c) {
		return unicode.ToLower(c)
	}
	return -1
}

// Text hides keys and words in a text that this machine has made, such as a Go error.
func (r *Redactor) Text(text string) string { return hide(r.all(), text, inText) }

// Answer is Text for the words of an answer, which may quote a part of what was sent.
func (r *Redactor) Answer(text string) string { return hide(r.all(), text, inAnswer) }

// Identifier hides keys, whole or in part, in a name that programs switch on, such as a
// limit_key. A word of a message that is a part of it, such as "minute", stays. What does
// not look like an identifier is the words of an answer.
func (r *Redactor) Identifier(name string) string {
	isOther := func(c rune) bool { return c > '~' || letter(c) < 0 && !strings.ContainsRune("-./:_=+", c) }
	if len(name) > 128 || strings.ContainsFunc(name, isOther) {
		return r.Answer(name)
	}
	return hide(r.secrets[:r.keys], name, inName)
}

// all returns the keys and, last, the words.
func (r *Redactor) all() []secret {
	if r.words != "" {
		r.secrets, r.words = append(r.secrets, newSecret(r.words, wordsParts)), ""
	}
	return r.secrets
}

// JSON hides secrets in a JSON value. Where that leaves no JSON, as in a number, it
// hides all of the value.
func (r *Redactor) JSON(value json.RawMessage) json.RawMessage {
	text := r.Answer(string(value))
	if !json.Valid([]byte(text)) {
		text = `"` + Redacted + `"`
	}
	return json.RawMessage(text)
}

// Header returns a copy without secrets in names and values.
func (r *Redactor) Header(header http.Header) http.Header {
	shown := header.Clone()
	for name, values := range shown {
		for i := range values {
			values[i] = r.Text(values[i])
		}
		if clean := r.Identifier(name); clean != name {
			delete(shown, name)
			shown[clean] = values
		}
	}
	return shown
}

// hide replaces secrets that are whole and not encoded, and parts of them. Where they are
// encoded, it replaces all of the text.
func hide(secrets []secret, text string, in place) string {
	if len(text) < minSecret || !shown(secrets, text, in) {
		return text
	}
	text = hideWhole(secrets, strings.ReplaceAll(text, Redacted, hole))
	if shown(secrets, text, inText) {
		return Redacted
	}
	text = hideParts(secrets, text, in)
	if shown(secrets, text, in) {
		return Redacted
	}
	return strings.ReplaceAll(text, hole, Redacted)
}

// hole is where a secret was, until all are found. It is no character of Unicode.
const hole = "\ufffe"

// shown reports whether a text shows a secret, as it is or under its escapes.
func shown(secrets []secret, text string, in place) bool {
	var room [2][64]byte // most texts are short
	for range maxLayers + 1 {
		folded, letters := fold(append(room[0][:0], text...)), room[1][:0]
		if in != inText { // where no letters in a row show a secret
			letters = appendLetters(letters, text)
		}
		for i := range secrets {
			s := &secrets[i]
			isIn := func(first []byte) bool { return bytes.Contains(folded, first) }
			if slices.ContainsFunc(s.firsts[:], isIn) {
				return true
			}
			if s.mayHavePart(letters, in) && hideParts(secrets[i:i+1], text, in) != text {
				return true
			}
		}
		if strings.IndexByte(text, '%') < 0 && strings.IndexByte(text, '\\') < 0 && strings.IndexByte(text, '&') < 0 {
			return false
		}
		text = withoutEscapes(text)
	}
	return false
}

// maxLayers is how many escapes inside one another are taken off.
const maxLayers = 4

// mayHavePart reports whether a part of the secret with as many bytes as it takes letters
// is among the letters. A secret that does not have the last half of such a part has no
// part that this half is in: most are passed over.
func (s *secret) mayHavePart(letters []byte, in place) bool {
	least := s.parts.letters[in]
	for end := least; end <= len(letters); {
		half := letters[end-least/2 : end]
		switch {
		case !bytes.Contains(s.letters, half):
			end += least - len(half) + 1
		case bytes.Contains(s.letters, letters[end-least:end]):
			return true
		default:
			end++
		}
	}
	return false
}

// hideWhole replaces secrets that are whole, but for what folding changes.
func hideWhole(secrets []secret, text string) string {
	folded, hidden := fold([]byte(text)), make([]bool, len(text))
	for _, s := range secrets {
		whole, end := fold([]byte(s.text)), 0
		for _, piece := range bytes.SplitAfter(folded, whole) {
			if end += len(piece); bytes.HasSuffix(piece, whole) {
				for at := end - len(whole); at < end; at++ {
					hidden[at] = true
				}
			}
		}
	}
	return cover(text, hidden)
}

// hideParts replaces the letters and digits in a row that show a secret, and what is
// between them.
func hideParts(secrets []secret, text string, in place) string {
	var letters []rune
	var from, to []int // where each is in the text
	for i, c := range text {
		if l := letter(c); l >= 0 {
			letters, from, to = append(letters, l), append(from, i), append(to, i+utf8.RuneLen(c))
		}
	}
	hidden := make([]bool, len(text))
	for i := range secrets {
		least := secrets[i].parts.letters[in]
		for end := least; end <= len(letters); end++ {
			if bytes.Contains(secrets[i].letters, []byte(string(letters[end-least:end]))) {
				for at := from[end-least]; at < to[end-1]; at++ {
					hidden[at] = true
				}
			}
		}
	}
	return cover(text, hidden)
}

// cover puts a hole where bytes in a row are hidden.
func cover(text string, hidden []bool) string {
	var shown strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			shown.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			shown.WriteString(hole)
		}
	}
	return shown.String()
}

// withoutEscapes takes off one layer of escapes. It looks where one may begin: to
// search all of a text with escape takes many times as long.
func withoutEscapes(text string) string {
	clean := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		found := ""
		if strings.IndexByte(`%\&`, text[i]) >= 0 {
			found = escape.FindString(text[i:min(i+12, len(text))]) // the longest has 12 bytes
		}
		if found == "" {
			clean = append(clean, text[i])
		} else {
			clean = append(clean, unescape(found)...)
		}
		i += max(1, len(found))
	}
	return string(clean)
}

// escape matches the escapes of URLs, of JSON and of HTML, and \x of Go.
var escape = regexp.MustCompile(`(?i)^(?:%[0-9a-f]{2}|\\x[0-9a-f]{2}|\\ud[89ab]..\\ud[c-f]..|\\u[0-9a-f]{4}|\\["\\/nrt]|&(?:amp|lt|gt|quot|apos);|&#[0-9]{1,7};|&#x[0-9a-f]{1,6};)`)

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
func (r *Redactor) Quote(text string) string {
	if title := htmlTitle.FindStringSubmatch(text); title != nil {
		text = title[1]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuote || !sentence.MatchString(text) || hide(r.all(), text, inQuote) != text {
		return ""
	}
	return text
}

// Error redacts errors that led to one another as one error, which says what each adds.
// errors.Is finds all of them and what they wrap; errors.As and Unwrap only those whose
// text, and that of what they wrap, shows no secret. Nothing but texts is read: an
// error may guard its fields by a lock. Neither finds an error of which except reports
// true, or what that wraps. Errors that are nil are left out.
func (r *Redactor) Error(except func(error) bool, errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	e := &redactedError{is: func(target error) bool { return find(errs, target, except) }}
	var texts []string
	for _, err := range errs {
		text, causes, _ := r.clean(err, except)
		e.causes, texts = append(e.causes, causes...), append(texts, text)
	}
	e.text = said(texts)
	return e
}

// withoutUser cuts an error off where it quotes an address with a user and a password,
// such as that of a proxy. What follows them is cut too: net/url says which part of an
// address it cannot read, and that may be the password.
func withoutUser(text string) string { return userInfo.ReplaceAllString(text, "$1$2"+Redacted) }

// userInfo matches all of an error about an invalid proxy address, and elsewhere an
// address that has an @ before its path, or something else than a port after its colon.
var userInfo = regexp.MustCompile(`(?s)(invalid proxy address ").*@.*|(://)(?:[^/?#@]*|[^/?#@:[]*:\d*[^\d/?#@][^@]*)@.*`)

// said joins texts, without those that another one has in it.
func said(texts []string) string {
	var said []string
	for i, text := range texts {
		isIn := func(other string) bool { return other != text && strings.Contains(other, text) }
		if !slices.ContainsFunc(texts, isIn) && !slices.Contains(texts[:i], text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, ": ")
}

// clean returns the text of an error without secrets. If that is all of it, and nothing
// in it is an exception, causes is the error and whole is true; else causes are those
// that it wraps.
//
// Of an error in which a person's words are found, nothing is shown but what it wraps:
// "[redacted]ion refused" would tell the words. An error about a connection is not
// searched for them: it knows nothing of a request, and any of its words may be in a
// message.
func (r *Redactor) clean(err error, except func(error) bool) (text string, causes []error, whole bool) {
	text, whole = err.Error(), !except(err)
	all, added, inside := text, text, []string{Redacted}
	for _, inner := range Wrapped(err) {
		redacted, some, isWhole := r.clean(inner, except)
		text = strings.ReplaceAll(text, inner.Error(), redacted)
		added = strings.ReplaceAll(added, inner.Error(), "")
		causes, whole, inside = append(causes, some...), whole && isWhole, append(inside, redacted)
	}
	text = hide(r.secrets[:r.keys], withoutUser(text), inText)
	if words := r.all()[r.keys:]; !isOfConnection(err) && shown(words, added, inText) {
		text = said(inside)
	}
	switch {
	case except(err):
		return text, nil, false
	case whole && text == all:
		return text, []error{err}, true
	}
	return text, causes, false
}

// isOfConnection reports an error about a connection or a context, as the standard library
// makes them. What it wraps may be of others.
func isOfConnection(err error) bool {
	kind := reflect.TypeOf(err)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.PkgPath() {
	case "context", "crypto/tls", "crypto/x509", "internal/poll", "net", "os", "syscall":
		return true
	}
	return err == context.Canceled || err == io.EOF || err == io.ErrUnexpectedEOF
}

// Wrapped are the errors that err wraps.
func Wrapped(err error) (all []error) {
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		all = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		all = slices.Clone(err.Unwrap())
	}
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// redactedError is a pointer, so that it can be compared and be the key of a map.
type redactedError struct {
	text   string
	causes []error
	is     func(error) bool // a function, so that no print shows the errors, which may show a secret
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) GoString() string     { return e.text }
func (e *redactedError) Unwrap() []error      { return e.causes }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// find is errors.Is without the exceptions.
func find(errs []error, target error, except func(error) bool) bool {
	return slices.ContainsFunc(errs, func(err error) bool {
		return !except(err) && (is(err, target) || find(Wrapped(err), target, except))
	})
}

// is reports whether err is target. Some errors cannot be compared, such as a struct
// with a slice in an interface: that panics.
func is(err, target error) (found bool) {
	defer func() { _ = recover() }()
	x, ok := err.(interface{ Is(error) bool })
	return err == target || ok && x.Is(target)
}
