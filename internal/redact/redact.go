// Package redact takes secrets out of texts that the service, a proxy or a transport
// wrote. A secret is an API key, a provider key, or the user text of a call: the system
// prompt or the message that a person wrote. A text may hold a secret as a whole, in
// part, or encoded, because gateways echo requests in many ways.
//
// TestCalls of the client tests it too.
package redact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
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

	"github.com/agent-messaging-service/agentmessaging-go/internal/isnil"
	"github.com/agent-messaging-service/agentmessaging-go/internal/strictjson"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// Redactor hides the secrets of a call. The zero value hides nothing. Only With may be
// called by several goroutines at once.
type Redactor struct {
	secrets  []secret // the keys, followed by the user text once allSecrets has prepared it
	keys     int      // how many of the secrets are keys
	userText string   // the user text, until allSecrets prepares it for the search; most calls never need it
}

// New returns a Redactor that hides an API key.
func New(apiKey string) *Redactor {
	r := new(Redactor).With(apiKey, "")
	return &r
}

// With returns a Redactor that also hides another key, such as the provider key, and the
// user text of a call. Either may be empty. White space around the user text is not sought,
// because a service may trim a message before it repeats it.
func (r *Redactor) With(key, userText string) Redactor {
	with := Redactor{secrets: r.secrets[:r.keys:r.keys], keys: r.keys, userText: strings.TrimSpace(userText)}
	if len(key) >= MinSecret {
		with.secrets, with.keys = append(with.secrets, newSecret(key, keyParts)), r.keys+1
	}
	return with
}

// MinSecret is the length, in bytes, of the shortest secret that is hidden. Replacing
// each "a" would destroy the text and hide nothing.
const MinSecret = 6

// Place says where a text comes from. It decides which secrets are hidden, and how long a
// part of a secret the text may show.
type Place int

const (
	// InText is a Go error, which may quote bytes of an answer, or an answer's header or body.
	InText Place = iota
	// InAnswer is a member of an answer, which may quote a part of the request.
	InAnswer
	// InName is a name that programs switch on, such as a limit_key. User text stays,
	// because a message may contain the name or a word of it, such as "minute". A text that
	// does not look like a name counts as InAnswer.
	InName
	// inQuote is a text that came in place of an answer. Its author is not known.
	inQuote
	// beginningsOnly stands for any text: only the beginning of a secret and of its encodings
	// count, not letters inside of it.
	beginningsOnly
)

// parts says how long a part of a secret must be to be hidden. A shorter part stays in
// the text.
type parts struct {
	first        int    // bytes from its beginning
	firstEncoded int    // letters from the beginning of its base64
	letters      [5]int // for each Place of a text: letters and digits in a row, not counting the characters between them
}

// never is longer than any secret, so that no part of it is hidden.
const never = math.MaxInt

// The first bytes of a key are hidden everywhere. A name may have another word in common with a
// key, so in a name only a long part of the rest is hidden. A user text may share ordinary words
// with any other text, and contain whole names, so names are not searched for it.
var (
	keyParts      = &parts{first: 8, firstEncoded: 10, letters: [5]int{InText: 16, InAnswer: 8, InName: 16, inQuote: 8, beginningsOnly: never}}
	userTextParts = &parts{first: never, firstEncoded: 32, letters: [5]int{InText: never, InAnswer: 20, InName: never, inQuote: 8, beginningsOnly: never}}
)

// A secret is a key or a user text, prepared for the search.
type secret struct {
	text       string
	parts      *parts
	beginnings [][]byte // folded: the beginning of the text, and of each of its encodings
	letters    string   // the letters and digits of the text, in lower case
}

// newSecret prepares a secret for the search. Its encodings are base64, hexadecimal digits,
// and the numbers of its bytes as Go, or a list in another language, prints them. They encode
// the secret as it is, or as JSON has it in the request's body.
//
// Base64 turns each group of three bytes into four letters. The number of bytes before the
// secret decides whether its first, second or third byte begins a group, so there are three
// forms.
func newSecret(text string, parts *parts) secret {
	begin, first := text, min(parts.first, len(text))
	if parts == keyParts {
		if public := len(publicPrefix.FindString(text)); len(text)-public >= longKey {
			begin, first = text[public:], first+public
		}
	}
	s := secret{text: text, parts: parts, letters: strings.Map(letter, text)}
	add := func(next []byte) { s.beginnings = append(s.beginnings, fold(next)) }
	add([]byte(text[:first]))
	quoted, _ := strictjson.Encode(begin) // as the body of a request has it; cannot fail for a string
	for _, begin := range slices.Compact([]string{begin, string(quoted[1 : len(quoted)-1])}) {
		for skip := range 3 {
			part := []byte(begin[skip:min(len(begin), skip+parts.firstEncoded)])
			letters := min(parts.firstEncoded, len(part)*8/6) // without the last letter if the byte after part changes it
			add(base64.RawStdEncoding.AppendEncode(nil, part)[:letters])
		}
		part := []byte(begin[:min(len(begin), parts.firstEncoded*6/8)]) // as many bytes as the base64 holds
		numbers := strings.Trim(fmt.Sprint(part), "[]")
		for _, encoded := range []string{fmt.Sprintf("%x", part), fmt.Sprintf("% x", part), numbers, strings.ReplaceAll(numbers, " ", ", ")} {
			add([]byte(encoded))
		}
	}
	return s
}

// publicPrefix matches the beginning of a key that tells its kind, such as sk-proj-. It is no
// secret, and the service may quote it. It is short, because a key may consist of words.
var publicPrefix = regexp.MustCompile(`^[a-zA-Z]{2,4}[-_](?:[a-zA-Z]{2,6}[-_])?`)

// longKey is the length, in bytes, from which on a key without its prefix is still hard to
// confuse with other words.
const longKey = 16

// fold maps bytes that proxies and encodings use in place of each other to the same byte. It
// changes text. net/http changes the case of header names, "+" is a space in a query, numbers
// have a space, a comma or a colon between them, and the base64 of URLs has "-" and "_" in place
// of "+" and "/".
func fold(text []byte) []byte {
	for i, c := range text {
		switch {
		case 'A' <= c && c <= 'Z':
			text[i] += 'a' - 'A'
		case c <= ' ' || c == '+' || c == ',' || c == ':':
			text[i] = '-'
		case c == '/':
			text[i] = '_'
		}
	}
	return text
}

// letter returns a letter in lower case or a digit; -1 for any other character, which
// strings.Map drops.
func letter(c rune) rune {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case unicode.IsLetter(c), unicode.IsNumber(c):
		return unicode.ToLower(c)
	}
	return -1
}

// Hide replaces whole secrets and their parts. If a secret is still there, because it is
// encoded, Hide replaces the whole text. A text InAnswer ends at an address with a user.
func (r *Redactor) Hide(text string, in Place) string {
	if len(text) < MinSecret {
		return text
	}
	if in == InName && (len(text) > maxName || strings.Trim(text, nameCharacters) != "") {
		in = InAnswer
	}
	if in == InAnswer && strings.Contains(text, "://") { // the text may quote the base_url of a provider
		text = hideUserInfo(text)
	}
	secrets := r.secrets[:r.keys]
	if in != InName {
		secrets = r.allSecrets()
	}
	if !shows(secrets, text, in) {
		return text
	}
	text = hideWhole(secrets, strings.ReplaceAll(text, Redacted, hole))
	if shows(secrets, text, beginningsOnly) {
		return Redacted
	}
	text = hideParts(secrets, text, in)
	if shows(secrets, text, in) {
		return Redacted
	}
	return strings.ReplaceAll(text, hole, Redacted)
}

// Bounds on a text that looks like a name.
const (
	maxName        = 128
	nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-./:_=+"
)

// hole marks the place of a secret until all secrets are found. It is a noncharacter of
// Unicode, which texts do not use.
const hole = "\ufffe"

// allSecrets returns the keys and, last, the user text.
func (r *Redactor) allSecrets() []secret {
	if len(r.userText) >= MinSecret {
		r.secrets, r.userText = append(r.secrets, newSecret(r.userText, userTextParts)), ""
	}
	return r.secrets
}

// JSON hides secrets in a JSON value. If the result is not JSON, as for a number, it hides
// the whole value.
func (r *Redactor) JSON(value json.RawMessage) json.RawMessage {
	text := r.Hide(string(value), InAnswer)
	if !json.Valid([]byte(text)) {
		text = `"` + Redacted + `"`
	}
	return json.RawMessage(text)
}

// Header returns a copy of a header without secrets in names and values.
func (r *Redactor) Header(header http.Header) http.Header {
	shown := header.Clone()
	for name, values := range shown {
		for i := range values {
			values[i] = r.Hide(values[i], InText)
		}
		if clean := r.Hide(name, InName); clean != name {
			delete(shown, name)
			shown[clean] = values
		}
	}
	return shown
}

// shows reports whether a text shows a secret, as it is or after escapes are decoded.
func shows(secrets []secret, text string, in Place) bool {
	var room, roomToo [64]byte // keep short texts, as most are, off the heap
	for range maxLayers + 1 {
		folded, letters := fold(append(room[:0], text...)), roomToo[:0]
		for _, c := range text {
			if l := letter(c); l >= 0 && in != beginningsOnly {
				letters = utf8.AppendRune(letters, l)
			}
		}
		for i := range secrets {
			s := &secrets[i]
			if slices.ContainsFunc(s.beginnings, func(first []byte) bool { return bytes.Contains(folded, first) }) {
				return true
			}
			if s.mayHavePart(letters, in) && hideParts(secrets[i:i+1], text, in) != text {
				return true
			}
		}
		before := text
		if text = withoutEscapes(text); text == before {
			return false
		}
	}
	return false
}

// maxLayers is how often escapes are decoded, because proxies escape texts that are
// escaped already.
const maxLayers = 4

// mayHavePart reports whether letters may have a part of the secret that is long enough
// to be hidden. mayHavePart cuts letters into pieces of half that length. A part that is
// long enough contains at least one whole piece, so a few steps are enough for most
// texts.
func (s *secret) mayHavePart(letters []byte, in Place) bool {
	piece := s.parts.letters[in] / 2
	for ; len(letters) >= piece; letters = letters[piece:] {
		if strings.Contains(s.letters, string(letters[:piece])) {
			return true
		}
	}
	return false
}

// hideWhole replaces whole secrets, folded or not.
func hideWhole(secrets []secret, text string) string {
	folded, hidden := fold([]byte(text)), make([]bool, len(text))
	for _, s := range secrets {
		sought, end := fold([]byte(s.text)), 0
		for _, piece := range bytes.SplitAfter(folded, sought) {
			end += len(piece)
			if bytes.HasSuffix(piece, sought) {
				for at := end - len(sought); at < end; at++ {
					hidden[at] = true
				}
			}
		}
	}
	return cover(text, hidden)
}

// hideParts replaces parts of a secret: letters and digits that follow each other in the
// secret, and any other characters between them.
func hideParts(secrets []secret, text string, in Place) string {
	letters, from, to := lettersOf(text)
	hidden := make([]bool, len(text))
	for i := range secrets {
		least, known := secrets[i].parts.letters[in], map[string]bool{} // all parts of this length
		for of, end := []rune(secrets[i].letters), least; end <= len(of); end++ {
			known[string(of[end-least:end])] = true
		}
		for end := least; end <= len(letters); end++ {
			if known[string(letters[end-least:end])] {
				for at := from[end-least]; at < to[end-1]; at++ {
					hidden[at] = true
				}
			}
		}
	}
	return cover(text, hidden)
}

// lettersOf returns the letters and digits of a text, and the place of each in the text.
func lettersOf(text string) (letters []rune, from, to []int) {
	for i, c := range text {
		if l := letter(c); l >= 0 {
			letters, from, to = append(letters, l), append(from, i), append(to, i+utf8.RuneLen(c))
		}
	}
	return letters, from, to
}

// cover replaces each run of hidden bytes by a hole.
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

// withoutEscapes decodes one layer of escapes. It uses no regular expression, which would take many
// times as long: an answer may have a million of the bytes with which an escape can begin.
func withoutEscapes(text string) string {
	var clean []byte
	for at := strings.IndexAny(text, `%\&`); at >= 0; at = strings.IndexAny(text, `%\&`) {
		meant, length := unescape(text[at:])
		clean, text = append(append(clean, text[:at]...), meant...), text[at+length:]
	}
	return string(clean) + text
}

// htmlEntities has the HTML entities that keys and JSON need. Package html, which has all of them,
// would add 80 KiB to every program.
var htmlEntities = map[string]string{"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": `"`, "&apos;": "'"}

// unescape decodes the beginning of a text: an escape of length bytes, as URLs, JSON, HTML and Go
// have them, or else one byte.
func unescape(text string) (meant string, length int) {
	begin := strings.ToLower(text[:min(20, len(text))]) // the longest escape has 20 bytes
	asGo := strings.Replace(begin[:1], "%", `\x`, 1) + begin[1:]
	code, isChar, after, err := strconv.UnquoteChar(asGo, '"')
	switch {
	case strings.HasPrefix(begin, "&#"):
		number, base := begin[2:], 10
		if number != "" && number[0] == 'x' {
			number, base = number[1:], 16
		}
		rest := strings.TrimLeft(number, "0123456789abcdef"[:base])
		if char, noNumber := strconv.ParseUint(number[:len(number)-len(rest)], base, 31); noNumber == nil {
			return string(rune(char)), len(begin) - len(strings.TrimPrefix(rest, ";"))
		}
	case begin[0] == '&':
		end := 1 + strings.IndexByte(begin, ';')
		if char := htmlEntities[begin[:end]]; char != "" {
			return char, end
		}
	case err == nil && isChar:
		return string(code), len(begin) - len(after)
	case err == nil:
		return string([]byte{byte(code)}), len(begin) - len(after)
	case strings.HasPrefix(begin, `\/`):
		return "/", 2
	case strings.HasPrefix(begin, `\ud`) && json.Unmarshal([]byte(`"`+text[:min(12, len(text))]+`"`), &meant) == nil: // a pair of surrogates
		return meant, min(12, len(text))
	}
	return text[:1], 1
}

const maxQuote = 160

var (
	htmlTitle = regexp.MustCompile(`(?i)<(?:title|h1)>([^<]*)</`) // HAProxy's pages have only a heading
	// sentence matches words without the characters that JSON, HTML, forms and escapes need.
	// No word is long enough to hold a whole encoded secret.
	sentence = regexp.MustCompile(`^([\pL\pN.,:;!?'()/|-]{1,32}( |$))+$`)
)

// Quote returns a proxy's message, as one line: the title or heading of an HTML page, or
// the whole of a short text. It returns "" if the text may come from a request, because
// proxies echo requests, whole or in part.
func (r *Redactor) Quote(text string) string {
	if title := htmlTitle.FindStringSubmatch(text); title != nil {
		text = title[1]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxQuote || !sentence.MatchString(text) || r.Hide(text, inQuote) != text {
		return ""
	}
	return text
}

// Error joins errors that belong together, such as a context's error, a transport's and
// the context's cause, into one error without secrets. It leaves out nil errors and texts
// that another text repeats.
//
// errors.Is finds all of the errors and what they wrap. errors.As and Unwrap find an
// error only if its text, and the text of everything that it wraps, shows no secret,
// because its fields may hold the same secret. (Error reads no fields itself, because an
// error may guard them by a lock.) None of the three finds an error for which except
// reports true, or an error inside it.
func (r *Redactor) Error(except func(error) bool, errs ...error) error {
	errs = slices.DeleteFunc(errs, isnil.Value)
	e := &redactedError{is: func(target error) bool { return anyIs(errs, target, except) }}
	var texts []string
	for _, err := range errs {
		text, causes, _ := r.clean(err, except)
		e.causes, texts = append(e.causes, causes...), append(texts, text)
	}
	e.text = joinTexts(texts)
	return e
}

// hideUserInfo cuts off a text at the place where the text quotes an address
// with a user and a password, such as a proxy's. It also drops the rest of the text:
// net/url quotes the part of an address that it cannot read, and this part may be the
// password.
func hideUserInfo(text string) string { return userInfo.ReplaceAllString(text, "$1$2"+Redacted) }

// userInfo matches an error about an invalid proxy address to its end. In other texts the
// match begins at an address with an @ before its path. An @ later in the address counts
// if no port follows the colon.
var userInfo = regexp.MustCompile(`(?s)(invalid proxy address ").*@.*|(://)(?:[^/?#@]*|[^/?#@:[]*:\d*[^\d/?#@][^@]*)@.*`)

// joinTexts joins texts, and leaves out a text that another text contains.
func joinTexts(texts []string) string {
	var joined []string
	for i, text := range texts {
		isIn := func(other string) bool { return other != text && strings.Contains(other, text) }
		if !slices.ContainsFunc(texts, isIn) && !slices.Contains(texts[:i], text) {
			joined = append(joined, text)
		}
	}
	return strings.Join(joined, ": ")
}

// clean returns the text of an error without secrets, and the errors that Unwrap may
// return for it: causes. If nothing had to be hidden, and except is false for the error
// and all that it wraps, causes is the error itself and whole is true. Otherwise causes
// are the causes of the errors that it wraps.
//
// If an error's own text shows user text, clean keeps only the texts of the errors that
// it wraps: "[redacted]ion refused" would give the hidden word away. Errors about a
// connection are not searched for user text. They never quote a request, and a person's
// message may contain any of their words.
func (r *Redactor) clean(err error, except func(error) bool) (text string, causes []error, whole bool) {
	text, whole = err.Error(), !except(err)
	all, added, inside := text, text, []string{Redacted}
	for _, inner := range Wrapped(err) {
		redacted, some, isWhole := r.clean(inner, except)
		text = strings.ReplaceAll(text, inner.Error(), redacted)
		added = strings.ReplaceAll(added, inner.Error(), "")
		causes, whole, inside = append(causes, some...), whole && isWhole, append(inside, redacted)
	}
	keys := r.With("", "")
	text = keys.Hide(hideUserInfo(text), InText)
	if userText := r.allSecrets()[r.keys:]; !isConnectionError(err) && shows(userText, added, InAnswer) {
		text = joinTexts(inside)
	}
	switch {
	case except(err):
		return text, nil, false
	case whole && text == all:
		return text, []error{err}, true
	}
	return text, causes, false
}

// isConnectionError reports whether the error is one of the standard library's, about a
// connection or a context, or a timeout of net/http. Such an error may wrap an error from
// elsewhere.
func isConnectionError(err error) bool {
	kind := reflect.TypeOf(err)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.PkgPath() {
	case "context", "crypto/tls", "crypto/x509", "internal/poll", "net", "os", "syscall":
		return true
	case "net/http":
		timeout, is := err.(interface{ Timeout() bool })
		return is && timeout.Timeout()
	}
	return err == context.Canceled || err == io.EOF || err == io.ErrUnexpectedEOF
}

// Wrapped returns the errors that err wraps directly; none if its Unwrap panics.
func Wrapped(err error) (all []error) {
	defer func() { _ = recover() }()
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		all = []error{err.Unwrap()}
	case interface{ Unwrap() []error }:
		all = slices.Clone(err.Unwrap())
	}
	return slices.DeleteFunc(all, isnil.Value)
}

// redactedError is the result of Redactor.Error. Redactor.Error returns a pointer, so
// that the error can be compared and can be the key of a map.
type redactedError struct {
	text   string
	causes []error
	is     func(error) bool // a function, because fmt would print the errors of a field, with their secrets
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) GoString() string     { return e.text }
func (e *redactedError) Unwrap() []error      { return e.causes }
func (e *redactedError) Is(target error) bool { return e.is(target) }

// anyIs is errors.Is for several errors. It skips errors for which except is true.
func anyIs(errs []error, target error, except func(error) bool) bool {
	return slices.ContainsFunc(errs, func(err error) bool {
		return !except(err) && (is(err, target) || anyIs(Wrapped(err), target, except))
	})
}

// is reports whether err itself is target. Some comparisons panic, for example of structs
// that hold a slice. Then is reports false.
func is(err, target error) (found bool) {
	defer func() { _ = recover() }()
	x, ok := err.(interface{ Is(error) bool })
	return err == target || ok && x.Is(target)
}
